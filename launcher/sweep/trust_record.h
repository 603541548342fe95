/* SPDX-License-Identifier: Apache-2.0 */
/* What a user remembers of the experiments that he works at. */
#pragma once

#include <stddef.h>

#include "launcher/sweep/sweep.h"

/* $XDG_STATE_HOME/slurm-dl/ID, or ~/.local/state/slurm-dl/ID, a folder of mode
 * 0700 for each experiment: 'pin', 'job-JOB' for each array that the user has
 * submitted, of mode 0600, a link to the experiment, and copies of frozen code.
 * Nobody else may write there.  Beside them are links that say which of them is
 * of a folder, by its path and by its device and inode: the id is what a log
 * says, and in a group's folder others can put another log.  Of two folders
 * with one id the second has ID.PATH for a name, PATH from the digest of its
 * path.
 */
enum record_key { RECORD_PATH, RECORD_INODE, RECORD_ID };

/* The folder for state of programs, $XDG_STATE_HOME or ~/.local/state, which
 * need not be there.  Returns -1 if there is no home.
 */
int record_base (char *buf, size_t size);

/* The folder's path, made if it is absent.  Returns -1 with 'err' set. */
int record_folder (const struct sweep *s, char *buf, size_t size, struct slurmdl_error *err);

/* A small file of it as a text that the caller frees, NULL: there is none. */
char *record_read (const struct sweep *s, const char *name);

/* The same of the record that was made of the folder with this path, with this
 * inode, or of any experiment with this id: need not be one of this experiment.
 */
char *record_read_by (const struct sweep *s, enum record_key key, const char *name);
int record_write (const struct sweep *s, const char *name, const char *text,
                  struct slurmdl_error *err);

/* Remove all of it: the experiment is to be removed. */
void record_remove (const struct sweep *s);
