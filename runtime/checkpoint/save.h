/* SPDX-License-Identifier: Apache-2.0 */
/* The saves of a run that are not done yet. */
#pragma once

/* Wait for them.  -1: one has failed.  NULL is accepted. */
struct saver;
int saver_destroy (struct saver *s);
