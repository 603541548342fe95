/* SPDX-License-Identifier: Apache-2.0 */
/* The NCCL back end over a fake NCCL and CUDA, which fails on request. */
#include <dlfcn.h>

#include "runtime/base/clock.h"
#include "runtime/comm/api/comm.h"
#include "tests/runtime/comm/collect.h"
#include "tests/runtime/comm/world.h"
#include "tests/unit.h"

static int is_nccl (struct slurmdl_comm *w, void *arg)
{
    return strcmp (slurmdl_comm_backend (w), "nccl") != 0;
}

static int everything (struct slurmdl_comm *w, void *arg)
{
    return is_nccl (w, arg) || collect_types (w, arg) || collect_sizes (w, arg)
           || collect_rounding (w, arg) || collect_parts (w, arg);
}

WORLD_CASE (collectives, 3, 0, everything)

/* Types that NCCL rejects on older GPUs go through the host, others do not. */
CASE (before_hopper)
{
    unsetenv ("DL_COMM_BACKEND");
    setenv ("FAKE_NCCL", "ampere", 1);
    assert_int_equal (world_run (2, 0, collect_types, NULL, 300, NULL), 0);
    unsetenv ("FAKE_NCCL");
    setenv ("DL_COMM_BACKEND", "nccl", 1);
}

WORLD_CASE (threads, 3, 0, collect_threads)

/* Wait for a stream of the fake CUDA. */
static int finish (void *stream)
{
    void *h = dlopen ("libcudart.so", RTLD_NOW | RTLD_NOLOAD);
    int (*query) (void *) = h ? dlsym (h, "cudaStreamQuery") : NULL;
    int left = 100000;

    while (query && query (stream) && left > 0)
        left--;
    if (h)
        dlclose (h);
    return query && left > 0 ? 0 : -1;
}

/* Results of queued collectives are there once the stream has reached them. */
static int queue (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_error err = { "" };
    int32_t x[2] = { 1, 10 };
    int stream = 0; /* only its address matters */
    int bad = slurmdl_comm_stream (w, &stream);

    bad |= slurmdl_allreduce (w, x, x, 1, SLURMDL_I32, SLURMDL_SUM, &err);
    bad |= slurmdl_allreduce (w, x + 1, x + 1, 1, SLURMDL_I32, SLURMDL_SUM, &err);
    bad |= x[0] != 1 || x[1] != 10;
    bad |= finish (&stream);
    bad |= x[0] != 3 || x[1] != 30;
    return bad ? collect_complain (w, err.text, 0) : 0;
}

WORLD_CASE (streams, 3, 0, queue)

/* What the error must contain, and its errno. */
struct failure {
    const char *text;
    int error;
};

/* The first call on device memory opens the back end. */
static int fails (struct slurmdl_comm *w, void *arg)
{
    const struct failure *f = arg;
    struct slurmdl_error err = { "" };
    double began = monotonic ();
    float x = 1;

    mesh_set_timeout (w->mesh, 2);
    if (slurmdl_allreduce (w, &x, &x, 1, SLURMDL_F32, SLURMDL_SUM, &err) == 0)
        return collect_complain (w, "it succeeds", 0);
    /* a rank may learn of the failure from another one */
    if (strstr (err.text, "aborted") && strstr (err.text, f->text))
        return 0;
    if (errno != f->error || !strstr (err.text, f->text))
        return collect_complain (w, err.text, (size_t)errno);
    return monotonic () - began > 100 ? collect_complain (w, "late", 0) : 0;
}

static void fail_as (const char *how, const char *text, int error)
{
    struct failure f = { text, error };

    unsetenv ("DL_COMM_BACKEND");
    setenv ("FAKE_NCCL", how, 1);
    assert_int_equal (world_run (3, 0, fails, &f, 300, NULL), 0);
    unsetenv ("FAKE_NCCL");
    setenv ("DL_COMM_BACKEND", "nccl", 1);
}

CASE (ranks_are_absent)
{
    fail_as ("hang", "for the ranks of a communicator", ETIMEDOUT);
}

CASE (kernels_do_not_end)
{
    fail_as ("stuck", "for an all-reduce", ETIMEDOUT);
}

CASE (kernels_fail)
{
    fail_as ("async", "remote process exited", ECONNRESET);
}

CASE (two_have_one_gpu)
{
    fail_as ("alone", "ranks 0 and 1 (", EBUSY);
}

CASE (a_gpu_has_no_address)
{
    fail_as ("bus", "cudaDeviceGetPCIBusId", EIO);
}

int main (void)
{
    setenv ("DL_BACKEND_DIR", BACKEND_DIR, 1);
    setenv ("DL_COMM_BACKEND", "nccl", 1);
    alarm (900);
    cmocka_set_message_output (CM_OUTPUT_TAP);
    return run_cases (NULL, NULL);
}
