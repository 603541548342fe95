/* SPDX-License-Identifier: Apache-2.0 */
/* Run one attempt at a segment to its end, whatever that is. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "launcher/peer.h"
#include "launcher/trainer.h"
#include "launcher/worker.h"
#include "runtime/error.h"

struct segment {
    struct worker *w;
    struct attempt attempt;
    struct trainer *trainer;
    double start;
    double deadline; /* when a trainer that was asked to stop is killed */
    bool dropped;
    int status;
};

static bool fenced (const struct segment *s)
{
    const struct trial *t = sweep_trial (s->w->sweep, s->attempt.trial);

    return t->over >= s->attempt.number;
}

static void ask_to_stop (struct segment *s)
{
    if (s->deadline == 0) {
        trainer_signal (s->trainer, SIGTERM);
        s->deadline = monotonic () + (double)s->w->sweep->exp->grace;
    }
}

static void look_around (struct segment *s)
{
    if (fenced (s)) {
        s->dropped = true;
        trainer_signal (s->trainer, SIGKILL);
    }
    if (s->w->stop || s->w->sweep->state != SWEEP_RUNNING)
        ask_to_stop (s);
    if (s->deadline && monotonic () > s->deadline)
        trainer_signal (s->trainer, SIGKILL);
}

static void wait_for_something (struct segment *s)
{
    struct pollfd p[3] = {
        { .fd = s->w->signals, .events = POLLIN },
        { .fd = trainer_fd (s->trainer), .events = POLLIN },
        { .fd = s->w->socket, .events = POLLIN },
    };

    if (poll (p, 3, 1000) <= 0)
        return;
    while (p[0].revents && worker_signal (s->w))
        ;
    if (p[1].revents)
        trainer_read (s->trainer);
    if (p[2].revents)
        socket_serve (s->w, s->trainer);
}

/* What was in the pipe when the command ended; a process that has left the
 * group may hold the pipe open for ever.
 */
static void drain (struct segment *s)
{
    struct pollfd p = { .events = POLLIN };

    while ((p.fd = trainer_fd (s->trainer)) >= 0 && poll (&p, 1, 0) == 1)
        trainer_read (s->trainer);
    p.fd = s->w->socket;
    while (p.fd >= 0 && poll (&p, 1, 0) == 1)
        socket_serve (s->w, s->trainer);
}

/* Slurm signals all processes of the step: the trainer may have died of a
 * signal that the worker is only about to read.
 */
static void late_signal (struct segment *s)
{
    struct pollfd p = { .fd = s->w->signals, .events = POLLIN };

    if (!WIFSIGNALED (s->status) || s->w->stop
        || (WTERMSIG (s->status) != SIGTERM && WTERMSIG (s->status) != SIGUSR2))
        return;
    while (poll (&p, 1, 500) == 1 && worker_signal (s->w))
        ;
}

static void why_failed (struct segment *s, struct report *r)
{
    if (WIFSIGNALED (s->status))
        snprintf (r->why,
                  sizeof (r->why),
                  "killed by signal %d (%s)",
                  WTERMSIG (s->status),
                  strsignal (WTERMSIG (s->status)));
    else if (WEXITSTATUS (s->status) > 128)
        /* how a shell passes on that its command was killed */
        snprintf (r->why,
                  sizeof (r->why),
                  "exit status %d (%s)",
                  WEXITSTATUS (s->status),
                  strsignal (WEXITSTATUS (s->status) - 128));
    else if (WEXITSTATUS (s->status))
        snprintf (
            r->why, sizeof (r->why), "exit status %d", WEXITSTATUS (s->status));
    else
        snprintf (r->why,
                  sizeof (r->why),
                  "ended without logging the metric \"%s\"",
                  s->w->sweep->exp->metric);
}

static void judge (struct segment *s, struct report *r)
{
    bool asked = s->deadline > 0 || s->w->stop;
    bool ok = WIFEXITED (s->status) && WEXITSTATUS (s->status) == 0;
    int64_t step;

    r->seconds = monotonic () - s->start;
    r->metric = NAN;
    if (s->dropped)
        r->outcome = OUTCOME_DROPPED;
    else if (ok && attempt_metric (&s->attempt, &step, &r->metric) == 0
             && (!asked || step >= s->attempt.length))
        r->outcome = OUTCOME_RESULT;
    else if (asked)
        r->outcome = OUTCOME_PARKED;
    else {
        r->outcome = OUTCOME_FAILED;
        why_failed (s, r);
    }
}

static int prepare (struct segment *s, long trial)
{
    const struct sweep *sweep = s->w->sweep;
    const struct trial *t = sweep_trial (sweep, trial);

    s->attempt =
        (struct attempt){ .sweep = sweep,
                          .trial = trial,
                          .number = t->over + 1,
                          .length = t->target,
                          .socket =
                              *s->w->socket_dir ? s->w->socket_path : NULL };
    return snprintf (s->attempt.dir,
                     sizeof (s->attempt.dir),
                     "%s/trials/%04ld/a.%ld",
                     sweep->dir,
                     trial,
                     s->attempt.number)
                   < (int)sizeof (s->attempt.dir)
               ? 0
               : -1;
}

int segment_run (struct worker *w,
                 long trial,
                 struct report *report,
                 struct slurmdl_error *err)
{
    struct segment s = { .w = w, .start = monotonic () };
    int rv = 0;

    *report = (struct report){ .outcome = OUTCOME_FAILED };
    if (prepare (&s, trial) < 0)
        return errorf (err, "%s: path too long", w->sweep->dir);
    if (!(s.trainer = trainer_start (&s.attempt, err)))
        return -1;
    while (rv == 0 && !trainer_ended (s.trainer, &s.status)) {
        wait_for_something (&s);
        rv = worker_tick (w, err);
        look_around (&s);
    }
    if (rv == 0) {
        drain (&s);
        late_signal (&s);
        if (trainer_flush (s.trainer, err) < 0)
            rv = -1;
    }
    if (rv == 0)
        judge (&s, report);
    trainer_destroy (s.trainer);
    return rv;
}
