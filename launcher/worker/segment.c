/* SPDX-License-Identifier: Apache-2.0 */
/* Run one attempt at a segment and judge how it ended. */
#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/worker_settings.h"
#include "launcher/sweep/event.h"
#include "launcher/worker/worker_private.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/config/log_policy.h"
#include "launcher/config/resources.h"
#include "launcher/job/job.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/oom.h"
#include "launcher/sys/subprocess.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/worker.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"

/* Most reports of a segment, each of which is a log entry. */
enum { REPORTS_MAX = 256 };

/* Slurm signals the processes of a step one by one, and the worker may be the last. */
enum { LATE_MS = 2000 };

/* The fsync of the attempt's first entries may take this long before anyone waits for it, because
 * it runs while the trainer starts.
 */
enum { SETTLE_MS = 5 };

/* How often to read messages from the ranks of a step. */
enum { RANKS_MS = 200 };

enum { AT_ONCE_SECONDS = 15 };

struct segment {
    struct worker *w;
    struct trial_attempt attempt;
    struct trainer *trainer;
    double start;
    long oom_kills;  /* count in this cgroup before the trainer started; -1 if unknown */
    double deadline; /* when to kill a trainer that was asked to stop */
    double look;     /* when to look for the next report */
    struct notify_watch notice;
    struct heal heal;
    bool dropped;
    bool early;        /* the searcher stopped it */
    double members_at; /* when to check the members of a job next */
    struct members members;
    bool members_over;    /* the members decided the result, and the step was killed */
    bool overdue;         /* its job was active for too long */
    double idle_at;       /* when to check next whether its monitor found its GPUs idle */
    char idle[IDLE_MOST]; /* the monitor's message; "": not idle so far */
    bool shown;           /* the attempt's directory shows its working directory */
    bool homeless;        /* someone removed the attempt's directory with its metrics */
    int status;
    bool in_memory; /* the result is known, but perhaps not synced yet */
    bool found;     /* the trainer logged all metrics, with these values: */
    int64_t step;
    double values[OBJECTIVES_MAX];
};

static bool is_fenced (const struct segment *s)
{
    const struct sweep_trial *t = sweep_trial (s->w->sweep, s->attempt.trial);

    return t && t->over >= s->attempt.number;
}

static void ask_trainer_to_stop (struct segment *s)
{
    if (s->deadline == 0) {
        trainer_signal (s->trainer, SIGTERM);
        s->deadline = monotonic () + (double)s->w->sweep->exp->worker->grace;
    }
}

/* Uses the clock of this machine, as searcher.max_hours does. */
static bool is_overdue (const struct segment *s)
{
    const struct sweep *sweep = s->w->sweep;
    double end = job_deadline (sweep, sweep_trial (sweep, s->attempt.trial));

    return end > 0 && event_clock () >= end;
}

/* A job with roles may be decided while members still run: some wait for one that died, and
 * servers never end.
 */
static void check_members (struct segment *s)
{
    const struct job_settings *job = s->w->sweep->exp->job;

    if (job->nroles == 0 || monotonic () < s->members_at)
        return;
    s->members_at = monotonic () + 1;
    members_look (&s->attempt, trainer_owner (s->trainer), &s->members);
    switch (s->members.verdict.kind) {
    case LIFE_SUCCEEDED:
        if (!job->waits || s->members.others)
            ask_trainer_to_stop (s);
        break;
    case LIFE_FAILED:
    case LIFE_BROKEN:
        s->members_over = s->heal.verdict.cause == HEAL_NONE;
        trainer_signal (s->trainer, SIGKILL);
        break;
    default:
        break;
    }
}

/* If the step's monitor found its GPUs idle, park as at the end of the job's time. */
static void check_idle (struct segment *s)
{
    char path[PATH_MAX];
    struct stat st;
    ssize_t n;
    int fd;

    if (s->w->idle > 0 && !*s->idle) {
        snprintf (s->idle, sizeof (s->idle), IDLE_TEXT, s->w->idle);
        heal_note (&s->heal, &s->attempt, s->trainer, "%s", s->idle);
    }
    if (monotonic () < s->idle_at || s->w->stop)
        return;
    s->idle_at = monotonic () + 1;
    snprintf (path, sizeof (path), "%.4000s/" IDLE_NAME, s->attempt.dir);
    if ((fd = inside_open (path, O_RDONLY, 0, &st)) < 0)
        return;
    /* if a group shares the experiment, only this user may stop this attempt */
    n = st.st_uid == trainer_owner (s->trainer) ? read (fd, s->idle, sizeof (s->idle) - 1) : -1;
    close (fd);
    s->idle[n > 0 ? n : 0] = '\0';
    if (n <= 0)
        return;
    policy_text (s->idle);
    heal_note (&s->heal, &s->attempt, s->trainer, "%s", s->idle);
    s->w->stop = SIGUSR2;
}

