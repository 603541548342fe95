/* SPDX-License-Identifier: Apache-2.0 */
/* Processes come into worlds: who is in which is agreed by files. */
#include "runtime/comm/elastic/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/net/socket.h"

/* s: for those that wait to answer when a world is formed, at most */
static const double answer = 2;
/* s: that one waits who was left out as it could not be reached; and for a
 * look whether it can, of any new one */
static const double penalty_min = 10, penalty_max = 300, reach = 2;

/* What a process does until it is in a world. */
struct meeting {
    struct gate *g;
    struct signs view;
    struct world *last; /* the newest world, NULL: none yet */
    uint64_t put;       /* the world for which we have put our seat */
    bool asked;
    double begin;
    double called; /* since when we see that a world is formed; 0: not yet */
    double changed;
    long count;
};

/* ---- to look ---- */

static bool was_in_last (const struct meeting *m, const struct seat *s)
{
    return m->last && s->was == m->last->generation;
}

/* Since when we wait for a world that is being formed; who waits to be taken in
 * waits for none until it is called, as long as that takes.
 */
static double since (const struct meeting *m)
{
    if (!m->last || was_in_last (m, &m->g->self))
        return m->begin;
    return m->called > 0 ? m->called : monotonic ();
}

/* The newest world, and what it means for us: 1 if we have come into it. */
static int look_at_world (struct meeting *m)
{
    struct gate *g = m->g;
    struct world *w;

    if (m->view.highest == 0
        || (m->last && m->last->generation == m->view.highest))
        return 0;
    if (!(w = folder_get_world (g->dir, m->view.highest)))
        return 0;
    g->since = since (m);
    free (m->last);
    m->last = w;
    m->called = m->count = 0;
    if (g->world && g->world->generation == w->generation)
        return 0;
    for (long r = 0; r < w->size; r++)
        if (w->seats[r].self.nonce == g->self.self.nonce) {
            g->rank = r;
            return 1;
        }
    return 0;
}

/* We were left out as there was no way to us, though we live and see the
 * folder: to ask again at once would only hold the others up.
 */
static void hold_off (struct gate *g)
{
    g->penalty = g->penalty > 0 ? g->penalty * 2 : penalty_min;
    if (g->penalty > penalty_max)
        g->penalty = penalty_max;
    g->hold = monotonic () + g->penalty;
    g->self.fate = FATE_GOOD;
}

/* The world went on without us: as it is large enough (1), or because we were
 * thought to be lost; then we come in as a new one.
 */
static int passed_over (struct meeting *m)
{
    struct gate *g = m->g;

    if (!m->last || g->self.was == 0 || g->self.was == m->last->generation)
        return 0;
    if (g->self.was == m->last->generation - 1
        && m->last->size >= m->last->wanted)
        return 1;
    if (g->self.fate != FATE_GOOD)
        hold_off (g);
    g->self.was = 0;
    g->self.was_rank = -1;
    return 0;
}

static bool is_called (const struct meeting *m, uint64_t next)
{
    for (long i = 0; i < m->view.nsigns; i++)
        if (m->view.signs[i].generation == next
            && was_in_last (m, &m->view.signs[i].seat))
            return true;
    return false;
}

/* How many of those that have come know that the host does not answer. */
static long accusers (const struct meeting *m, uint64_t next, const char *host)
{
    long n = 0;

    for (long i = 0; i < m->view.nsigns; i++) {
        const struct sign *s = &m->view.signs[i];
        for (long r = 0; s->generation == next && r < m->last->size; r++)
            n += m->last->seats[r].self.nonce == s->seat.silent
                 && !strcmp (m->last->seats[r].host, host);
    }
    return n;
}

/* Seconds to wait for those of the newest world that have neither come nor are
 * known to be over: a part of it where their hosts do not answer.
 */
static double grace (const struct meeting *m, uint64_t next)
{
    double s = 0;

    for (long r = 0; m->last && r < m->last->size; r++) {
        const struct seat *seat = &m->last->seats[r];
        if (signs_find (&m->view, next, seat->self.nonce)
            || signs_is_over (&m->view, seat, &m->g->self))
            continue;
        if (accusers (m, next, seat->host) == 0)
            return m->g->settle;
        s = m->g->settle / 4;
    }
    return s;
}

/* All of the newest world have gone, and left us alone. */
static bool is_deserted (const struct meeting *m)
{
    for (long r = 0; m->last && r < m->last->size; r++)
        if (!signs_is_over (&m->view, &m->last->seats[r], &m->g->self))
            return false;
    return m->last;
}

static bool has_ended_well (const struct meeting *m)
{
    bool any = false;

    for (long r = 0; m->last && r < m->last->size; r++)
        any |= signs_has_bye (&m->view, m->last->seats[r].self.nonce);
    return any && is_deserted (m);
}

