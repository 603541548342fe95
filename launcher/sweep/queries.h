/* SPDX-License-Identifier: Apache-2.0 */
/* What the state of an experiment says about it and its trials. */
#pragma once

#include "launcher/sweep/sweep.h"

struct hparam;

/* ---- the states of an experiment ---- */

/* Whether a request (EVENT_PAUSE to EVENT_KILL, EVENT_CONTINUE, EVENT_ARCHIVE) is valid in a state;
 * all other events are valid in every state.
 */
bool sweep_allows (enum sweep_state state, enum event_op op);

/* The state after a valid request, or after EVENT_END. */
enum sweep_state sweep_next_state (enum sweep_state state, enum event_op op);

/* Whether workers must not work on it: the states from SWEEP_STOPPED on. */
bool sweep_has_ended (const struct sweep *s);

/* "running", "paused", ... for users. */
const char *sweep_state_name (enum sweep_state state);

/* ---- the experiment and its trials ---- */

/* The name of its folder, "digits-0003". */
const char *sweep_folder_name (const struct sweep *s);

/* "open", "paused", ... as users see it: depends on the experiment too. */
const char *trial_state_name (const struct sweep *s, const struct sweep_trial *t);

/* Which of two metric values is better; NaN is worst. */
bool sweep_better (const struct sweep *s, double a, double b);

/* The trial of that number, from 1; NULL: there is none. */
struct sweep_trial *sweep_trial (const struct sweep *s, long number);

/* Its number. */
long trial_number (const struct sweep *s, const struct sweep_trial *t);

/* With searcher.repeats: which point it trains, and as which of its trials, the
 * first one 0 (DL_REPEAT); without, the trial's number and 0.
 */
long trial_point (const struct sweep *s, long number);
long trial_repeat (const struct sweep *s, long number);

/* Its attempts so far, with one that has begun. */
long trial_attempts (const struct sweep *s, const struct sweep_trial *t);

/* Its conditions, with the start of an attempt of which the log says nothing yet:
 * that is when it was claimed.
 */
const struct conditions *trial_conditions (const struct sweep *s, long number);

/* Those of a job, which are there before its trial is. */
const struct conditions *job_conditions (const struct sweep *s);

/* One of its hyperparameters as JSON, a new reference whose strings are the
 * sweep's; NULL: it is not active.
 */
json_t *trial_hparam (const struct sweep *s, const struct sweep_trial *t, const struct hparam *h);

/* Its hyperparameters as JSON; NULL if out of memory.  The trial keeps it,
 * until trial_forget_hparams().
 */
const json_t *trial_hparams (const struct sweep *s, const struct sweep_trial *t);
void trial_forget_hparams (struct sweep_trial *t);

/* Its decision log has no entry, although trials have begun. */
bool sweep_has_lost_log (const struct sweep *s);

/* searcher.max_hours are over, by the clock of this machine. */
bool sweep_is_late (const struct sweep *s);

/* A value of the first metric reaches searcher.goal. */
bool sweep_is_goal (const struct sweep *s, double value);

/* Trials that have failed, and how many may in an experiment that is called
 * completed.
 */
long sweep_failed_trials (const struct sweep *s);
long sweep_max_failed (const struct sweep *s);

/* The searcher asks for reports, and stops trials by them. */
bool sweep_wants_reports (const struct sweep *s);

/* The metrics that are optimised, 1 at least, and their names. */
size_t sweep_metrics (const struct sweep *s);
const char *sweep_metric (const struct sweep *s, size_t i);

/* The attempt whose result at 'length' was accepted, 0: none. */
long trial_milestone (const struct sweep_trial *t, int64_t length);

/* The last one, { 0, 0 } if there is none. */
struct milestone trial_last (const struct sweep_trial *t);

/* Its last values of all metrics; NULL unless there are several, and some. */
const double *trial_values (const struct sweep_trial *t);

/* What the worker noted about the ranks of an attempt, lines "TIME TEXT", which the caller frees;
 * NULL: nothing.
 */
char *trial_healing (const struct sweep *s, long trial, long attempt);

/* What is known of a machine, NULL: nothing. */
struct host *sweep_host (const struct sweep *s, const char *name);

/* The folder of the experiment file below that of the frozen code, once the
 * code was entered (code.h): "", or "/sub".
 */
const char *sweep_code_below (const struct sweep *s);

/* Whether dl itself makes what has this name in a trial's folder. */
bool trial_name_is_ours (const char *name);

/* Open the file of an attempt that has ended, in the folder 'dir', whose lines
 * have its metrics: its log, or metrics.file there or else in the working
 * folder that it had.  Returns -1 with errno.
 */
int attempt_open_lines (const struct sweep *s, const char *dir);

/* Whether the result of an attempt was accepted, but its folder, whose path
 * goes to 'dir', is not there.
 */
bool attempt_is_missing (const struct sweep *s, long n, long attempt, char *dir, size_t size);

/* ---- what a trial does now, or how it ended, for pictures and reports ---- */

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

/* A trial whose attempt failed runs again once a worker has claimed the next one, but the log does
 * not show claims: it counts as waiting here.
 */
enum trial_phase trial_phase_of (const struct sweep *s, const struct sweep_trial *t);