/* The experiment may ask for the end of a trial. */
static void check_trial_requests (struct segment *s)
{
    const struct sweep *sweep = s->w->sweep;

    if (is_fenced (s)) {
        s->dropped = true;
        trainer_signal (s->trainer, SIGKILL);
    }
    if (sweep->state == SWEEP_KILLED)
        trainer_signal (s->trainer, SIGKILL);
    s->early = searcher_stops (sweep->searcher, s->attempt.trial);
    s->overdue |= is_overdue (s);
    check_members (s);
    if (s->early || s->overdue || sweep->state != SWEEP_RUNNING
        || sweep_retires (sweep, s->w->slot))
        ask_trainer_to_stop (s);
}

static void check_stop (struct segment *s)
{
    trainer_read (s->trainer, false);
    if (!s->attempt.own)
        check_trial_requests (s);
    check_idle (s);
    if (s->w->stop)
        ask_trainer_to_stop (s);
    if (s->deadline && monotonic () > s->deadline)
        trainer_signal (s->trainer, SIGKILL);
    /* ranks that are killed with their step are not to blame */
    if (!s->deadline && !s->dropped && !s->members_over)
        heal_tick (&s->heal, &s->attempt, s->trainer);
    else
        heal_serve (&s->heal);
}

/* ---- reports ---- */

/* The end of the segment is a result, not a report. */
static bool report_is_due (const struct segment *s, int64_t step)
{
    const struct sweep_trial *t = sweep_trial (s->w->sweep, s->attempt.trial);
    int64_t stride = (t->target + REPORTS_MAX - 1) / REPORTS_MAX;

    return step < t->target && step - t->reported >= stride;
}

/* A report that cannot be published is no reason to stop. */
static void publish_news (struct segment *s, int64_t step, double value)
{
    enum published rv = PUBLISH_LATE;

    while (rv == PUBLISH_LATE && !is_fenced (s) && report_is_due (s, step)) {
        struct event event = {
            .op = EVENT_REPORT,
            .by = s->w->slot,
            .trial = s->attempt.trial,
            .attempt = s->attempt.number,
            .length = step,
            .metric = value,
        };
        rv = sweep_publish (s->w->sweep, &event, 1, NULL);
    }
}

/* Once a second, or less often if reading the file takes long. */
static void report_news (struct segment *s)
{
    const struct sweep *sweep = s->w->sweep;
    double start = monotonic ();
    bool found;
    int64_t step;
    double value, took;

    if (!sweep_wants_reports (sweep) || start < s->look || s->deadline > 0)
        return;
    found = newest_metric (s->attempt.dir, sweep_metric (sweep, 0), &step, &value) == 0;
    took = monotonic () - start;
    if (found)
        publish_news (s, step, value);
    s->look = start + (took > 0.05 ? 20 * took : 1);
}

/* ---- the loop ---- */

static void poll_trainer (struct segment *s, int ms)
{
    struct pollfd p[3] = {
        { .fd = s->w->signals, .events = POLLIN },
        { .fd = trainer_fd (s->trainer), .events = POLLIN },
        { .fd = s->w->socket.fd, .events = POLLIN },
    };

    if (poll (p, 3, ms) <= 0)
        return;
    while (p[0].revents && worker_signal (s->w))
        ;
    if (p[1].revents)
        trainer_read (s->trainer, false);
    if (p[2].revents)
        log_socket_serve (&s->w->socket, s->trainer);
}

/* The signal may have killed only a shell, while the program that it ran still saves a
 * checkpoint.
 */