/* ---- to put our seat ---- */

/* Whether there is a way from us to the world: its last rank listens, too, and
 * the kernel answers for it.
 */
static bool reaches (struct gate *g, const struct world *w)
{
    const struct seat *s = &w->seats[w->size - 1];
    int fd = socket_connect (
        world_host (w, s, &g->self), s->port, monotonic () + reach);

    if (fd >= 0) {
        close (fd);
        return true;
    }
    g->hold = monotonic () + reach;
    return false;
}

static bool may_ask (struct meeting *m)
{
    if (!m->last || was_in_last (m, &m->g->self) || m->asked)
        return true;
    return monotonic () >= m->g->hold
           && (is_deserted (m) || reaches (m->g, m->last));
}

static int put_seat (struct meeting *m, uint64_t next)
{
    struct gate *g = m->g;
    const struct sign *mine = signs_find (&m->view, 0, g->self.self.nonce);
    bool in = !m->last || was_in_last (m, &g->self) || is_called (m, next)
              || is_deserted (m);

    if (!may_ask (m))
        return 0;
    /* rank 0 takes back what was not answered in time */
    if (m->last && !was_in_last (m, &g->self) && !mine
        && folder_put_seat (g->dir, 0, &g->self) < 0)
        return -1;
    m->asked |= m->last && !was_in_last (m, &g->self);
    if (!in || m->put == next)
        return 0;
    m->put = next;
    return folder_put_seat (g->dir, next, &g->self);
}

/* ---- to decide ---- */

/* Survivors that have agreed on a number have made ready for that. */
static long agreed (const struct meeting *m)
{
    long n = 0;

    for (long i = 0; i < m->view.nsigns; i++) {
        const struct sign *s = &m->view.signs[i];
        if (s->generation && was_in_last (m, &s->seat) && s->seat.wish)
            n = (long)s->seat.wish;
    }
    return n;
}

static long wanted (const struct meeting *m)
{
    long n = agreed (m);

    if (n <= 0)
        n = m->view.target;
    if (n <= 0)
        n = m->last ? m->last->wanted : m->g->start;
    return gate_bounded (m->g, n);
}

/* Whether all that can be waited for is there. */
static bool is_complete (struct meeting *m, uint64_t next)
{
    double now = monotonic ();
    long n = signs_count (&m->view, next);
    long want = wanted (m);

    if (n != m->count) {
        m->count = n;
        m->changed = now;
    }
    if (!m->called && n > 0)
        m->called = now;
    if (!m->called)
        return false;
    if (!m->last)
        return n >= want || now - m->changed > m->g->settle;
    if (now - m->called < grace (m, next))
        return false;
    return n >= want || signs_waiting (&m->view, &m->g->self, next) == 0
           || now - m->called > (answer < m->g->settle ? answer : m->g->settle);
}

/* Survivors in their order; then nodes that dl elastic has started, in its
 * order, and in each its ranks.
 */
static int compare_seats (const void *a, const void *b)
{
    const struct seat *x = a;
    const struct seat *y = b;
    long ux = atol (x->unit), uy = atol (y->unit);

    if (!x->was != !y->was)
        return x->was ? -1 : 1;
    if (x->was && x->was_rank != y->was_rank)
        return x->was_rank < y->was_rank ? -1 : 1;
    if (ux != uy)
        return ux < uy ? -1 : 1;
    if (x->local != y->local)
        return x->local < y->local ? -1 : 1;
    return x->self.nonce < y->self.nonce ? -1 : x->self.nonce > y->self.nonce;
}

static void count_changes (const struct meeting *m, struct world *w, long came)
{
    for (long r = 0; r < w->size; r++)
        w->kept += w->seats[r].was != 0;
    w->left = came - w->kept;
    if (m->last)
        w->lost = m->last->size - came;
}

/* Of a world whose ranks did not all meet, those that rank 0 has met and those
 * that it has not do not reach each other: the more of them go on.
 */
static enum fate outcast (const struct meeting *m, uint64_t next)
{
    long n[3] = { 0 };

    for (long i = 0; i < m->view.nsigns; i++) {
        const struct sign *s = &m->view.signs[i];
        if (s->generation == next && was_in_last (m, &s->seat)
            && s->seat.fate >= 0 && s->seat.fate < 3)
            n[s->seat.fate]++;
    }
    if (n[FATE_ALONE] == 0 || n[FATE_TOLD] == 0)
        return FATE_GOOD;
    return n[FATE_ALONE] > n[FATE_TOLD] ? FATE_TOLD : FATE_ALONE;
}

/* Who sees the folder and not the ranks on most of the hosts. */
static bool
is_cut_off (const struct meeting *m, uint64_t next, const struct seat *s)
{
    return s->was
           && 2 * accusers (m, next, s->host) > signs_count (&m->view, next);
}

