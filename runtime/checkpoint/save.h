/* SPDX-License-Identifier: Apache-2.0 */
/* The saves of a run that are in flight. */
#pragma once

/* Wait for them.  Returns -1 if one has failed.  NULL is accepted. */
struct saver;
int saver_destroy (struct saver *s);