static void await_lingering (struct segment *s)
{
    double limit = monotonic () + (double)s->w->sweep->exp->worker->grace;

    if (s->deadline > 0 && s->deadline < limit)
        limit = s->deadline;
    while (!s->dropped && trainer_lingers (s->trainer) && monotonic () < limit) {
        poll_trainer (s, 100);
        worker_tick (s->w, NULL);
        s->dropped = is_fenced (s);
    }
    trainer_signal (s->trainer, SIGKILL);
}

static bool trainer_succeeded (const struct segment *s)
{
    return WIFEXITED (s->status) && WEXITSTATUS (s->status) == 0 && !s->dropped && !s->early;
}

/* Read what the trainer printed and sent before it ended.  If there was nothing left to train,
 * also read what earlier attempts printed.
 */
static void drain_output (struct segment *s)
{
    struct pollfd p = { .fd = s->w->socket.fd, .events = POLLIN };

    trainer_read (s->trainer, true);
    while (p.fd >= 0 && poll (&p, 1, 0) == 1)
        log_socket_serve (&s->w->socket, s->trainer);
    if (trainer_succeeded (s))
        trainer_had_nothing_to_do (s->trainer);
}

/* Return the signal that killed the trainer, which a shell reports as 128 + signal, or 0. */
static int signal_of_status (int status)
{
    if (WIFSIGNALED (status))
        return WTERMSIG (status);
    return WIFEXITED (status) && WEXITSTATUS (status) > 128 ? WEXITSTATUS (status) - 128 : 0;
}

/* Return how long to wait for the signal that may have caused this end.  A trainer may react to
 * it with any exit status.
 */
static int late_signal_ms (int status)
{
    int signal = signal_of_status (status);

    if (signal == SIGTERM || signal == SIGUSR2)
        return LATE_MS;
    return WIFEXITED (status) && (WEXITSTATUS (status) == 0 || getenv ("SLURM_JOB_ID"))
               ? LATE_MS / 10
               : 0;
}

static bool knows_length (const struct segment *s)
{
    return experiment_knows_length (s->w->sweep->exp);
}

static bool segment_is_complete (const struct segment *s)
{
    return s->found && knows_length (s) && s->step >= s->attempt.length;
}

/* Slurm signals all processes of the step: the trainer may have ended because of a signal that the
 * worker has yet to read.  A trial of unknown length that logged a metric and exited with status 0
 * waits for a fraction of its run time only, so that short trials are not delayed.
 */
static void await_late_signal (struct segment *s)
{
    struct pollfd p = { .fd = s->w->signals, .events = POLLIN };
    bool known = s->w->stop || s->deadline > 0 || s->early || s->dropped;
    double part = (monotonic () - s->start) * 1000 / 20;
    int ms = late_signal_ms (s->status);

    if (known || segment_is_complete (s))
        return;
    if (s->status == 0 && s->found && !knows_length (s) && part < ms)
        ms = (int)part;
    while (poll (&p, 1, ms) == 1 && worker_signal (s->w))
        ;
}

/* The searcher stopped the trial early.  Its result is the length that it reached and the metric
 * there.
 */
static void judge_early (const struct segment *s, struct segment_report *r)
{
    const struct sweep_trial *t = sweep_trial (s->w->sweep, s->attempt.trial);

    r->outcome = OUTCOME_RESULT;
    r->stopped = true;
    r->ended = 0;
    if (newest_metric (s->attempt.dir, sweep_metric (s->w->sweep, 0), &r->length, r->values) == 0
        && r->length >= 1 && r->length < t->target) {
        metric_summarise (&s->attempt, r->values);
        return;
    }
    r->length = t->reported;
    r->values[0] = t->report;
    metric_summarise (&s->attempt, r->values);
}

/* Return the smallest step that is credible as a script's progress.  Without {step} in a pattern,
 * steps count lines, and a script may call `dl log` only at the end.
 */
static int64_t least_credible_step (const struct experiment *e)
{
    bool has = false;

    for (char **p = e->metric->patterns; p && *p && !has; p++)
        has = strstr (*p, "{step}");
    return has ? 1 : e->metric->patterns ? INT64_MAX : 2;
}

/* Whether the program ignores {length} or counts something else as steps. */
static bool ran_beyond (const struct segment *s)
{
    const struct experiment *e = s->w->sweep->exp;

    return experiment_needs (e) & HAS_RUNGS && s->attempt.length < e->search->config.max_length
           && s->step > s->attempt.length;
}

