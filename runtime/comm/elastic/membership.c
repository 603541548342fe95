/* SPDX-License-Identifier: Apache-2.0 */
/* Form a generation: agree on its members through files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/elastic/elastic.h"
#include "runtime/comm/elastic/folder.h"
#include "runtime/comm/net/socket.h"

/* seconds between two looks */
static const double poll_interval = 0.5;

/* Limit a number of ranks to the run's minimum and maximum. */
static long membership_bounded (const struct membership *g, long n)
{
    if (g->max > 0 && n > g->max)
        n = g->max;
    return n < g->min ? g->min : n;
}

long membership_request (struct membership *g)
{
    double now = monotonic ();
    struct signs v = { 0 };
    long asked, want, size = g->generation->size;
    bool more, over;

    if (g->by_hand || now - g->looked < poll_interval || signs_look (&v, g->folder.path, NULL) < 0)
        return 0;
    g->looked = now;
    want = membership_bounded (g, v.target > 0 ? v.target : g->generation->wanted);
    asked = signs_waiting (&v, &g->self, 0);
    /* the ranks of a node arrive together: check whether more do */
    more = want > size && asked > 0 && asked == g->asked;
    g->asked = asked;
    over = v.highest > g->generation->number;
    signs_free (&v);
    if (over)
        return REQUEST_OVER;
    return want < size || more ? want : 0;
}

/* If a rank of the previous generation is in the new one, the old one has ended.
 * Otherwise its ranks were only declared over and may be alive: wait until
 * membership_request() must have shown them the new one.
 */
static void membership_outlast (const struct generation *w)
{
    struct timespec t = { (time_t)(2 * poll_interval), 0 };

    if (w->number > 1 && w->kept == 0)
        nanosleep (&t, NULL);
}

/* most seconds that waiting processes get to answer when a generation is formed */
static const double answer = 2;
/* seconds that a process waits if it was left out because nobody could reach it;
 * and seconds for a new process to test whether it can reach the generation
 */
static const double penalty_min = 10, penalty_max = 300, reach = 2;

/* State of a process until it is in a generation. */
struct formation {
    struct membership *g;
    struct signs view;
    struct generation *last; /* newest generation, or NULL */
    uint64_t put;            /* generation for which we have written our entry */
    bool asked;
    double begin;
    double called; /* when we saw that a generation is being formed; 0: not yet */
    double changed;
    long count;
};

/* ---- looking ---- */

static bool was_in_last (const struct formation *m, const struct elastic_member *s)
{
    return m->last && s->was == m->last->number;
}

/* Since when we have been waiting for a generation in formation.  A process that
 * asks to be admitted waits for none until it is called, however long that takes.
 */
static double waiting_since (const struct formation *m)
{
    if (!m->last || was_in_last (m, &m->g->self))
        return m->begin;
    return m->called > 0 ? m->called : monotonic ();
}

/* Read the newest generation.  Returns whether this process has just become a member. */
static bool joined_generation (struct formation *m)
{
    struct membership *g = m->g;
    struct generation *w;

    if (m->view.highest == 0 || (m->last && m->last->number == m->view.highest))
        return false;
    if (!(w = folder_get_generation (g->folder.path, m->view.highest)))
        return false;
    g->since = waiting_since (m);
    free (m->last);
    m->last = w;
    m->called = m->count = 0;
    if (g->generation && g->generation->number == w->number)
        return false;
    for (long r = 0; r < w->size; r++)
        if (w->members[r].self.nonce == g->self.self.nonce) {
            g->rank = r;
            return true;
        }
    return false;
}

/* We were left out because nobody could reach us, although we are alive and see the
 * folder.  Asking again at once would only delay the others.
 */
static void hold_off (struct membership *g)
{
    g->penalty = g->penalty > 0 ? g->penalty * 2 : penalty_min;
    if (g->penalty > penalty_max)
        g->penalty = penalty_max;
    g->hold = monotonic () + g->penalty;
    g->self.outcome = OUTCOME_GOOD;
}

