/* SPDX-License-Identifier: Apache-2.0 */
/* The saves of a run that are not done yet. */
#ifndef RUNTIME_CHECKPOINT_SAVE_H
#define RUNTIME_CHECKPOINT_SAVE_H

/* Wait for them.  -1: one has failed.  NULL is accepted. */
struct saver;
int saver_destroy (struct saver *s);

#endif
