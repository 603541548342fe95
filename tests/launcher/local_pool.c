/* SPDX-License-Identifier: Apache-2.0 */
/* Check how local processes share GPUs and cores, which are started again, and how all are ended.
 */
#include "launcher/worker/worker.h"

#include <poll.h>

#include "launcher/sys/devices.h"
#include "runtime/base/clock.h"
#include "tests/unit.h"

enum { LIMIT = 250 }; /* seconds until a test that hangs fails */

/* The processes print to a pipe and wait until one can be read. */
struct pool_test {
    struct local_pool *pool;
    int said[2];
    int nended;
    void *ended; /* the last */
    int status;
};

static bool was_killed (int status)
{
    return WIFSIGNALED (status);
}

static void note_end (void *arg, void *of, int status)
{
    struct pool_test *t = arg;

    t->nended++;
    t->ended = of;
    t->status = status;
}

static void open_pool (struct pool_test *t, long most)
{
    static const struct local_pool_ops ops = { was_killed, note_end };

    setenv ("CUDA_VISIBLE_DEVICES", "a,b,c,d", 1);
    *t = (struct pool_test){ .pool = local_pool_create (&ops, t, most) };
    assert_int_equal (pipe2 (t->said, O_CLOEXEC), 0);
}

static void close_pool (struct pool_test *t)
{
    local_pool_end (t->pool, LIMIT);
    assert_int_equal (local_pool_reap (t->pool), 0);
    local_pool_destroy (t->pool);
    close (t->said[0]);
    close (t->said[1]);
}

/* Start a shell command. */
static int start (struct pool_test *t, const char *command, int gpus, int cores, void *of)
{
    char *words[] = { (char *)"/bin/sh", (char *)"-c", (char *)command, NULL };
    const struct local_process what = { .words = words,
                                        .output = fcntl (t->said[1], F_DUPFD_CLOEXEC, 3),
                                        .gpus = gpus,
                                        .cores = cores,
                                        .of = of };

    return local_pool_start (t->pool, &what);
}

/* Read the next line that a process prints. */
static const char *line (const struct pool_test *t)
{
    static char text[256];
    struct pollfd p = { .fd = t->said[0], .events = POLLIN };
    size_t n = 0;

    while (n < sizeof (text) - 1 && poll (&p, 1, LIMIT * 1000) == 1
           && read (t->said[0], text + n, 1) == 1 && text[n] != '\n')
        n++;
    text[n] = '\0';
    return text;
}

static void await_ends (struct pool_test *t, int n)
{
    double limit = monotonic () + LIMIT;

    while (t->nended < n && monotonic () < limit) {
        local_pool_reap (t->pool);
        usleep (10000);
    }
    assert_int_equal (t->nended, n);
}

#define HOLD(text) "echo " text "; exec sleep 1000"
#define GPUS       HOLD ("$CUDA_VISIBLE_DEVICES $DL_WORKER_PLACE")

CASE (gpus)
{
    struct pool_test t;

    open_pool (&t, 3);
    assert_int_equal (local_gpus (), 4);
    assert_int_equal (start (&t, "echo $CUDA_VISIBLE_DEVICES $DL_WORKER_PLACE", 1, 0, &t), 0);
    assert_string_equal (line (&t), "a 0/3");
    assert_int_equal (start (&t, GPUS, 2, 0, NULL), 0);
    assert_string_equal (line (&t), "b,c 1/3");
    assert_true (local_pool_has_gpus (t.pool, 1));
    assert_false (local_pool_has_gpus (t.pool, 2));
    await_ends (&t, 1);
    assert_ptr_equal (t.ended, &t);
    /* two are free, but not side by side */
    assert_int_equal (start (&t, GPUS, 2, 0, NULL), -1);
    assert_int_equal (errno, EBUSY);
    assert_true (local_pool_has_gpus (t.pool, 0));
    local_pool_resize (t.pool, 9);
    assert_int_equal (start (&t, GPUS, 1, 0, NULL), 0);
    assert_string_equal (line (&t), "a 0/9");
    assert_int_equal (start (&t, GPUS, 0, 0, NULL), 0);
    assert_string_equal (line (&t), "a,b,c,d 2/9");
    close_pool (&t);
    assert_int_equal (t.nended, 4);
    assert_int_equal (WTERMSIG (t.status), SIGTERM);
}

#define CORES HOLD ("$(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)")

CASE (cores)
{
    struct pool_test t;
    int all = cores_count ();
    char own[64];

    if (all < 2)
        SKIP_CASE ("this machine has one core");
    open_pool (&t, 4);
    assert_int_equal (start (&t, CORES, 0, 1, NULL), 0);
    snprintf (own, sizeof (own), "%s", line (&t));
    assert_int_equal (strspn (own, "0123456789"), strlen (own));
    assert_int_equal (start (&t, CORES, 0, 1, NULL), 0);
    assert_string_not_equal (line (&t), own);
    /* too few are left */
    assert_int_equal (start (&t, HOLD ("$(unset OMP_NUM_THREADS; nproc)"), 0, all - 1, NULL), 0);
    assert_int_equal (atoi (line (&t)), all);
    close_pool (&t);
}

CASE (again)
{
    struct pool_test t;

    open_pool (&t, 1);
    assert_int_equal (start (&t, "echo $CUDA_VISIBLE_DEVICES; kill -9 $$", 1, 0, NULL), 0);
    await_ends (&t, 1);
    assert_int_equal (WTERMSIG (t.status), SIGKILL);
    for (int i = 0; i < 20; i++)
        assert_string_equal (line (&t), "a");
    assert_int_equal (start (&t, "echo once; exit 3", 0, 0, NULL), 0);
    await_ends (&t, 2);
    assert_int_equal (WEXITSTATUS (t.status), 3);
    assert_string_equal (line (&t), "once");
    close_pool (&t);
}

CASE (end)
{
    struct pool_test t;

    open_pool (&t, 2);
    assert_int_equal (
        start (&t, "trap 'kill $!; echo ends' TERM; sleep 1000 & echo hears; wait", 0, 0, NULL), 0);
    assert_string_equal (line (&t), "hears");
    local_pool_end (t.pool, LIMIT);
    assert_int_equal (t.nended, 1);
    assert_string_equal (line (&t), "ends");
    close_pool (&t);
}

/* One that ignores SIGTERM is killed, and then not started again. */
CASE (deaf)
{
    struct pool_test t;

    open_pool (&t, 2);
    assert_int_equal (start (&t, "trap '' TERM; " HOLD ("deaf"), 0, 0, NULL), 0);
    assert_string_equal (line (&t), "deaf");
    local_pool_end (t.pool, 1);
    assert_int_equal (t.nended, 1);
    assert_int_equal (WTERMSIG (t.status), SIGKILL);
    close_pool (&t);
}

RUN_CASES ()
