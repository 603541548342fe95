/* SPDX-License-Identifier: Apache-2.0 */
/* What changes in an experiment, as lines into a file or a pipe. */
#include "launcher/progress/changes.h"

#include <stdio.h>
#include <stdlib.h>

#include "launcher/format/text.h"
#include "launcher/sys/array.h"
#include "launcher/sys/disk_reserve.h"
#include "runtime/base/clock.h"

enum { REJECTED = -1 };

/* What was already said of a trial. */
struct reported {
    int64_t length;
    int fails;
};

static int add_reported (struct changes *c, const struct sweep *s)
{
    while (c->nreported < s->ntrials) {
        struct reported *list =
            array_grow (c->reported, (size_t)c->nreported, sizeof (*list));
        if (!list)
            return -1;
        c->reported = list;
        list[c->nreported++] = (struct reported){ 0, 0 };
    }
    return 0;
}

static void
say_space (struct changes *c, const struct sweep *s, const char *elapsed)
{
    bool full = s->state == SWEEP_RUNNING && disk_reserve_is_spent (s->dir);

    if (full != c->full)
        printf ("%8s  %s\n",
                elapsed,
                full ? DISK_RESERVE_SPENT : "there is space again");
    c->full = full;
}

void changes_say (struct changes *c, const struct sweep *s)
{
    char elapsed[32];

    if (add_reported (c, s) < 0)
        return;
    duration_text (elapsed, sizeof (elapsed), monotonic () - c->start);
    say_space (c, s, elapsed);
    for (long i = 0; i < s->ntrials; i++) {
        const struct sweep_trial *t = &s->trials[i];
        struct reported *r = &c->reported[i];
        if (t->fails != r->fails)
            printf ("%8s  trial %-4ld failed (%d): %s\n",
                    elapsed,
                    i + 1,
                    t->fails,
                    t->why ? t->why : "");
        if (t->state == TRIAL_REJECTED && r->length != REJECTED)
            printf ("%8s  trial %-4ld rejected\n", elapsed, i + 1);
        else if (t->length != r->length && r->length != REJECTED)
            printf ("%8s  trial %-4ld length %-6lld %s %.6g%s\n",
                    elapsed,
                    i + 1,
                    (long long)t->length,
                    s->exp->metric,
                    t->metric,
                    t->stopped ? "  stopped early"
                    : i + 1 == s->best && t->length == t->best_length ? "  best"
                                                                      : "");
        r->length = t->state == TRIAL_REJECTED ? REJECTED : t->length;
        r->fails = t->fails;
    }
    fflush (stdout);
}

void changes_skip (struct changes *c, const struct sweep *s)
{
    if (add_reported (c, s) < 0)
        return;
    for (long i = 0; i < s->ntrials; i++) {
        const struct sweep_trial *t = &s->trials[i];
        c->reported[i].length =
            t->state == TRIAL_REJECTED ? REJECTED : t->length;
        c->reported[i].fails = t->fails;
    }
}

void changes_free (struct changes *c)
{
    free (c->reported);
    *c = (struct changes){ 0 };
}