static struct world *make_world (struct meeting *m, uint64_t next)
{
    enum fate out = outcast (m, next);
    long n = signs_count (&m->view, next);
    struct world *w = calloc (1, sizeof (*w) + (size_t)n * sizeof (*w->seats));
    long came = 0;

    if (!w)
        return NULL;
    w->generation = next;
    w->wanted = wanted (m);
    if (getrandom (&w->key, sizeof (w->key), 0) != sizeof (w->key))
        w->key = m->g->self.self.nonce + next;
    for (long i = 0; i < m->view.nsigns; i++) {
        struct seat s = m->view.signs[i].seat;
        if (m->view.signs[i].generation != next)
            continue;
        if (!was_in_last (m, &s))
            s.was = 0;
        if (is_cut_off (m, next, &s)
            || (s.was && out != FATE_GOOD && s.fate == (int32_t)out))
            continue;
        came += s.was != 0;
        w->seats[w->size++] = s;
    }
    qsort (w->seats, (size_t)w->size, sizeof (*w->seats), compare_seats);
    if (w->size > w->wanted)
        w->size = w->wanted;
    count_changes (m, w, came);
    return w;
}

static int decide (struct meeting *m, uint64_t next, struct slurmdl_error *err)
{
    struct world *w;
    int rv;

    if (m->put != next || !is_complete (m, next) || m->count < m->g->min)
        return 0;
    if (!(w = make_world (m, next)))
        return errorf (err, "out of memory");
    rv = w->size < m->g->min ? 0 : folder_put_world (m->g->dir, w);
    free (w);
    if (rv < 0)
        return errorf (
            err, "%s: cannot write: %s", m->g->dir, strerror (errno));
    return 0;
}

/* ---- to wait ---- */

static int late (const struct meeting *m, struct slurmdl_error *err)
{
    errno = ETIMEDOUT;
    return errorf (err,
                   "%ld of at least %ld ranks came in %.0f s "
                   "(DL_ELASTIC_TIMEOUT) to %s",
                   m->count,
                   m->g->min,
                   m->g->timeout,
                   m->g->dir);
}

static int
not_needed (const struct gate *g, const char *why, struct slurmdl_error *err)
{
    folder_take_ask (g->dir, g->self.self.nonce);
    errno = ECANCELED;
    return errorf (err, "this rank is not needed: %s", why);
}

/* 1: we are in a new world, 0: not yet. */
static int turn (struct meeting *m, struct slurmdl_error *err)
{
    struct gate *g = m->g;
    int rv;

    if (signs_look (&m->view, g->dir, err) < 0)
        return -1;
    if ((rv = look_at_world (m)) != 0)
        return rv;
    if (passed_over (m))
        return not_needed (g, "the world is to be smaller", err);
    if (has_ended_well (m))
        return not_needed (g, "the training has ended", err);
    if (put_seat (m, m->view.highest + 1) < 0)
        return errorf (err, "%s: cannot write: %s", g->dir, strerror (errno));
    return decide (m, m->view.highest + 1, err);
}

static void nap (const struct meeting *m, long *us)
{
    bool idle = m->last && !m->called;
    struct timespec t = { 0, (idle ? 100000 : *us) * 1000 };

    nanosleep (&t, NULL);
    if (*us < 20000)
        *us += *us / 2;
}

static bool is_late (const struct meeting *m)
{
    return monotonic () - since (m) > m->g->timeout;
}

static int new_listener (struct gate *g, struct slurmdl_error *err)
{
    if (g->listener < 0 && (g->listener = socket_listen (NULL, 0)) < 0)
        return errorf (err, "cannot listen: %s", strerror (errno));
    g->self.port = socket_port (g->listener);
    return 0;
}

int gate_form (struct gate *g, struct slurmdl_error *err)
{
    struct meeting m = { .g = g, .begin = monotonic () };
    long us = 500;
    int rv;

    if (new_listener (g, err) < 0)
        return -1;
    while ((rv = turn (&m, err)) == 0) {
        if (is_late (&m)) {
            rv = late (&m, err);
            break;
        }
        nap (&m, &us);
    }
    if (rv == 1) {
        free (g->world);
        g->world = m.last;
        m.last = NULL;
        gate_outlast (g->world);
        g->anew = g->world->seats[g->rank].was == 0;
        g->self.fate = FATE_GOOD;
        g->self.silent = 0;
        g->self.was = g->world->generation;
        g->self.was_rank = g->rank;
        if (m.asked)
            folder_take_ask (g->dir, g->self.self.nonce);
    }
    free (m.last);
    signs_free (&m.view);
    return rv == 1 ? 0 : -1;
}
