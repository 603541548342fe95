/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of elastic training whose result can be checked bit by bit. */
#include "tests/runtime/comm/elasticrank.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"

/* A model with exact arithmetic (integers modulo 2^64), so any number of ranks
 * must reach exactly the weights of the serial computation.  The gradient is the
 * sum of a hash over SAMPLES; each rank has a slab of the momentum, and all have
 * the weights.
 */
enum { N = 1000, SAMPLES = 24 };

struct model {
    uint64_t w[N], m[N], g[N];
};

uint64_t mix (uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void gradient (struct model *t, int64_t step, long rank, long size)
{
    memset (t->g, 0, sizeof (t->g));
    for (long i = rank; i < SAMPLES; i += size)
        for (uint64_t k = 0; k < N; k++)
            t->g[k] += mix (t->w[k] + (uint64_t)step * 131 + (uint64_t)i * 7919 + k);
}

static void begin (struct model *t)
{
    for (uint64_t k = 0; k < N; k++) {
        t->w[k] = mix (k);
        t->m[k] = 0;
    }
}

static uint64_t digest (const struct model *t)
{
    uint64_t h = 0;

    for (size_t k = 0; k < N; k++)
        h = mix (h ^ t->w[k]);
    return h;
}

uint64_t serial (int64_t steps)
{
    static struct model t;

    begin (&t);
    for (int64_t s = 0; s < steps; s++) {
        gradient (&t, s, 0, 1);
        for (size_t k = 0; k < N; k++) {
            t.m[k] = t.m[k] * 3 + t.g[k];
            t.w[k] += t.m[k];
        }
    }
    return digest (&t);
}

/* ---- a rank ---- */

struct part {
    uint64_t offset, n;
};

static struct part part_of (long rank, long size)
{
    uint64_t r = (uint64_t)rank, s = (uint64_t)size;
    uint64_t more = N % s;
    struct part p = { r * (N / s) + (r < more ? r : more), N / s + (r < more) };

    return p;
}

static int one_step (struct slurmdl_comm *c, struct model *t, int64_t step,
                     struct slurmdl_error *err)
{
    long rank = slurmdl_comm_rank (c), size = slurmdl_comm_size (c);
    struct part own = part_of (rank, size);
    size_t bytes[RANKS_MAX];
    static uint64_t all[N];

    gradient (t, step, rank, size);
    if (slurmdl_allreduce (c, t->g, t->g, N, SLURMDL_U64, SLURMDL_SUM, err) < 0)
        return -1;
    for (uint64_t k = own.offset; k < own.offset + own.n; k++)
        t->m[k] = t->m[k] * 3 + t->g[k];
    for (long r = 0; r < size; r++)
        bytes[r] = part_of (r, size).n * sizeof (*all);
    if (slurmdl_allgather (c, t->m + own.offset, bytes[rank], all, bytes, err) < 0)
        return -1;
    for (size_t k = 0; k < N; k++)
        t->w[k] += all[k];
    return 0;
}

static int protect (struct slurmdl_elastic *e, struct model *t, struct slurmdl_comm *c,
                    struct slurmdl_error *err)
{
    uint64_t n = N;
    struct part own = { 0, N };

    if (!c)
        return slurmdl_elastic_protect (e, "model/w", SLURMDL_U64, 1, &n, t->w, err);
    own = part_of (slurmdl_comm_rank (c), slurmdl_comm_size (c));
    /* so that a part that is not restored shows */
    memset (t->m, 0xee, sizeof (t->m));
    return slurmdl_elastic_protect_shard (e, "momentum", SLURMDL_U64, 1, &n, &own.offset, &own.n,
                                          t->m + own.offset, err);
}

static void die (int sig)
{
    (void)sig;
    kill (getpid (), SIGKILL);
}

static void die_soon (long us)
{
    struct itimerval t = { .it_value = { 0, us > 0 ? us : 1 } };

    signal (SIGALRM, die);
    setitimer (ITIMER_REAL, &t, NULL);
}

/* The restored state must hold the same step. */
static int check_state (struct slurmdl_elastic *e, int64_t step)
{
    int64_t was = -1;
    void *bytes;
    size_t n;

    if (slurmdl_elastic_read_state (e, "step", &bytes, &n) < 0)
        return -1;
    if (n == sizeof (was))
        memcpy (&was, bytes, n);
    free (bytes);
    return was == step ? 0 : -1;
}

static bool has_ended (const struct job *j, const struct result *r)
{
    return r->step >= j->steps || r->enough;
}

/* Rank 0 checks for the file, so that all ranks end at the same step. */
static int look_for_end (struct slurmdl_comm *c, const struct job *j, uint64_t *enough,
                         struct slurmdl_error *err)
{
    *enough = 0;
    if (!j->until)
        return 0;
    if (slurmdl_comm_rank (c) == 0)
        *enough = access (j->until, F_OK) == 0;
    return slurmdl_broadcast (c, enough, sizeof (*enough), 0, err);
}

/* One write(2) with O_APPEND keeps the lines of two worlds in the order of their
 * commits.
 */
static void put_trace (struct slurmdl_elastic *e, const struct job *j, struct slurmdl_comm *c,
                       int64_t step)
{
    struct slurmdl_elastic_world w;
    int fd;

    if (!j->trace || slurmdl_comm_rank (c) != 0)
        return;
    slurmdl_elastic_world (e, &w);
    fd = open (j->trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    dprintf (fd, "%ld %ld %ld\n", (long)w.generation, (long)step, slurmdl_comm_size (c));
    close (fd);
}

static int train (struct slurmdl_elastic *e, const struct job *j, struct model *t,
                  struct slurmdl_comm *c, struct result *r, struct slurmdl_error *err)
{
    int64_t *step = &r->step;

    while (!has_ended (j, r)) {
        uint64_t enough;
        int rv;
        if (*step == j->freeze_at && j->freeze_at > 0 && slurmdl_comm_size (c) > 1)
            raise (SIGSTOP);
        if (look_for_end (c, j, &enough, err) < 0 || one_step (c, t, *step, err) < 0)
            return -1;
        ++*step;
        usleep ((useconds_t)j->pause_us);
        slurmdl_elastic_state (e, "step", step, sizeof (*step), err);
        if (*step == j->die_at)
            die_soon (j->die_us);
        rv = slurmdl_elastic_commit (e, *step, err);
        if (rv >= 0) {
            r->committed = *step;
            put_trace (e, j, c, *step);
        }
        if (rv != 0)
            return rv;
        r->enough = enough;
    }
    return 0;
}

static void print_world (const struct slurmdl_elastic_world *w, int64_t step)
{
    printf ("%ld: world %ld has %ld ranks, %ld lost, %ld left, at step %ld, in "
            "%.1f s\n",
            (long)time (NULL), (long)w->generation, w->size, w->lost, w->left, (long)step,
            w->seconds);
    fflush (stdout);
}

int rank_train (struct slurmdl_elastic *e, const struct job *j, struct result *r,
                struct slurmdl_error *err)
{
    static struct model t;
    struct slurmdl_elastic_world w;
    struct slurmdl_comm *c;
    int rv;

    begin (&t);
    protect (e, &t, NULL, err);
    while (!has_ended (j, r)) {
        double start = monotonic ();
        if (!(c = slurmdl_elastic_form (e, err))) {
            r->error = errno;
            return -1;
        }
        slurmdl_elastic_world (e, &w);
        if (r->worlds++ > 0 && monotonic () - start > r->longest)
            r->longest = monotonic () - start;
        if (j->loud && slurmdl_comm_rank (c) == 0)
            print_world (&w, r->step);
        protect (e, &t, c, err);
        if ((rv = slurmdl_elastic_restore (e, &r->step, err)) < 0) {
            if (errno == EINVAL)
                return -1;
            continue;
        }
        if (rv == 0) {
            begin (&t);
            r->restarts += r->committed > 0;
            r->step = r->committed = 0;
        } else if (check_state (e, r->step) < 0)
            return -2;
        train (e, j, &t, c, r, err);
    }
    r->generation = w.generation;
    r->size = w.size;
    r->lost = w.lost;
    r->weights = digest (&t);
    return 0;
}

int rank_main (char **args)
{
    struct job j = { .steps = atol (args[0]),
                     .pause_us = atol (args[1]),
                     .until = args[2],
                     .trace = args[2] ? args[3] : NULL,
                     .loud = true };
    struct slurmdl_error err = { "" };
    struct slurmdl_elastic *e = slurmdl_elastic_open (NULL, &err);
    struct result r = { .rv = -1 };

    if (e && rank_train (e, &j, &r, &err) == 0) {
        printf ("trained to step %ld: the weights are %s, %ld times lost\n", (long)r.step,
                r.weights == serial (r.step) ? "right" : "wrong", (long)r.restarts);
        r.rv = r.weights == serial (r.step) ? 0 : 1;
    } else if (r.error == ECANCELED) {
        printf ("%s\n", err.text);
        r.rv = 0;
    } else
        printf ("failed: %s\n", err.text);
    slurmdl_elastic_close (e);
    return r.rv ? 1 : 0;
}