/* The next generation was formed without us.  Returns true if it has enough ranks.
 * Otherwise the others thought we were lost, and we ask to be admitted as a new
 * process.
 */
static bool is_surplus (struct formation *m)
{
    struct membership *g = m->g;

    if (!m->last || g->self.was == 0 || g->self.was == m->last->number)
        return false;
    if (g->self.was == m->last->number - 1 && m->last->size >= m->last->wanted)
        return true;
    if (g->self.outcome != OUTCOME_GOOD)
        hold_off (g);
    g->self.was = 0;
    g->self.isolated = 0; /* from now on reaches_generation() decides */
    g->self.was_rank = -1;
    return false;
}

static bool is_called (const struct formation *m, uint64_t next)
{
    for (long i = 0; i < m->view.nsigns; i++)
        if (m->view.signs[i].generation == next && was_in_last (m, &m->view.signs[i].member))
            return true;
    return false;
}

/* Count the processes that have joined and report that the host does not answer. */
static long count_silence_reports (const struct formation *m, uint64_t next, const char *host)
{
    long n = 0;

    for (long i = 0; i < m->view.nsigns; i++) {
        const struct sign *s = &m->view.signs[i];
        if (s->member.isolated)
            continue;
        for (long r = 0; s->generation == next && r < m->last->size; r++)
            n += m->last->members[r].self.nonce == s->member.silent
                 && !strcmp (m->last->members[r].host, host);
    }
    return n;
}

/* Seconds to wait for members of the newest generation that have not arrived and
 * are not known to be over.  Wait a quarter of that if their hosts do not answer.
 */
static double grace_seconds (const struct formation *m, uint64_t next)
{
    double s = 0;

    for (long r = 0; m->last && r < m->last->size; r++) {
        const struct elastic_member *one = &m->last->members[r];
        if (signs_find (&m->view, next, one->self.nonce)
            || signs_is_over (&m->view, one, &m->g->self))
            continue;
        if (count_silence_reports (m, next, one->host) == 0)
            return m->g->settle;
        s = m->g->settle / 4;
    }
    return s;
}

/* Whether all members of the newest generation have gone and left us alone. */
static bool is_deserted (const struct formation *m)
{
    for (long r = 0; m->last && r < m->last->size; r++)
        if (!signs_is_over (&m->view, &m->last->members[r], &m->g->self))
            return false;
    return m->last;
}

static bool has_ended_well (const struct formation *m)
{
    bool any = false;

    for (long r = 0; m->last && r < m->last->size; r++)
        any |= signs_has_bye (&m->view, m->last->members[r].self.nonce);
    return any && is_deserted (m);
}

/* ---- writing our entry ---- */

/* Whether we can reach the generation: its last rank listens too, or at least its
 * kernel answers.
 */
static bool reaches_generation (struct membership *g, const struct generation *w)
{
    const struct elastic_member *s = &w->members[w->size - 1];
    int fd = socket_connect (member_host (w, s, &g->self), s->port, monotonic () + reach);

    if (fd >= 0) {
        close (fd);
        return true;
    }
    g->hold = monotonic () + reach;
    return false;
}

static bool may_ask_folder (struct formation *m)
{
    if (!m->last || was_in_last (m, &m->g->self) || m->asked)
        return true;
    return monotonic () >= m->g->hold && (is_deserted (m) || reaches_generation (m->g, m->last));
}

static int announce_member (struct formation *m, uint64_t next)
{
    struct membership *g = m->g;
    const struct sign *mine = signs_find (&m->view, 0, g->self.self.nonce);
    bool in = !m->last || was_in_last (m, &g->self) || is_called (m, next) || is_deserted (m);

    if (!may_ask_folder (m))
        return 0;
    /* rank 0 removes requests that were not answered in time */
    if (m->last && !was_in_last (m, &g->self) && !mine
        && folder_put_member (g->folder.path, 0, &g->self) < 0)
        return -1;
    m->asked |= m->last && !was_in_last (m, &g->self);
    if (!in || m->put == next)
        return 0;
    m->put = next;
    return folder_put_member (g->folder.path, next, &g->self);
}

