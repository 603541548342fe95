/* SPDX-License-Identifier: Apache-2.0 */
/* Stop all ranks at the same step. */
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/run/run.h"
#include "runtime/run/session.h"

/* Rank 0 grants: "no call up to number G stops".  A rank answers a call up to
 * G with 0 and a comparison; for one above it waits for the next grant.  Each
 * grant has a greater G than the one before, and the last one says stop: then
 * all calls above the G before it answer 1.  So what a call answers follows
 * from its number and from the last grant, whichever a rank reads: no two
 * ranks disagree.
 * Grants reach about a second ahead, so a rank seldom asks, and a stop is
 * that late.
 */
struct grant {
    uint64_t last;
    uint32_t stop;
    uint32_t reserved;
};

struct agreement {
    uint64_t calls;
    uint64_t granted;
    bool stop;   /* above 'granted' */
    bool told;   /* this rank has told rank 0 that it wants to stop */
    double when; /* rank 0: of the last grant; 0: there was none */
    uint64_t at; /* the calls then */
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

/* As many calls as there are in about a second, at most twice as many as
 * before.
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

static int give (struct slurmdl *run, struct agreement *a)
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

static bool decides (const void *data, size_t n, const void *arg)
{
    const struct grant *g = data;
    const struct agreement *a = arg;

    return n == sizeof (*g) && (g->stop || g->last >= a->calls);
}

static int take_agreement (struct slurmdl *run, struct agreement *a)
{
    struct grant *g;
    size_t n;

    if (session_wait (run->session, 0, "go", decides, a, (void **)&g, &n, NULL) < 0)
        return -1;
    a->granted = g->last;
    a->stop = g->stop;
    free (g);
    return 0;
}

static int post_agreement (struct slurmdl *run, struct agreement *a)
{
    if (run->rank == 0)
        return give (run, a);
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
