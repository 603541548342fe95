/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in shared memory and between nodes: all parts end up in place,
 * whatever the order of ranks, and errors name a rank that is missing.
 */
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/comm/api/comm.h"
#include "tests/runtime/comm/world.h"
#include "tests/unit.h"

static int complain (struct slurmdl_comm *w, const char *what, size_t n)
{
    fprintf (stderr, "# rank %ld: %s, %zu\n", slurmdl_comm_rank (w), what, n);
    return 1;
}

static int32_t value (long rank, size_t i)
{
    return (int32_t)((size_t)(rank + 1) * (i % 10007));
}

static int32_t sum (long size, size_t i)
{
    return (int32_t)((size_t)(size * (size + 1) / 2) * (i % 10007));
}

static int32_t *filled (struct slurmdl_comm *w, size_t n)
{
    int32_t *x = malloc (n * sizeof (*x) + 1);

    for (size_t i = 0; i < n; i++)
        x[i] = value (slurmdl_comm_rank (w), i);
    return x;
}

/* Uneven parts, some of them empty. */
static size_t part (long rank, size_t n)
{
    return rank % 3 == 1 ? 0 : n / 2 + (size_t)rank * 7;
}

static int reduces (struct slurmdl_comm *w, size_t n)
{
    long rank = slurmdl_comm_rank (w), size = slurmdl_comm_size (w);
    long root = (long)(n % (size_t)size);
    int32_t *x = filled (w, n), *y = malloc (n * sizeof (*y) + 1);
    struct slurmdl_error err;
    int bad =
        slurmdl_reduce (w, x, rank == root ? y : NULL, n, SLURMDL_I32, SLURMDL_SUM, root, &err);

    if (bad)
        return complain (w, err.text, n);
    for (size_t i = 0; rank == root && i < n && !bad; i++)
        bad = y[i] != sum (size, i);
    bad |= slurmdl_allreduce (w, x, x, n, SLURMDL_I32, SLURMDL_SUM, &err);
    for (size_t i = 0; i < n && !bad; i++)
        bad = x[i] != sum (size, i);
    free (x);
    free (y);
    return bad ? complain (w, "reduce", n) : 0;
}

static int broadcasts (struct slurmdl_comm *w, size_t n)
{
    struct slurmdl_error err;
    int bad = 0;

    for (long root = 0; root < slurmdl_comm_size (w) && !bad; root++) {
        int32_t *x = filled (w, n);

        bad = slurmdl_broadcast (w, x, n * sizeof (*x), root, &err);
        for (size_t i = 0; i < n && !bad; i++)
            bad = x[i] != value (root, i);
        free (x);
    }
    return bad ? complain (w, "broadcast", n) : 0;
}

static int scatters (struct slurmdl_comm *w, size_t n)
{
    long rank = slurmdl_comm_rank (w), size = slurmdl_comm_size (w);
    struct slurmdl_error err;
    size_t counts[64], all = 0, at = 0;
    int32_t *x, *y;
    int bad;

    for (long r = 0; r < size; r++) {
        counts[r] = part (r, n);
        at += r < rank ? counts[r] : 0;
        all += counts[r];
    }
    x = filled (w, all);
    y = malloc (counts[rank] * sizeof (*y) + 1);
    bad = slurmdl_reduce_scatter (w, x, y, all, counts, SLURMDL_I32, SLURMDL_SUM, &err);
    for (size_t i = 0; i < counts[rank] && !bad; i++)
        bad = y[i] != sum (size, at + i);
    free (x);
    free (y);
    return bad ? complain (w, "reduce-scatter", n) : 0;
}

static int gathers (struct slurmdl_comm *w, size_t n)
{
    long rank = slurmdl_comm_rank (w), size = slurmdl_comm_size (w);
    struct slurmdl_error err;
    size_t bytes[64], all = 0, at = 0;
    int32_t *x = filled (w, part (rank, n)), *y;
    int bad;

    for (long r = 0; r < size; r++) {
        bytes[r] = part (r, n) * sizeof (*x);
        all += bytes[r];
    }
    y = malloc (all + 1);
    bad = slurmdl_allgather (w, x, bytes[rank], y, bytes, &err);
    for (long r = 0; r < size && !bad; r++)
        for (size_t i = 0; i < part (r, n) && !bad; i++)
            bad = y[at++] != value (r, i);
    free (x);
    free (y);
    return bad ? complain (w, "all-gather", n) : 0;
}

/* Rank r sends part (r + 2 * to) to 'to'. */
static int exchanges (struct slurmdl_comm *w, size_t n)
{
    long rank = slurmdl_comm_rank (w), size = slurmdl_comm_size (w);
    struct slurmdl_error err;
    size_t to[64], from[64], out = 0, in = 0, at = 0;
    int32_t *x, *y;
    int bad;

    for (long r = 0; r < size; r++) {
        out += part (rank + 2 * r, n);
        in += part (r + 2 * rank, n);
        to[r] = part (rank + 2 * r, n) * sizeof (*x);
        from[r] = part (r + 2 * rank, n) * sizeof (*x);
    }
    x = malloc (out * sizeof (*x) + 1);
    y = malloc (in * sizeof (*y) + 1);
    for (long r = 0; r < size; r++)
        for (size_t i = 0; i < part (rank + 2 * r, n); i++)
            x[at++] = value (rank * size + r, i);
    bad = slurmdl_alltoall (w, x, to, y, from, &err);
    at = 0;
    for (long r = 0; r < size && !bad; r++)
        for (size_t i = 0; i < part (r + 2 * rank, n) && !bad; i++)
            bad = y[at++] != value (r * size + rank, i);
    free (x);
    free (y);
    return bad ? complain (w, "all-to-all", n) : 0;
}