/* The step at which the trainer ended before or beyond the length; 0: it did not.  Its steps may
 * count from 0.
 */
static int64_t ended_early_at (const struct segment *s)
{
    return s->found && knows_length (s) && (s->step + 1 < s->attempt.length || ran_beyond (s))
                   && s->step >= least_credible_step (s->w->sweep->exp)
               ? s->step
               : 0;
}

static bool segment_has_result (const struct segment *s, struct segment_report *r)
{
    bool asked = s->deadline > 0 || s->w->stop;
    bool found = s->found || s->w->sweep->exp->job->is_given;

    r->length = s->attempt.length;
    r->ended = ended_early_at (s);
    memcpy (r->values, s->values, sizeof (r->values));
    for (size_t i = 0; i < OBJECTIVES_MAX && !s->found; i++)
        r->values[i] = NAN;
    return WIFEXITED (s->status) && WEXITSTATUS (s->status) == 0 && found
           && ((!asked && !trainer_unread (s->trainer)) || segment_is_complete (s));
}

/* Workers in one job share a cgroup and its counter. */
static enum oom_kill oom_kill_of (const struct segment *s)
{
    if (s->oom_kills < 0 || oom_kills ("") <= s->oom_kills)
        return KILLED_NOTHING;
    return s->w->memory.places == 1 && s->w->memory.bytes > 0 ? KILLED_OWN : KILLED_SOMETHING;
}

/* Whether a job's program ended so soon that the files that it left, such as its log or a core
 * file, are no sign of progress.
 */
static bool died_at_once (const struct segment *s, const struct segment_report *r)
{
    return s->w->sweep->exp->job->is_given && r->seconds < AT_ONCE_SECONDS && WIFEXITED (s->status);
}

/* If somebody killed the first attempt, the script did not fail, so hand on what it saved. */
static void judge_progress (const struct segment *s, struct segment_report *r)
{
    switch (attempt_progress (s->w->sweep, s->attempt.trial, s->attempt.number)) {
    case PROGRESS_NONE:
        r->verdict.free |= sweep_trial (s->w->sweep, s->attempt.trial)->over == 0
                           && signal_of_status (s->status) == SIGKILL && r->verdict.oom == OOM_NONE
                           && folder_has_files (s->attempt.dir, NULL);
        break;
    case PROGRESS_FILES: /* any file counts, but LOST_MAX limits how often */
        r->verdict.free |= !died_at_once (s, r);
        break;
    case PROGRESS_STEPS:
        r->verdict.progress = true;
    }
}

/* If the metrics cannot be read, that is not the program's fault. */
static void judge_loss (const struct segment *s, struct segment_report *r)
{
    r->verdict.last = false;
    r->verdict.free = true;
    if (s->homeless)
        snprintf (r->verdict.why, sizeof (r->verdict.why),
                  "its folder was removed while it trained: %s", s->attempt.dir);
    else
        snprintf (r->verdict.why, sizeof (r->verdict.why), "cannot read its output: %s: %s/log",
                  strerror (trainer_unread (s->trainer)), s->attempt.dir);
    policy_text (r->verdict.why);
}

static void classify_end (const struct segment *s, struct failure_class *v)
{
    failure_classify (&s->attempt, s->status, oom_kill_of (s), &s->heal.first, v);
    v->status = shell_status (s->status);
    if (v->oom != OOM_NONE)
        v->cause = v->oom == OOM_GPU ? REASON_OUT_OF_GPU_MEMORY : REASON_OUT_OF_MEMORY;
    heal_explain (&s->heal, v);
}

static void judge_failure (struct segment *s, struct segment_report *r)
{
    r->outcome = OUTCOME_FAILED;
    classify_end (s, &r->verdict);
    r->peak = trainer_peak (s->trainer);
    judge_progress (s, r);
    /* dl lost the metric, so its absence is not the program's fault */
    if (s->status == 0 && trainer_lost_metrics (s->trainer))
        r->verdict.last = false;
    if (s->homeless || (s->status == 0 && trainer_unread (s->trainer)))
        judge_loss (s, r);
}

/* Wait for a slurmctld that is down. */
static enum job_state await_job_state (struct segment *s)
{
    enum job_state job = allocation_state ();
    double pause = 2;

