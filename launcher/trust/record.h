/* SPDX-License-Identifier: Apache-2.0 */
/* What a user remembers of the experiments that he works at. */
#pragma once

#include <stddef.h>

#include "launcher/sweep/sweep.h"

/* $XDG_STATE_HOME/slurm-dl/ID, or ~/.local/state/slurm-dl/ID, a folder of mode
 * 0700 for each experiment: 'pin', 'job-JOB' for each array that the user has
 * submitted, of mode 0600, a link to the experiment, and copies of frozen code.
 * Nobody else may write there.  An experiment with the id of another one that
 * is there has a folder with the digest of its path for a name.
 */

/* The folder for state of programs, $XDG_STATE_HOME or ~/.local/state, which
 * need not be there.  Returns -1 if there is no home.
 */
int record_base (char *buf, size_t size);

/* The folder's path, made if it is absent.  Returns -1 with 'err' set. */
int record_folder (const struct sweep *s,
                   char *buf,
                   size_t size,
                   struct slurmdl_error *err);

/* A small file of it as a text that the caller frees, NULL: there is none. */
char *record_read (const struct sweep *s, const char *name);
int record_write (const struct sweep *s,
                  const char *name,
                  const char *text,
                  struct slurmdl_error *err);

/* Remove all of it: the experiment is to be removed. */
void record_remove (const struct sweep *s);
