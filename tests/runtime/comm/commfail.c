/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that die, stop, stay away, abort or call something else: all others
 * get a clear error within the time limit.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "runtime/base/clock.h"
#include "runtime/comm/api/comm.h"
#include "tests/runtime/comm/world.h"
#include "tests/unit.h"

enum { BAD = 2 };

/* Seconds that the failing collective may take: several timeouts, because the
 * machine may be busy, but less than the child of is_killed_with_child() lives.
 */
enum { WITHIN = 60 };

/* Shared by all ranks. */
static struct shared {
    atomic_int seen; /* ranks that have seen the error */
    _Atomic pid_t stopped;
} * shared;

/* What the bad rank does, and what the others must report. */
struct scene {
    const char *name;
    int (*bad) (struct slurmdl_comm *w);
    int code;
    const char *texts[3];
    size_t n;
    bool first; /* the bad rank is rank 0 */
};

static int failed (struct slurmdl_comm *w, const char *what, const char *text)
{
    fprintf (stderr, "# rank %ld: %s: %s\n", slurmdl_comm_rank (w), what, text);
    return 1;
}

static int work (struct slurmdl_comm *w, size_t n, struct slurmdl_error *err)
{
    float *x = calloc (n, sizeof (*x));
    int rv = slurmdl_allreduce (w, x, x, n, SLURMDL_F32, SLURMDL_SUM, err);
    int saved = errno;

    free (x);
    errno = saved;
    return rv;
}

/* Later calls fail, too, and say why. */
static int stays_broken (struct slurmdl_comm *w, const char *why)
{
    struct slurmdl_error err;
    int bad = work (w, 1, &err) == 0 || errno != ENOTCONN || !strstr (err.text, "broken");

    return bad ? failed (w, "is not broken", err.text) : 0;
}

static int see_it (struct slurmdl_comm *w, const struct scene *s)
{
    struct slurmdl_error err;
    double begin = monotonic ();
    double since = begin;
    int code = 0;

    while (monotonic () < begin + 200 && code == 0) {
        since = monotonic ();
        if (work (w, s->n, &err) < 0)
            code = errno;
    }
    if (code != s->code)
        return failed (w, strerror (code), code ? err.text : "no error");
    if (monotonic () > since + WITHIN)
        return failed (w, "too late", err.text);
    for (int i = 0; i < 3 && s->texts[i]; i++)
        if (!strstr (err.text, s->texts[i]))
            return failed (w, s->texts[i], err.text);
    return stays_broken (w, err.text);
}

static int on_rank (struct slurmdl_comm *w, void *arg)
{
    const struct scene *s = arg;
    struct slurmdl_error err;

    mesh_set_timeout (w->mesh, 4);
    if (slurmdl_comm_rank (w) != (s->first ? 0 : BAD)) {
        int bad = see_it (w, s);
        if (atomic_fetch_add (&shared->seen, 1) == slurmdl_comm_size (w) - 2 && shared->stopped)
            kill (shared->stopped, SIGKILL);
        return bad;
    }
    for (int i = 0; i < 3; i++)
        if (work (w, s->n, &err) < 0)
            return failed (w, "beginning", err.text);
    return s->bad (w);
}

static int is_killed (struct slurmdl_comm *w)
{
    return raise (SIGKILL);
}

/* Another process kills it in the middle of a collective. */
static int is_killed_later (struct slurmdl_comm *w)
{
    struct slurmdl_error err;
    pid_t pid = getpid ();

    if (fork () == 0) {
        usleep (100000);
        kill (pid, SIGKILL);
        _exit (0);
    }
    while (work (w, 1 << 20, &err) == 0)
        ;
    return 0;
}

/* It stays stopped until all others have seen the error. */
static int is_stopped (struct slurmdl_comm *w)
{
    shared->stopped = getpid ();
    raise (SIGSTOP);
    return 0;
}

static int stays_away (struct slurmdl_comm *w)
{
    while (atomic_load (&shared->seen) < slurmdl_comm_size (w) - 1)
        usleep (10000);
    return 0;
}

static int gives_up (struct slurmdl_comm *w)
{
    slurmdl_comm_abort (w, "the loss is not a number");
    return stays_broken (w, "");
}

static int leaves (struct slurmdl_comm *w)
{
    return 0;
}

static int calls_another (struct slurmdl_comm *w)
{
    struct slurmdl_error err;
    float x[100] = { 0 };

    return slurmdl_allreduce (w, x, x, 100, SLURMDL_F32, SLURMDL_MAX, &err) == 0 || errno != EPROTO;
}

static int has_another_size (struct slurmdl_comm *w)
{
    struct slurmdl_error err;

    return work (w, 50000, &err) == 0 || errno != EPROTO;
}

static int calls_barrier (struct slurmdl_comm *w)
{
    struct slurmdl_error err;

    return slurmdl_barrier (w, &err) == 0 || errno != EPROTO;
}

/* A child that survives must not hide the death of its parent. */
static int is_killed_with_child (struct slurmdl_comm *w)
{
    if (fork () == 0) {
        for (int fd = 0; fd < 3; fd++)
            close (fd); /* whoever reads the test's output must not wait for the child */
        sleep (120);
        _exit (0);
    }
    return raise (SIGKILL);
}