    while (job == JOB_UNKNOWN && !is_fenced (s) && worker_may_go_on (s->w)) {
        worker_sleep (s->w, pause);
        pause = pause < 60 ? 2 * pause : 60;
        worker_tick (s->w, NULL);
        if ((job = allocation_state ()) == JOB_RUNS)
            return JOB_UNKNOWN;
    }
    return job;
}

/* If the job has ended or slurmctld does not answer, srun starts no ranks or kills them.  The
 * trial has not failed then.
 */
static void judge_step (struct segment *s, struct segment_report *r)
{
    enum job_state job = experiment_has_ranks (s->w->sweep->exp) ? await_job_state (s) : JOB_RUNS;

    if (job == JOB_RUNS || (job == JOB_UNKNOWN && !s->w->stop)) {
        judge_failure (s, r);
        r->verdict.free |= job == JOB_UNKNOWN;
        return;
    }
    r->outcome = is_fenced (s) ? OUTCOME_DROPPED : OUTCOME_PARKED;
    s->w->left_over = job == JOB_ENDED;
    if (s->w->left_over)
        fputs ("dl: the job of this worker has ended; it ends, too\n", stderr);
}

static void judge_overdue (const struct segment *s, struct segment_report *r)
{
    r->outcome = OUTCOME_FAILED;
    r->verdict.last = true;
    r->verdict.cause = REASON_DEADLINE_EXCEEDED;
    snprintf (r->verdict.why, sizeof (r->verdict.why), "active for longer than %s",
              s->w->sweep->exp->job->deadline_text);
}

/* Name the member that decided the result. */
static void judge_member (struct segment *s, struct segment_report *r)
{
    const struct verdict *v = &s->members.verdict;
    char why[sizeof (r->verdict.why)];

    if (v->status) {
        s->status = v->status << 8;
        judge_failure (s, r);
    } else {
        r->outcome = OUTCOME_FAILED;
        snprintf (r->verdict.why, sizeof (r->verdict.why), "it ended, and always restarts");
    }
    snprintf (why, sizeof (why), "%.32s %ld on %.64s: %.380s", v->role, s->members.index,
              s->members.node, r->verdict.why);
    memcpy (r->verdict.why, why, sizeof (why));
    if (r->verdict.cause == REASON_NONE)
        r->verdict.cause = v->reason;
    r->verdict.last |= v->kind == LIFE_FAILED;
}

/* Whether the members decided the result. */
static bool judge_members (struct segment *s, struct segment_report *r)
{
    if (s->w->sweep->exp->job->nroles == 0)
        return false;
    members_look (&s->attempt, trainer_owner (s->trainer), &s->members);
    if (s->members.verdict.kind == LIFE_SUCCEEDED) {
        segment_has_result (s, r);
        r->outcome = OUTCOME_RESULT;
        r->verdict.cause = s->members.verdict.reason;
        return true;
    }
    if (s->members.verdict.kind == LIFE_STARTED || s->w->stop || s->deadline > 0
        || s->heal.verdict.cause != HEAL_NONE)
        return false; /* what ended the step also ended the members */
    judge_member (s, r);
    return true;
}

static void judge_segment (struct segment *s, struct segment_report *r)
{
    r->seconds = monotonic () - s->start;
    if (s->dropped)
        r->outcome = OUTCOME_DROPPED;
    else if (judge_members (s, r))
        return;
    else if (segment_has_result (s, r))
        r->outcome = OUTCOME_RESULT;
    else if (s->early)
        judge_early (s, r);
    else if (s->overdue)
        judge_overdue (s, r);
    else if (WIFEXITED (s->status) && WEXITSTATUS (s->status) == SLURMDL_EXIT_REJECT
             && !s->w->sweep->exp->job->is_given) {
        r->outcome = OUTCOME_REJECTED;
        snprintf (r->verdict.why, sizeof (r->verdict.why),
                  "exit status %d: the training script rejects the point", SLURMDL_EXIT_REJECT);
    } else if (attempt_in_vain (s->w, &s->attempt)) {
        r->outcome = OUTCOME_FAILED;
        r->verdict.cause = REASON_TIME_LIMIT;
        snprintf (r->verdict.why, sizeof (r->verdict.why),
                  "TIMEOUT: the time limit is too short: stopped after %.0f s "
                  "without a checkpoint or progress",
                  r->seconds);
    } else if (s->deadline > 0 || s->w->stop) {
        r->outcome = OUTCOME_PARKED;
        if (*s->idle) {
            r->verdict.cause = REASON_IDLE_GPUS;
            snprintf (r->verdict.why, sizeof (r->verdict.why), "%s", s->idle);
        }
    } else
        judge_step (s, r);
}