static int all_kinds (struct slurmdl_comm *w)
{
    static const size_t sizes[] = { 1, 100, 3000, 70001, 300007 };
    int bad = 0;

    for (size_t i = 0; i < COUNT (sizes) && !bad; i++)
        bad = reduces (w, sizes[i]) || broadcasts (w, sizes[i]) || scatters (w, sizes[i])
              || gathers (w, sizes[i]) || exchanges (w, sizes[i])
              || (slurmdl_barrier (w, NULL) && complain (w, "barrier", 0));
    return bad;
}

/* First all ranks of a node in a row, then one rank of each node in turn. */
static int in_both_orders (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_comm *turned;
    struct slurmdl_error err;
    int bad = all_kinds (w);

    turned = slurmdl_comm_split (w, 0, slurmdl_comm_local_rank (w), &err);
    bad = bad || !turned || all_kinds (turned);
    slurmdl_comm_close (turned, NULL);
    return bad;
}

CASE (parts_are_at_their_places)
{
    static const int worlds[][2] = { { 4, 0 }, { 3, 0 }, { 4, 2 }, { 6, 3 }, { 5, 2 } };

    for (size_t i = 0; i < COUNT (worlds); i++)
        assert_int_equal (world_run (worlds[i][0], worlds[i][1], in_both_orders, NULL, 300, NULL),
                          0);
}

/* Whether this process has mapped shared memory. */
static int has_memory (void)
{
    char line[512];
    FILE *f = fopen ("/proc/self/maps", "r");
    int has = 0;

    while (f && fgets (line, sizeof (line), f))
        has |= strstr (line, "/memfd:slurmdl") != NULL;
    if (f)
        fclose (f);
    return has;
}

/* 'arg': whether collectives must use shared memory. */
static int looks (struct slurmdl_comm *w, void *arg)
{
    if (has_memory ())
        return complain (w, "memory before it is used", 0);
    if (all_kinds (w) || has_memory () != *(const int *)arg)
        return complain (w, "memory", 0);
    return 0;
}

CASE (memory_is_shared_where_it_can_be)
{
    int yes = 1, no = 0;

    assert_int_equal (world_run (3, 0, looks, &yes, 300, NULL), 0);
    assert_int_equal (world_run (3, 1, looks, &no, 300, NULL), 0);
    setenv ("DL_COMM_SHARED", "0", 1);
    assert_int_equal (world_run (4, 2, looks, &no, 300, NULL), 0);
    unsetenv ("DL_COMM_SHARED");
}

/* Reduce until it fails, with this errno and a text that contains 'word'. */
static int fails (struct slurmdl_comm *w, size_t n, int number, const char *word)
{
    float *x = calloc (n, sizeof (*x));
    struct slurmdl_error err = { "" };
    double until = monotonic () + 200;
    int rv = 0, saved;

    while (rv == 0 && monotonic () < until)
        rv = slurmdl_allreduce (w, x, x, n, SLURMDL_F32, SLURMDL_SUM, &err);
    saved = errno;
    free (x);
    if (rv < 0 && saved == number && strstr (err.text, word))
        return 0;
    fprintf (stderr, "# rank %ld: %d %s: %s\n", slurmdl_comm_rank (w), rv, strerror (saved),
             err.text);
    return 1;
}

/* Rank 2 is killed during an all-reduce. */
static int loses_one (struct slurmdl_comm *w, void *arg)
{
    pid_t killer = -1;

    if (slurmdl_comm_rank (w) == 2 && (killer = fork ()) == 0) {
        struct timespec t = { 0, 300000000 };

        nanosleep (&t, NULL);
        kill (getppid (), SIGKILL);
        _exit (0);
    }
    return fails (w, 100000, ECONNRESET, "rank 2");
}

CASE (a_killed_rank_is_named)
{
    int status[4];
    double begin = monotonic ();

    assert_int_equal (world_run (4, 0, loses_one, NULL, 300, status), 1);
    assert_true (WIFSIGNALED (status[2]));
    assert_int_equal (world_run (4, 2, loses_one, NULL, 300, status), 1);
    assert_true (WIFSIGNALED (status[2]));
    assert_true (monotonic () - begin < 300);
}

/* Rank 1 sleeps longer than the timeout of the others. */
static int waits (struct slurmdl_comm *w, void *arg)
{
    struct timespec t = { 6, 0 };
    float x = 1;

    mesh_set_timeout (w->mesh, 2);
    if (slurmdl_allreduce (w, &x, &x, 1, SLURMDL_F32, SLURMDL_SUM, NULL))
        return complain (w, "the first one", 1);
    if (slurmdl_comm_rank (w) == 1)
        nanosleep (&t, NULL);
    x = 1;
    if (slurmdl_comm_rank (w) == 1)
        return slurmdl_barrier (w, NULL) == 0;
    return fails (w, 1, slurmdl_comm_rank (w) ? ECONNRESET : ETIMEDOUT, "rank 1")
           || fails (w, 1, ENOTCONN, "rank 1");
}

WORLD_CASE (a_late_rank_is_named, 2, 0, waits)

/* Two ranks of a node pass different sizes. */
static int differs (struct slurmdl_comm *w, void *arg)
{
    float x[2] = { 1, 2 };
    struct slurmdl_error err = { "" };
    int rv = slurmdl_allreduce (w, x, x, slurmdl_comm_rank (w) == 1 ? 2 : 1, SLURMDL_F32,
                                SLURMDL_SUM, &err);

    if (rv == 0 || (errno != EPROTO && errno != ECONNRESET) || !strstr (err.text, "different"))
        return complain (w, err.text, 1);
    return 0;
}

WORLD_CASE (different_calls_are_reported, 2, 0, differs)

RUN_CASES ()