/* clang-format off */
static const struct scene scenes[] = {
    { "killed",                    is_killed,            ECONNRESET, { "rank 2 on" }, 1000 },
    { "killed, 4 MiB",             is_killed_later,      ECONNRESET, { "rank 2 on" }, 1 << 20 },
    { "killed, a child lives",     is_killed_with_child, ECONNRESET, { "rank 2 on" }, 1000 },
    { "stopped",                   is_stopped,           ETIMEDOUT,  { "rank 2 on", "stopped" }, 1000 },
    { "stopped, 4 MiB",            is_stopped,           ETIMEDOUT,  { "rank 2 on", "stopped" }, 1 << 20 },
    { "away",                      stays_away,           ETIMEDOUT,  { "rank 2 on", "did not reach", "has called 3" }, 1000 },
    { "away, the first",           stays_away,           ETIMEDOUT,  { "rank 0 on", "did not reach" }, 1000, true },
    { "abort",                     gives_up,             ECONNRESET, { "rank 2 on", "aborted", "the loss is not a number" }, 1000 },
    { "closed",                    leaves,               ECONNRESET, { "rank 2 on" }, 1000 },
    { "another operation",         calls_another,        EPROTO,     { "allreduce", "max" }, 100 },
    { "another size",              has_another_size,     EPROTO,     { "bytes" }, 1000 },
    { "another collective",        calls_barrier,        EPROTO,     { "barrier" }, 1000 },
    { "another collective, 4 MiB", calls_barrier,        EPROTO,     { "barrier" }, 1 << 20 },
};
/* clang-format on */

/* All ranks must exit with 0, but the bad one may be killed. */
static int others_failed (const int *status, int size)
{
    int bad = 0;

    for (int r = 0; r < size; r++)
        bad += status[r] != 0
               && !(r == BAD && WIFSIGNALED (status[r]) && WTERMSIG (status[r]) == SIGKILL);
    return bad;
}

static void play (void **state)
{
    const struct scene *s = *state;
    int sizes[][2] = { { 5, 2 }, { 4, 1 }, { 3, 0 } };
    int status[8];
    size_t n = getenv ("DL_TEST_SOAK") ? 3 : 2;

    for (size_t i = 0; i < n; i++) {
        *shared = (struct shared){ 0 };
        world_run (sizes[i][0], sizes[i][1], on_rank, (void *)s, 300, status);
        assert_int_equal (others_failed (status, sizes[i][0]), 0);
    }
}

/* ---- no failure: others connect to a stopped rank ---- */

static void go_on_later (pid_t pid)
{
    if (fork () == 0) {
        sleep (4); /* longer than the first attempts to connect take */
        kill (pid, SIGCONT);
        _exit (0);
    }
}

static int is_late (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_error err = { "" };

    if (slurmdl_comm_rank (w) == BAD) {
        go_on_later (getpid ());
        raise (SIGSTOP);
    }
    if (work (w, 1000, &err) < 0 || work (w, 1 << 20, &err) < 0)
        return failed (w, "though all lived", err.text);
    return 0;
}

WORLD_CASE (test_called_while_stopped, 4, 1, is_late)

static atomic_int connects = -1;

/* Simulate a busy machine: the second connection waits for a CPU. */
int connect (int fd, const struct sockaddr *a, socklen_t n)
{
    if (atomic_load (&connects) >= 0 && atomic_fetch_add (&connects, 1) == 1)
        usleep (400000);
    return (int)syscall (SYS_connect, fd, a, n);
}

/* Rank 1 sends all that rank 0 waits for, and exits just when rank 0 starts to
 * check whether it is alive.
 */
static int ends_early (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_error err = { "" };
    double x = (double)slurmdl_comm_rank (w);

    atomic_store (&connects, x == 0 ? 0 : -1);
    usleep (x == 0 ? 0 : 200000);
    if (slurmdl_broadcast (w, &x, sizeof (x), 1, &err) < 0 || x != 1)
        return failed (w, "though all was sent", err.text);
    return 0;
}

WORLD_CASE (test_ends_early, 2, 1, ends_early)

static atomic_bool dozes;

/* Simulate a busy machine: the listener's thread has accepted a connection, and
 * waits for a CPU before it delivers it.
 */
int setsockopt (int fd, int level, int name, const void *value, socklen_t n)
{
    if (gettid () != getpid () && atomic_exchange (&dozes, false))
        usleep (600000);
    return (int)syscall (SYS_setsockopt, fd, level, name, value, n);
}

/* Rank 1 aborts with a reason and exits before rank 0 has received the reason. */
static int reason_is_late (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_error err = { "" };
    double x = 0;

    if (slurmdl_broadcast (w, &x, sizeof (x), 1, &err) < 0)
        return failed (w, "beginning", err.text);
    if (slurmdl_comm_rank (w) == 1) {
        while (atomic_load (&shared->seen) == 0)
            usleep (1000);
        slurmdl_comm_abort (w, "the loss is not a number");
        return 0;
    }
    atomic_store (&dozes, true);
    atomic_store (&shared->seen, 1);
    if (slurmdl_broadcast (w, &x, sizeof (x), 1, &err) == 0
        || !strstr (err.text, "the loss is not a number"))
        return failed (w, "not the reason", err.text);
    return 0;
}

CASE (test_reason_is_late)
{
    *shared = (struct shared){ 0 };
    assert_int_equal (world_run (2, 1, reason_is_late, NULL, 120, NULL), 0);
}

int main (void)
{
    shared =
        mmap (NULL, sizeof (*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < COUNT (scenes); i++)
        add_case ((struct CMUnitTest){ scenes[i].name, play, NULL, NULL, (void *)&scenes[i] });
    return run_cases (NULL, NULL);
}