static int prepare_attempt (struct segment *s, long trial)
{
    const struct sweep *sweep = s->w->sweep;
    const struct sweep_trial *t = sweep_trial (sweep, trial);

    s->attempt = (struct trial_attempt){ .sweep = sweep,
                                         .trial = trial,
                                         .number = t->over + 1,
                                         .length = t->target,
                                         .socket = *s->w->socket.path ? s->w->socket.path : NULL };
    if (snprintf (s->attempt.dir, sizeof (s->attempt.dir), "%s/trials/%04ld/a.%ld", sweep->dir,
                  trial, s->attempt.number)
        >= (int)sizeof (s->attempt.dir))
        return -1;
    s->attempt.spare = s->w->spare_work;
    work_folder_name (&s->attempt);
    return 0;
}

/* A result that the worker logged itself need not be read back: the metrics are synced together
 * with it.
 */
static bool result_is_in_memory (struct segment *s)
{
    const struct sweep *sweep = s->w->sweep;

    return trainer_succeeded (s) && !s->homeless && sweep_metrics (sweep) == 1
           && sweep->exp->metric->summary[0] == SUMMARY_LAST
           && trainer_newest (s->trainer, &s->step, s->values) && s->step >= s->attempt.length;
}

static int settle_and_poll (struct segment *s, struct slurmdl_error *err)
{
    bool young = monotonic () - s->start < SETTLE_MS / 1e3;

    if (!s->shown && monotonic () - s->start > 1) {
        s->shown = true;
        work_folder_show (&s->attempt);
    }
    if (!young && s->w->sweep->log && sweep_fsync (s->w->sweep, err) < 0)
        return -1;
    poll_trainer (s, young ? SETTLE_MS : s->heal.watch ? RANKS_MS : 1000);
    return 0;
}

static int start_attempt (struct segment *s, struct slurmdl_error *err)
{
    heal_begin (&s->heal, s->w, &s->attempt);
    if (!(s->trainer = trainer_start (&s->attempt, s->attempt.own ? NULL : &s->w->spare, err))) {
        heal_end (&s->heal, s->w, &s->attempt, NULL);
        return -1;
    }
    heal_started (&s->heal, &s->attempt, s->trainer);
    return 0;
}

/* Returns -1 with 'err' if the log of the experiment cannot be read or written. */
static int await_trainer_end (struct segment *s, struct slurmdl_error *err)
{
    int rv = 0;

    while (rv == 0 && !trainer_ended (s->trainer, &s->status)) {
        rv = settle_and_poll (s, err) < 0 ? -1 : worker_tick (s->w, err);
        if (!s->attempt.own) {
            report_news (s);
            notify_watch (s->w->sweep, s->attempt.trial, s->attempt.number, &s->notice);
        }
        check_stop (s);
    }
    s->status = heal_status (&s->heal, s->status);
    return rv;
}

static int train_segment (struct segment *s, struct slurmdl_error *err)
{
    int rv = await_trainer_end (s, err);

    while (rv == 0 && notify_unwatch (&s->notice)) {
        worker_sleep (s->w, 0.02);
        rv = worker_tick (s->w, err);
    }
    if (rv < 0)
        return -1;
    await_lingering (s);
    drain_output (s);
    if (!s->dropped)
        work_folder_settle (&s->attempt, s->status == 0);
    s->homeless = trainer_is_homeless (s->trainer);
    s->in_memory = result_is_in_memory (s);
    if (!s->in_memory && !s->homeless && trainer_flush (s->trainer, err) < 0)
        return -1;
    s->found =
        s->in_memory || (!s->homeless && attempt_metrics (&s->attempt, &s->step, s->values) == 0);
    await_late_signal (s);
    return 0;
}

int segment_run (struct worker *w, long trial, struct segment_report *report,
                 struct slurmdl_error *err)
{
    struct segment s = { .w = w, .start = monotonic (), .oom_kills = oom_kills ("") };
    int rv;