/* ---- deciding ---- */

/* The number that the survivors have agreed on, if any: they have prepared for it. */
static long agreed (const struct formation *m)
{
    long n = 0;

    for (long i = 0; i < m->view.nsigns; i++) {
        const struct sign *s = &m->view.signs[i];
        if (s->generation && was_in_last (m, &s->member) && s->member.request)
            n = (long)s->member.request;
    }
    return n;
}

static long wanted_members (const struct formation *m)
{
    long n = agreed (m);

    if (n <= 0)
        n = m->view.target;
    if (n <= 0)
        n = m->last ? m->last->wanted : m->g->start;
    return membership_bounded (m->g, n);
}

/* Whether everybody worth waiting for is here. */
static bool is_complete (struct formation *m, uint64_t next)
{
    double now = monotonic ();
    long n = signs_count (&m->view, next);
    long want = wanted_members (m);

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
    if (now - m->called < grace_seconds (m, next))
        return false;
    return n >= want || signs_waiting (&m->view, &m->g->self, next) == 0
           || now - m->called > (answer < m->g->settle ? answer : m->g->settle);
}

/* Sort survivors in their order, then the nodes that dl elastic has started in its
 * order, and the ranks within each.
 */
static int compare_members (const void *a, const void *b)
{
    const struct elastic_member *x = a;
    const struct elastic_member *y = b;
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

static void count_changes (const struct formation *m, struct generation *w, long came)
{
    for (long r = 0; r < w->size; r++)
        w->kept += w->members[r].was != 0;
    w->left = came - w->kept;
    if (m->last)
        w->lost = m->last->size - came;
}

/* If the ranks of a generation did not all meet, those that met rank 0 cannot reach
 * those that did not.  The larger group continues; returns the outcome of the
 * other.
 */
static enum elastic_outcome outcast (const struct formation *m, uint64_t next, bool connected)
{
    long n[3] = { 0 };

    for (long i = 0; i < m->view.nsigns; i++) {
        const struct sign *s = &m->view.signs[i];
        if (s->generation == next && was_in_last (m, &s->member)
            && !(connected && s->member.isolated) && s->member.outcome >= 0
            && s->member.outcome < 3)
            n[s->member.outcome]++;
    }
    if (n[OUTCOME_ALONE] == 0 || n[OUTCOME_TOLD] == 0)
        return OUTCOME_GOOD;
    return n[OUTCOME_ALONE] > n[OUTCOME_TOLD] ? OUTCOME_TOLD : OUTCOME_ALONE;
}

/* Whether a process sees the folder but most others report its host as silent. */
static bool is_cut_off (const struct formation *m, uint64_t next, const struct elastic_member *s)
{
    return s->was && 2 * count_silence_reports (m, next, s->host) > signs_count (&m->view, next);
}

/* Whether enough processes reach another host to continue without those that reach
 * none.
 */
static bool is_connected (const struct formation *m, uint64_t next)
{
    long n = 0;

    for (long i = 0; i < m->view.nsigns; i++)
        n += m->view.signs[i].generation == next && !m->view.signs[i].member.isolated;
    return n > 0 && n >= m->g->min;
}

static struct generation *make_generation (struct formation *m, uint64_t next)
{
    bool connected = is_connected (m, next);
    enum elastic_outcome out = outcast (m, next, connected);
    long n = signs_count (&m->view, next);
    struct generation *w = calloc (1, sizeof (*w) + (size_t)n * sizeof (*w->members));
    long came = 0;

    if (!w)
        return NULL;
    w->number = next;
    w->wanted = wanted_members (m);
    if (getrandom (w->key, sizeof (w->key), 0) != sizeof (w->key)) {
        free (w);
        return NULL;
    }
    for (long i = 0; i < m->view.nsigns; i++) {
        struct elastic_member s = m->view.signs[i].member;
        if (m->view.signs[i].generation != next)
            continue;
        if (!was_in_last (m, &s))
            s.was = 0;
        if ((connected && s.isolated) || is_cut_off (m, next, &s)
            || (s.was && out != OUTCOME_GOOD && s.outcome == (int32_t)out))
            continue;
        came += s.was != 0;
        w->members[w->size++] = s;
    }
    qsort (w->members, (size_t)w->size, sizeof (*w->members), compare_members);
    if (w->size > w->wanted)
        w->size = w->wanted;
    count_changes (m, w, came);
    return w;
}

static int decide_generation (struct formation *m, uint64_t next, struct slurmdl_error *err)
{
    struct generation *w;
    enum link_result put = LINKED;

    if (m->put != next || !is_complete (m, next) || m->count < m->g->min)
        return 0;
    if (!(w = make_generation (m, next)))
        return errorf (err, "out of memory");
    if (w->size >= m->g->min)
        put = folder_put_generation (m->g->folder.path, w);
    free (w);
    if (put == LINK_FAILED)
        return errorf (err, "%s: cannot write: %s", m->g->dir, strerror (errno));
    return 0;
}

/* ---- waiting ---- */

static int fail_late_formation (const struct formation *m, struct slurmdl_error *err)
{
    errno = ETIMEDOUT;
    return errorf (err,
                   "%s: only %ld of at least %ld ranks joined within %.0f s (DL_ELASTIC_TIMEOUT)",
                   m->g->dir, m->count, m->g->min, m->g->timeout);
}

static int not_needed (const struct membership *g, const char *why, struct slurmdl_error *err)
{
    folder_take_ask (g->folder.path, g->self.self.nonce);
    errno = ECANCELED;
    return errorf (err, "this rank is not needed: %s", why);
}

enum form_step { FORM_FAILED = -1, FORM_WAITS, FORMED };

static enum form_step form_generation (struct formation *m, struct slurmdl_error *err)
{
    struct membership *g = m->g;

    if (signs_look (&m->view, g->folder.path, err) < 0)
        return FORM_FAILED;
    if (joined_generation (m))
        return FORMED;
    if (is_surplus (m))
        return not_needed (g, "the other ranks form a smaller world", err);
    if (has_ended_well (m))
        return not_needed (g, "the training has ended", err);
    if (announce_member (m, m->view.highest + 1) < 0)
        return errorf (err, "%s: cannot write: %s", g->dir, strerror (errno));
    return decide_generation (m, m->view.highest + 1, err) < 0 ? FORM_FAILED : FORM_WAITS;
}

static void nap_between_polls (const struct formation *m, long *us)
{
    bool idle = m->last && !m->called;
    struct timespec t = { 0, (idle ? 100000 : *us) * 1000 };

    nanosleep (&t, NULL);
    if (*us < 20000)
        *us += *us / 2;
}

static bool is_formation_late (const struct formation *m)
{
    return monotonic () - waiting_since (m) > m->g->timeout;
}

static int new_listener (struct membership *g, struct slurmdl_error *err)
{
    if (g->listener.n == 0 && listen_open_range (&g->listener, NULL, 0, err) < 0)
        return -1;
    g->self.port = g->listener.port;
    return 0;
}

int membership_form (struct membership *g, struct slurmdl_error *err)
{
    struct formation m = { .g = g, .begin = monotonic () };
    long us = 500;
    enum form_step step;

    if (new_listener (g, err) < 0)
        return -1;
    while ((step = form_generation (&m, err)) == FORM_WAITS) {
        if (is_formation_late (&m)) {
            step = fail_late_formation (&m, err);
            break;
        }
        nap_between_polls (&m, &us);
    }
    if (step == FORMED) {
        free (g->generation);
        g->generation = m.last;
        m.last = NULL;
        membership_outlast (g->generation);
        g->joining = g->generation->members[g->rank].was == 0;
        g->self.outcome = OUTCOME_GOOD;
        g->self.silent = 0;
        g->self.isolated = 0;
        g->self.was = g->generation->number;
        g->self.was_rank = g->rank;
        if (m.asked)
            folder_take_ask (g->folder.path, g->self.self.nonce);
    }
    free (m.last);
    signs_free (&m.view);
    return step == FORMED ? 0 : -1;
}
