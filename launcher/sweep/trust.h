/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a user wants to run what an experiment's files say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sweep/sweep.h"
#include "launcher/sys/digest.h"

/* The trials of an experiment run the commands of its experiment.conf, in the
 * folder that its first log entry names, as the user of the worker.  Where
 * others may write to the experiment, a user is asked before that is so for
 * the first time, and again when it has changed.
 */

/* Whether nobody else may write to the experiment. */
bool trust_is_private (const struct sweep *s);

/* This process may start what the trials run now, and workers are told so,
 * whatever others put into the log meanwhile: s->pin becomes a digest of the
 * experiment's id, of experiment.conf and its owner, of the owner of the first
 * log entry, of the folder, and of the frozen code.
 */
void trust_allow (struct sweep *s);

/* The same, and remember that this user runs it. */
int trust_record (struct sweep *s, struct slurmdl_error *err);

/* Whether the experiment that was opened is the one that this process has made
 * with this id: where a group writes, it can be another one by now.
 */
bool trust_is_made (const struct sweep *s, const char *id);

/* Whether this user may go on without a question: 0, or 1 with the reason in
 * 'why', for the user; 2 if it has changed since it was recorded or made.
 */
int trust_check (struct sweep *s, char *why, size_t size);

/* What has changed since this user's record of the folder, or of its id, was
 * made, on standard error.
 */
void trust_say_changes (const struct sweep *s);

/* The arrays of workers that this user has submitted: of a private experiment
 * those that its log names.
 */
void trust_record_job (const struct sweep *s, const char *job);
bool trust_has_job (const struct sweep *s, const char *job);

/* A folder for what only this user may write: the workers' one if the
 * experiment is private, else that of the records.
 */
int trust_folder (const struct sweep *s, char *buf, size_t size, struct slurmdl_error *err);

/* How many workers an experiment is to have, by its file and its log: where a
 * group writes, no more than four times those of the file, or 16, after a line.
 */
long trust_workers (const struct sweep *s);