    *report = (struct segment_report){ .outcome = OUTCOME_FAILED, .memory = memory_of_attempt (w) };
    if (prepare_attempt (&s, trial) < 0)
        return errorf (err, "%s: path too long", w->sweep->dir);
    if (searcher_stops (w->sweep->searcher, trial)) {
        /* the last worker died before it could publish the result */
        judge_early (&s, report);
        return 0;
    }
    if (start_attempt (&s, err) < 0)
        return -1;
    log_begin_fsync (w->sweep->log);
    if ((rv = train_segment (&s, err)) == 0)
        judge_segment (&s, report);
    heal_end (&s.heal, w, &s.attempt,
              rv == 0 && report->outcome == OUTCOME_FAILED ? &report->verdict : NULL);
    if (rv == 0 && s.in_memory)
        report->trainer = s.trainer;
    else
        trainer_destroy (s.trainer);
    return rv;
}

void segment_end (struct segment_report *report)
{
    trainer_destroy (report->trainer);
    report->trainer = NULL;
}

/* ---- a command that is not a trial's ---- */

struct worker *command_worker_create (void)
{
    struct worker *w = xcalloc (1, sizeof (*w));

    w->socket.fd = -1;
    return w;
}

void command_worker_destroy (struct worker *w)
{
    free (w);
}

char *command_bad_nodes (const struct worker *w)
{
    char *text = NULL;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    for (int i = 0; i < w->nlost; i++)
        fprintf (f, "%s%s", i ? "," : "", w->lost_nodes[i].name);
    xclose_memstream (f);
    return text;
}

/* Remember the nodes that the check before the start (--dl-check) found bad. */
static void lose_bad_nodes (const struct segment *s, const struct failure_class *v)
{
    char *nodes = failure_bad_nodes (s->attempt.dir);
    char *save = NULL;

    for (char *name = nodes ? strtok_r (nodes, "\n", &save) : NULL; name;
         name = strtok_r (NULL, "\n", &save))
        worker_lose_node (s->w, name);
    if (v->exclude && !nodes)
        worker_lose_node (s->w, s->w->host);
    free (nodes);
}

/* If the job has ended or slurmctld does not answer, a failure of srun is not the command's. */
static void judge_command (const struct segment *s, struct command_report *r)
{
    r->status = s->status;
    r->out_of_time = s->w->timed_out;
    r->stop = r->out_of_time ? 0 : s->w->stop;
    if (r->out_of_time) {
        r->verdict.cause = REASON_TIME_LIMIT;
        snprintf (r->verdict.why, sizeof (r->verdict.why),
                  "TIMEOUT: stopped after %.0f s, before the time limit of its job",
                  monotonic () - s->start);
    } else if (*s->idle) {
        r->idle = true;
        r->verdict.cause = REASON_IDLE_GPUS;
        snprintf (r->verdict.why, sizeof (r->verdict.why), "%s", s->idle);
    }
    if (s->status == 0 || s->w->stop)
        return;
    classify_end (s, &r->verdict);
    r->verdict.free |= experiment_has_ranks (s->w->sweep->exp) && allocation_state () != JOB_RUNS;
    lose_bad_nodes (s, &r->verdict);
}

int command_attempt (struct worker *w, const struct trial_attempt *a, double seconds,
                     struct command_report *r, struct slurmdl_error *err)
{
    struct segment s = {
        .w = w, .attempt = *a, .start = monotonic (), .oom_kills = oom_kills ("")
    };
    bool failed;

    *r = (struct command_report){ .status = -1 };
    w->sweep = (struct sweep *)a->sweep;
    w->end = seconds > 0 ? s.start + seconds : 0;
    w->stop = w->timed_out = 0;
    if (worker_begin (w, err) < 0)
        return -1;
    if (start_attempt (&s, err) < 0) {
        close (w->signals);
        return -1;
    }
    await_trainer_end (&s, NULL); /* it has no log that could fail */
    await_lingering (&s);
    work_folder_settle (&s.attempt, false);
    if (s.status != 0)
        await_late_signal (&s);
    judge_command (&s, r);
    failed = r->status && !r->stop && !r->out_of_time;
    heal_end (&s.heal, w, &s.attempt, failed ? &r->verdict : NULL);
    r->too_few_nodes = failed && worker_is_excluded (w);
    trainer_destroy (s.trainer);
    close (w->signals);
    return 0;
}
