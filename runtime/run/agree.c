/* SPDX-License-Identifier: Apache-2.0 */
/* Stop all ranks at the same step. */
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/run/run.h"
#include "runtime/run/session.h"

/* Rank 0 publishes grants: "no call up to number G stops".  A call up to G costs a
 * rank one comparison and returns 0.  For a later call, the rank waits for the next
 * grant.  Each grant raises G, except the last: it says stop, and every call above
 * G returns 1.  So the result of a call depends only on its number and on the last
 * grant, no matter which grants a rank has read.  No two ranks disagree.  Grants
 * reach about a second ahead, so a rank rarely has to wait, and a stop takes about
 * that long.
 */
struct grant {
    uint64_t last;
    uint32_t stop;
    uint32_t reserved;
};

struct agreement {
    uint64_t calls;
    uint64_t granted;
    bool stop;   /* calls above 'granted' stop */
    bool told;   /* this rank has told rank 0 that it wants to stop */
    double when; /* rank 0: time of the last grant, or 0 */
    uint64_t at; /* rank 0: calls at that time */
};

static const double AHEAD = 1; /* seconds */
enum { AHEAD_MAX = 1 << 20 };

static bool wanted_by_any (struct slurmdl *run)
{
    if (slurmdl_should_stop (run))
        return true;
    for (long r = 1; r < run->size; r++) {
        void *data;
        size_t n;
        if (session_poll (run->session, r, "halt", &data, &n) == SESSION_HAS) {
            free (data);
            return true;
        }
    }
    return false;
}

/* The calls that fit into about a second, but at most twice as many as in the last
 * grant.
 */
static uint64_t how_far (struct agreement *a)
{
    double t = monotonic ();
    uint64_t before = a->granted - a->at;
    uint64_t n = 1;

    if (a->when > 0) {
        double each = (t - a->when) / (double)(a->calls - a->at + 1);
        n = each * AHEAD_MAX > AHEAD ? (uint64_t)(AHEAD / each) : AHEAD_MAX;
        if (n > 2 * before + 1)
            n = 2 * before + 1;
    }
    a->when = t;
    a->at = a->calls;
    return n ? n : 1;
}

static int give_grant (struct slurmdl *run, struct agreement *a)
{
    struct grant g = { .last = a->granted };

    if (wanted_by_any (run))
        g.stop = 1;
    else
        g.last = a->calls + how_far (a);
    if (session_put (run->session, "go", &g, sizeof (g)) < 0)
        return -1;
    a->granted = g.last;
    a->stop = g.stop;
    return 0;
}

static bool grant_decides (const void *data, size_t n, const void *arg)
{
    const struct grant *g = data;
    const struct agreement *a = arg;

    return n == sizeof (*g) && (g->stop || g->last >= a->calls);
}

static int take_agreement (struct slurmdl *run, struct agreement *a)
{
    struct grant *g;
    size_t n;

    if (session_wait (run->session, 0, "go", grant_decides, a, (void **)&g, &n, NULL) < 0)
        return -1;
    a->granted = g->last;
    a->stop = g->stop;
    free (g);
    return 0;
}

static int post_agreement (struct slurmdl *run, struct agreement *a)
{
    if (run->rank == 0)
        return give_grant (run, a);
    if (!a->told && slurmdl_should_stop (run)) {
        session_put (run->session, "halt", "", 0);
        a->told = true;
    }
    return take_agreement (run, a);
}

static struct agreement *agreement_of (struct slurmdl *run)
{
    if (!run->agreement && session_join (run, NULL) == 0)
        run->agreement = calloc (1, sizeof (*run->agreement));
    return run->agreement;
}

int slurmdl_stop_here (struct slurmdl *run, int64_t step)
{
    struct agreement *a;

    (void)step;
    if (run->size == 1)
        return slurmdl_should_stop (run);
    if (!(a = agreement_of (run)))
        return -1;
    a->calls++;
    while (a->calls > a->granted && !a->stop)
        if (post_agreement (run, a) < 0)
            return -1;
    if (a->calls <= a->granted)
        return 0;
    stop_told ();
    return 1;
}

void agreement_destroy (struct agreement *a)
{
    free (a);
}
