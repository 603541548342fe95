/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks on one GPU: NCCL refuses that, but collectives work through the host. */
#include "tests/gpu/worlds.h"

#include "runtime/base/clock.h"
#include "runtime/comm/api/comm.h"
#include "tests/gpu/device.h"
#include "tests/runtime/comm/world.h"

static int find_gpu (void **p)
{
    const struct comm_backend *b = comm_backend_load ("nccl", NULL);

    if (!b || !cuda_find ())
        return -1;
    *p = cuda_copy_of (NULL, 4096);
    return 0;
}

/* One rank may detect the error and abort before the other one detects it. */
static int twins (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_error err = { "" };
    int error;
    void *x;

    (void)arg;
    if (find_gpu (&x) < 0)
        return 1;
    if (slurmdl_allreduce (w, x, x, 4, SLURMDL_F32, SLURMDL_SUM, &err) == 0)
        return 2;
    error = errno;
    printf ("# rank %ld: %s (errno %d)\n", (long)slurmdl_comm_rank (w), err.text, error);
    return (error == EBUSY || error == ECONNRESET) && strstr (err.text, "have the same GPU") ? 0
                                                                                             : 3;
}

static int through_the_host (struct slurmdl_comm *w, void *arg)
{
    float want[1024], data[1024];
    struct slurmdl_error err = { "" };
    void *x;

    (void)arg;
    if (find_gpu (&x) < 0)
        return 1;
    for (int i = 0; i < 1024; i++) {
        data[i] = (float)(i * (slurmdl_comm_rank (w) + 1));
        want[i] = (float)(i * 3);
    }
    cuda_need (cuda.copy (x, data, 4096, TO_DEVICE), "cudaMemcpy");
    if (slurmdl_allreduce (w, x, x, 1024, SLURMDL_F32, SLURMDL_SUM, &err) < 0)
        printf ("# %s\n", err.text);
    return !cuda_has ("through the host", x, want, 4096);
}

/* One rank connects, but never calls the collective. */
static int absent (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_error err = { "" };
    double t = monotonic ();
    void *x;

    (void)arg;
    mesh_set_timeout (w->mesh, 2);
    if (slurmdl_comm_rank (w) == 1) {
        sleep (8);
        return 0;
    }
    if (find_gpu (&x) < 0)
        return 1;
    if (slurmdl_allreduce (w, x, x, 4, SLURMDL_F32, SLURMDL_SUM, &err) == 0)
        return 2;
    t = monotonic () - t;
    printf ("# rank 0 after %.1f s: %s\n", t, err.text);
    return errno == ETIMEDOUT && strstr (err.text, "rank 1") && t < 30 ? 0 : 3;
}

void two_ranks (bool stand_ins)
{
    int s[2];

    if (stand_ins)
        setenv ("FAKE_NCCL", "alone", 1);
    world_run (2, 0, twins, NULL, 120, s);
    tap_ok (s[0] == 0 && s[1] == 0, "two ranks on one GPU are told so in one line (0x%x, 0x%x)",
            (unsigned)s[0], (unsigned)s[1]);
    setenv ("DL_COMM_BACKEND", "native", 1);
    world_run (2, 0, through_the_host, NULL, 120, s);
    tap_ok (s[0] == 0 && s[1] == 0, "and DL_COMM_BACKEND=native goes through the host (0x%x, 0x%x)",
            (unsigned)s[0], (unsigned)s[1]);
    unsetenv ("DL_COMM_BACKEND");
    if (stand_ins) {
        tap_skip ("a rank that is there and calls nothing", "8 s; tests/runtime has it");
    } else {
        world_run (2, 0, absent, NULL, 120, s);
        tap_ok (s[0] == 0, "a rank that is there and calls nothing is named (0x%x)",
                (unsigned)s[0]);
    }
    unsetenv ("FAKE_NCCL");
}
