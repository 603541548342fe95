/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of several ranks and nodes, compared with a serial computation. */
#include "tests/runtime/comm/collect.h"
#include "tests/runtime/comm/world.h"
#include "tests/unit.h"

static int refusals (struct slurmdl_comm *w, void *arg)
{
    float x = 1;
    int32_t i = 1;
    size_t counts[64] = { 0 };
    struct slurmdl_error err;
    int bad = 0;

#define REFUSED(call)                                                                              \
    bad += (call) != -1 || errno != EINVAL || !*err.text ? collect_complain (w, #call, 0) : 0
    REFUSED (slurmdl_allreduce (w, &i, &i, 1, SLURMDL_I32, SLURMDL_AVERAGE, &err));
    REFUSED (slurmdl_allreduce (w, &x, &x, 1, (enum slurmdl_type)99, 0, &err));
    REFUSED (slurmdl_allreduce (w, &x, &x, 1, 0, (enum slurmdl_op)99, &err));
    REFUSED (slurmdl_allreduce (w, NULL, &x, 1, SLURMDL_F32, SLURMDL_SUM, &err));
    REFUSED (slurmdl_broadcast (w, &x, 4, slurmdl_comm_size (w), &err));
    REFUSED (slurmdl_broadcast (w, &x, 4, -1, &err));
    REFUSED (slurmdl_allgather (w, &x, 4, &x, counts, &err));
    REFUSED (slurmdl_alltoall (w, &x, NULL, &x, NULL, &err));
    REFUSED (slurmdl_reduce_scatter (w, &x, &x, 1, counts, SLURMDL_F32, SLURMDL_SUM, &err));
    /* the communicator still works; err may be NULL */
    bad += slurmdl_allreduce (w, &x, &x, 1, SLURMDL_F32, SLURMDL_SUM, NULL)
           || (double)x != (double)slurmdl_comm_size (w);
    return bad != 0;
}

/* A child can call its parent's communicator, which fails and changes nothing. */
static int forked (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_error err;
    int status = -1;
    pid_t pid;

    if (collect_size (w, 10000) || (pid = fork ()) < 0)
        return 1;
    if (pid == 0) {
        int rv = slurmdl_barrier (w, &err) == 0;
        slurmdl_comm_close (w, NULL);
        _exit (rv);
    }
    if (waitpid (pid, &status, 0) != pid || status)
        return collect_complain (w, "child", (size_t)status);
    return collect_size (w, 10000);
}

static int places (struct slurmdl_comm *w, void *arg)
{
    long per_node = *(const int *)arg;
    long rank = slurmdl_comm_rank (w);
    long nodes = (slurmdl_comm_size (w) + per_node - 1) / per_node;

    return slurmdl_comm_nodes (w) != nodes || slurmdl_comm_node (w) != rank / per_node
           || slurmdl_comm_local_rank (w) != rank % per_node
           || strcmp (slurmdl_comm_bootstrap (w), "tcp") || !*slurmdl_comm_host (w, 0)
           || slurmdl_comm_host (w, -1) || strcmp (slurmdl_comm_backend (w), "native");
}

static const struct shape {
    int size, per_node;
} shapes[] = { { 2, 1 }, { 3, 1 }, { 4, 2 }, { 5, 2 }, { 7, 3 }, { 2, 0 },
               { 3, 0 }, { 4, 1 }, { 6, 2 }, { 7, 1 }, { 5, 4 }, { 8, 0 } };

/* DL_TEST_WORLD=5/2 runs only that shape. */
static bool is_wanted (const struct shape *s)
{
    const char *only = getenv ("DL_TEST_WORLD");
    char name[32];

    snprintf (name, sizeof (name), "%d/%d", s->size, s->per_node);
    return !only || !strcmp (only, name);
}

static void in_worlds (world_f f)
{
    size_t n = collect_is_long () ? COUNT (shapes) : 5;

    for (size_t i = 0; i < n; i++)
        if (is_wanted (&shapes[i]))
            assert_int_equal (world_run (shapes[i].size, shapes[i].per_node, f, NULL,
                                         collect_is_long () ? 600 : 300, NULL),
                              0);
}

CASE (types)
{
    in_worlds (collect_types);
}

CASE (sizes)
{
    in_worlds (collect_sizes);
}

CASE (rounding)
{
    in_worlds (collect_rounding);
}

CASE (parts)
{
    assert_int_equal (world_run (7, 2, collect_parts, NULL, 300, NULL), 0);
    assert_int_equal (world_run (4, 1, collect_parts, NULL, 300, NULL), 0);
}

WORLD_CASE (threads, 3, 2, collect_threads)

WORLD_CASE (errors, 3, 1, refusals)

WORLD_CASE (children, 3, 2, forked)

CASE (nodes)
{
    int per_node = 3;

    assert_int_equal (world_run (7, 3, places, &per_node, 300, NULL), 0);
}

CASE (one_rank)
{
    assert_int_equal (world_run (1, 0, collect_types, NULL, 300, NULL), 0);
    assert_int_equal (world_run (1, 0, collect_sizes, NULL, 300, NULL), 0);
}

RUN_CASES ()
