/* SPDX-License-Identifier: Apache-2.0 */
/* Trust: whether a user agreed to run the commands in an experiment's files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sweep/sweep.h"

/* The trials of an experiment run the commands of its experiment.conf, in the folder that its first
 * log entry names, as the worker's user.  If others may write to the experiment, dl asks the user
 * before it runs for the first time, and again when it has changed.
 */

/* Whether nobody else may write to the experiment. */
bool trust_is_private (const struct sweep *s);

/* Allow this process and its workers to start what the trials run now, but not what others change
 * later: s->pin becomes a digest of the experiment's id, of experiment.conf and its owner, of the
 * owner of the first log entry, of the folder, and of the frozen code.
 */
void trust_allow (struct sweep *s);

/* The same, and remember that this user runs it. */
int trust_record (struct sweep *s, struct slurmdl_error *err);

/* Whether the opened experiment is the one that this process created with this id: in a group's
 * folder others may have replaced it.
 */
bool trust_is_made (const struct sweep *s, const char *id);

/* Whether this user may go on without a question; if not, 'why' tells the user the reason. */
enum trust_state {
    TRUST_SAME,    /* yes */
    TRUST_NEW,     /* the user has never run it */
    TRUST_CHANGED, /* it has changed since the user ran it, or since it was made */
};
enum trust_state trust_check (struct sweep *s, char *why, size_t size);

/* Print on standard error what has changed since this user's record of the folder, or of its id,
 * was written.
 */
void trust_say_changes (const struct sweep *s);

/* Record and look up the worker arrays that this user submitted; for a private experiment, those in
 * its log.
 */
void trust_record_job (const struct sweep *s, const char *job);
bool trust_has_job (const struct sweep *s, const char *job);

/* A folder that only this user may write to: workers/ if the experiment is private, else its
 * record.
 */
int trust_folder (const struct sweep *s, char *buf, size_t size, struct slurmdl_error *err);

/* How many workers an experiment should have, according to its file and its log.  If others can
 * write to the log, the limit is four times the number in the file, but at least 16; complains if
 * the log requests more.
 */
long trust_workers (const struct sweep *s);

/* ---- a user's records of experiments ---- */

/* $XDG_STATE_HOME/slurm-dl/ID, or ~/.local/state/slurm-dl/ID, is a folder of mode 0700 for each
 * experiment: 'pin', 'job-JOB' of mode 0600 for each array that the user submitted, a link to the
 * experiment, and copies of frozen code.  Nobody else may write there.  Links beside the records
 * map a folder's path and its device and inode to its record: the id comes from a log, and in a
 * group's folder others can replace the log.  If two folders have the same id, the second record is
 * named ID.PATH, where PATH is from the digest of its path.
 */

/* The folder for programs' state, $XDG_STATE_HOME or ~/.local/state, which need not exist.  Returns
 * -1 if there is no home.
 */
int record_base (char *buf, size_t size);

/* The path of the experiment's record, created if absent.  Returns -1 with 'err'. */
int record_folder (const struct sweep *s, char *buf, size_t size, struct slurmdl_error *err);

/* Remove the record, because the experiment is to be removed. */
void record_remove (const struct sweep *s);
