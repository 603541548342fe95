/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the state of an experiment and its trials. */
#pragma once

#include "launcher/sweep/sweep.h"

struct hparam;

/* ---- the states of an experiment ---- */

/* Whether an event is valid in a state.  The requests of users (EVENT_PAUSE to EVENT_CONTINUE, and
 * EVENT_ARCHIVE), EVENT_CREATE, EVENT_END and EVENT_EXPIRE are valid only in some states, and all
 * other events in every state.
 */
bool sweep_allows (enum sweep_state state, enum event_op op);

/* The state after an event.  An event that is not valid does not change it. */
enum sweep_state sweep_next_state (enum sweep_state state, enum event_op op);

/* Whether workers must not work on it any more: the states from SWEEP_STOPPED on. */
bool sweep_has_ended (const struct sweep *s);

/* "running", "paused", ..., as users see it. */
const char *sweep_state_name (enum sweep_state state);

/* ---- the experiment and its trials ---- */

/* The name of the experiment's folder, such as "digits-0003". */
const char *sweep_folder_name (const struct sweep *s);

/* "open", "paused", ..., as users see it.  It depends on the state of the experiment, too. */
const char *trial_state_name (const struct sweep *s, const struct sweep_trial *t);

/* Whether 'a' is better than 'b' as a value of the first metric.  A value that is not finite is
 * worse than any that is.
 */
bool sweep_better (const struct sweep *s, double a, double b);

/* The trial with that number, counted from 1; NULL: there is none. */
struct sweep_trial *sweep_trial (const struct sweep *s, long number);

/* The number of a trial. */
long trial_number (const struct sweep *s, const struct sweep_trial *t);

/* With searcher.repeats, the number of the point that a trial trains, from 1, and the index of the
 * trial among the trials of that point, from 0 (DL_REPEAT).  Without, the trial's number and 0.
 */
long trial_point (const struct sweep *s, long number);
long trial_repeat (const struct sweep *s, long number);

/* The number of a trial's attempts so far, including one that is under way. */
long trial_attempts (const struct sweep *s, const struct sweep_trial *t);

/* The conditions of a trial.  An attempt that the log does not show yet counts as started when a
 * worker claimed it.
 */
const struct conditions *trial_conditions (const struct sweep *s, long number);

/* The conditions of a job, which exist even before its trial does. */
const struct conditions *job_conditions (const struct sweep *s);

/* One of a trial's hyperparameters as JSON, a new reference whose strings belong to the sweep;
 * NULL: the hyperparameter is not active.
 */
json_t *trial_hparam (const struct sweep *s, const struct sweep_trial *t, const struct hparam *h);

/* Return all hyperparameters of a trial as JSON.  The trial owns the result, which is valid until
 * trial_forget_hparams().
 */
const json_t *trial_hparams (const struct sweep *s, const struct sweep_trial *t);
void trial_forget_hparams (struct sweep_trial *t);

/* Whether the decision log has no entry although trials have begun. */
bool sweep_has_lost_log (const struct sweep *s);

/* Whether searcher.max_hours are over, by the clock of this machine. */
bool sweep_is_late (const struct sweep *s);

/* Whether a value of the first metric reaches searcher.goal. */
bool sweep_is_goal (const struct sweep *s, double value);

/* How many trials have failed, and how many may fail before the experiment ends as "partial"
 * instead of "completed".
 */
long sweep_failed_trials (const struct sweep *s);
long sweep_max_failed (const struct sweep *s);

/* Whether the searcher needs reports, by which it stops trials early. */
bool sweep_wants_reports (const struct sweep *s);

/* The number of metrics to optimise, at least 1, and their names. */
size_t sweep_metrics (const struct sweep *s);
const char *sweep_metric (const struct sweep *s, size_t i);

/* The attempt whose result at 'length' was accepted; 0: none. */
long trial_milestone (const struct sweep_trial *t, int64_t length);

/* The last accepted result; its attempt is 0 if there is none. */
struct milestone trial_last (const struct sweep_trial *t);

/* The last accepted values of all metrics; NULL if there are none or just one metric. */
const double *trial_values (const struct sweep_trial *t);

/* The worker's notes about the ranks of an attempt, as lines "TIME TEXT", which the caller frees;
 * NULL: there are none.
 */
char *trial_healing (const struct sweep *s, long trial, long attempt);

/* The same for an attempt in the folder 'dir'. */
char *attempt_healing (const char *dir);

/* Call 'f' for each of these notes of an attempt, and free 'notes', which may be NULL. */
typedef void (*healing_f) (long attempt, double when, const char *text, void *arg);
void healing_each (char *notes, long attempt, healing_f f, void *arg);

/* Append a note to a JSON array. */
void healing_add_json (long attempt, double when, const char *text, void *array);

/* The record of a node; NULL: no attempt has ended there. */
struct host *sweep_host (const struct sweep *s, const char *name);

/* The path of the experiment file's folder relative to the frozen folder: "", or "/sub". */
const char *sweep_code_below (const struct sweep *s);

/* Whether dl itself creates files of this name in a trial's folder. */
bool trial_name_is_ours (const char *name);

/* Open the file from whose lines dl reads the metrics of an attempt that has ended.  'dir' is the
 * attempt's folder.  The file is the attempt's log or, if set, metrics.file in 'dir', or else in
 * what is left of the attempt's working folder.  Returns -1 with errno.
 */
int attempt_open_lines (const struct sweep *s, const char *dir);

/* Write the path of an attempt's folder to 'dir', and return whether the folder is missing although
 * the attempt's result was accepted.
 */
bool attempt_is_missing (const struct sweep *s, long n, long attempt, char *dir, size_t size);

/* ---- what a trial does now, or how it ended, for charts and reports ---- */

enum trial_phase {
    PHASE_COMPLETED,
    PHASE_STOPPED, /* early, by the searcher or by the experiment's end */
    PHASE_RUNNING,
    PHASE_PAUSED,  /* has a result; may be promoted */
    PHASE_WAITING, /* for a worker */
    PHASE_FAILED,
    PHASE_REJECTED,
    TRIAL_PHASES
};
extern const char *const trial_phases[TRIAL_PHASES];

/* The phase of a trial.  After a failed attempt the trial counts as waiting, even if a worker has
 * claimed the next attempt, because the log does not show claims.
 */
enum trial_phase trial_phase_of (const struct sweep *s, const struct sweep_trial *t);
