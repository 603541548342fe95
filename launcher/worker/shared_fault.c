/* SPDX-License-Identifier: Apache-2.0 */
/* Pause an experiment whose attempts all fail in the same way. */
#include "launcher/worker/shared_fault.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/faults.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/trainer/resume_dir.h"
#include "launcher/worker/notify.h"
#include "runtime/base/clock.h"

/* s that a worker waits for others at most, and before it takes their turn;
 * s that the first attempts of an experiment have to log a metric
 */
#define HOLD_MAX 60.0
#define TURN     0.2
#define START    3.0

static bool anything_open (const struct sweep *s, long but)
{
    return s->nopen > 1 || (s->nopen == 1 && s->open[0] != but);
}

/* Whether the search goes on when 'failed' (0: none) has been given up. */
static bool goes_on (const struct sweep *s, long failed)
{
    double *x = calloc (s->exp->nparams + 1, sizeof (*x));
    struct searcher *copy = searcher_copy (s->searcher);
    enum search_answer answer = SEARCH_WAIT;
    struct search_op op;

    if (copy && x && (!failed || searcher_exit (copy, failed) == 0))
        answer = searcher_ask (copy, &op, x);
    searcher_destroy (copy);
    free (x);
    return answer != SEARCH_DONE;
}

bool fault_spares_trial (const struct worker *w, long trial, const char *why)
{
    const struct sweep *s = w->sweep;
    const struct fault *f = fault_like (s, why);

    return f && f->count + 1 >= FAULT_LIMIT && (anything_open (s, trial) || goes_on (s, trial));
}

/* The host as its peers name it, which may not be Slurm's name of the node. */
static const char *own_host (const struct worker *w, const struct peer_info *list, long n)
{
    for (long i = 0; i < n; i++)
        if (!strcmp (list[i].nonce, worker_nonce (w)))
            return list[i].host;
    return NULL;
}

static bool works_elsewhere (struct worker *w)
{
    struct peer_info *list = NULL;
    long n = peer_list (w->sweep->dir, &list, NULL);
    const char *here = own_host (w, list, n);
    bool found = false;

    for (long i = 0; here && i < n && !found; i++)
        found = !list[i].gone && strcmp (list[i].host, here)
                && !peer_dead (w->peer, list[i].nonce, w->sweep->exp->lease);
    free (list);
    return found;
}

static int attempts_elsewhere (struct worker *w)
{
    int n = 0;

    for (long i = 0; i < w->sweep->nopen; i++)
        n += worker_trains (w, w->sweep->open[i]);
    return n;
}

/* Those at work may soon show that the fault is shared; it is not waited for
 * longer than that took so far.  Who failed last is the first to go on.
 */
static bool holds_back (struct worker *w)
{
    const struct fault *f = fault_most (w->sweep);
    double now = monotonic ();

    if (!f)
        return false;
    if (w->held != f->count) {
        w->held = f->count;
        w->held_until = now + fmin (2 * f->seconds + 1, HOLD_MAX);
        if (f->count + 1 == FAULT_LIMIT && strcmp (f->slot, w->slot))
            worker_sleep (w, TURN);
    }
    return now < w->held_until && f->count + attempts_elsewhere (w) >= FAULT_LIMIT;
}

/* Slots are numbered: local-PID-1 ..., JOB_0 ... or JOB_0.0 ... */
static bool begins_later (const struct worker *w)
{
    long n, lane = 0;

    if (sscanf (w->slot, "local-%*d-%ld", &n) == 1)
        return n > FAULT_LIMIT;
    return sscanf (w->slot, "%*d_%ld.%ld", &n, &lane) >= 1
           && (n >= FAULT_LIMIT || lane >= FAULT_LIMIT);
}

/* A script that has logged a metric came through its imports and arguments. */
static bool has_logged (const struct sweep *s, long trial)
{
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, trial,
              sweep_trial (s, trial)->over + 1);
    return attempt_has_logged (dir);
}

static bool works_somewhere (const struct sweep *s)
{
    bool found = s->nresults > 0;

    for (long i = 1; i <= s->ntrials && i <= FAULT_LIMIT && !found; i++)
        found = has_logged (s, i);
    return found;
}

int fault_let_others_begin (struct worker *w, double pause, struct slurmdl_error *err)
{
    double end = monotonic () + START;
    double left;

    if (!begins_later (w))
        return 0;
    while (!works_somewhere (w->sweep) && worker_may_go_on (w) && (left = end - monotonic ()) > 0) {
        worker_sleep (w, fmin (pause, left));
        if (sweep_sync (w->sweep, err) < 0)
            return -1;
    }
    return 0;
}

bool fault_pauses (struct worker *w, const char *why)
{
    const struct fault *f = fault_like (w->sweep, why);

    return f && f->count + 1 >= FAULT_LIMIT
           && (!f->host || f->spread || strcmp (f->host, w->host) || !works_elsewhere (w));
}

bool fault_is_known (const struct worker *w, const char *why)
{
    const struct fault *f = fault_like (w->sweep, why);

    return sweep_is_faulty (w->sweep) && f && f->count >= FAULT_LIMIT;
}

enum turn fault_stop (struct worker *w, struct slurmdl_error *err)
{
    const struct fault *f = fault_shared (w->sweep);
    struct event event;
    int rv;

    if (!f && holds_back (w))
        return TURN_WAIT;
    if (!f || (!anything_open (w->sweep, 0) && !goes_on (w->sweep, 0)))
        return TURN_IDLE;
    if (f->host && !f->spread && strcmp (f->host, w->host))
        return TURN_IDLE;
    if (f->host && !f->spread && works_elsewhere (w))
        return TURN_WAIT;
    event = (struct event){
        .op = EVENT_PAUSE, .by = w->slot, .trial = f->trial, .attempt = f->attempt, .why = f->why
    };
    if ((rv = worker_publish (w, &event, 1, err)) == 0)
        notify_fault (w->sweep);
    return rv < 0 ? TURN_FAILED : TURN_DONE;
}
