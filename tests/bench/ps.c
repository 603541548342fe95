/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a parameter server is, beside a plain copy over the loopback.
 *
 *     tests/bench/ps [ROUNDS]
 *
 * Two servers and two workers on this machine.  In turns, ROUNDS (7) times:
 * two pairs of processes send 50 MB each way to each other, twice (as much as
 * two workers that push and pull 100 MB exchange with two servers), and the
 * workers push and pull a dense table of 100 MB.  Then rows of 64 elements.
 * Medians, and the ratio of each round's pair.
 */
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/comm/net/socket.h"
#include "runtime/ps/wire.h"
#include "runtime/slurmdl_ps.h"
#include "tests/bench/bench.h"

enum {
    SERVERS = 2,
    WORKERS = 2,
    ELEMENTS = 25000000, /* 100 MB */
    ROW = 64,
    ROWS = 10000,
    REPEATS = 20,
    ROUNDS_MAX = 100
};

struct board {
    double dense[ROUNDS_MAX], copy[ROUNDS_MAX];
    double push_rows, pull_rows;
    volatile int turn, ready;
};
static struct board *board;
static int rounds = 7;
static char dir[] = "/tmp/dl-bench.XXXXXX";

static void fail (const char *what, const struct slurmdl_error *err)
{
    fprintf (stderr, "%s: %s\n", what, err ? err->text : strerror (errno));
    _exit (1);
}

/* All workers come here before one goes on. */
static void meet (int turn)
{
    if (__atomic_add_fetch (&board->ready, 1, __ATOMIC_SEQ_CST)
        == WORKERS * turn)
        board->turn = turn;
    while (board->turn < turn)
        usleep (200);
}

/* ---- plain sockets ---- */

/* The servers' side: read 'n' bytes, then send as many. */
static void reflect (int fd, char *buf, size_t n)
{
    if (socket_recv (fd, buf, n, monotonic () + 60) < 0
        || socket_send (fd, buf, n, monotonic () + 60) < 0)
        fail ("socket", NULL);
}

/* Each worker with each server, at once. */
static void copy_worker (const int *fds, char *buf, size_t n)
{
    size_t sent[SERVERS] = { 0 };
    size_t got[SERVERS] = { 0 };
    int left = SERVERS;

    while (left > 0) {
        struct pollfd p[SERVERS];
        for (int i = 0; i < SERVERS; i++)
            p[i] = (struct pollfd){
                .fd = got[i] < n ? fds[i] : -1,
                .events = (short)(sent[i] < n ? POLLIN | POLLOUT : POLLIN)
            };
        if (poll (p, SERVERS, 60000) <= 0)
            fail ("poll", NULL);
        for (int i = 0; i < SERVERS; i++) {
            char *at = buf + (size_t)i * n;
            ssize_t k = 0;
            if (p[i].revents & POLLOUT
                && (k = send (fds[i], at + sent[i], n - sent[i], MSG_NOSIGNAL))
                       > 0)
                sent[i] += (size_t)k;
            if (p[i].revents & POLLIN
                && (k = recv (fds[i], at + got[i], n - got[i], 0)) > 0)
                got[i] += (size_t)k;
            if (got[i] == n && p[i].fd >= 0)
                left--;
        }
    }
}

static int pair[SERVERS][WORKERS][2];

/* TCP over the loopback, as the servers use it. */
static void connect_pairs (void)
{
    struct listen_sockets l;
    struct ps_entry e;

    for (int s = 0; s < SERVERS; s++)
        for (int w = 0; w < WORKERS; w++) {
            memset (&e, 0, sizeof (e));
            if (pswire_listen ("127.0.0.1", &e, &l, NULL) < 0
                || (pair[s][w][0] = pswire_connect (&e)) < 0)
                fail ("socket", NULL);
            while ((pair[s][w][1] = accept4 (
                        l.fd[0], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC))
                   < 0)
                usleep (1000);
            pswire_tune (pair[s][w][0], 10);
            pswire_tune (pair[s][w][1], 10);
            listen_close (&l);
        }
}

static void copy_server (int s)
{
    size_t n = (size_t)ELEMENTS * 4 / SERVERS;
    char *buf = malloc (n);
    pid_t pid;

    /* one process for each worker: nothing but the copies */
    for (int w = 0; w < WORKERS; w++)
        if ((pid = fork ()) == 0) {
            for (int r = 0; r <= rounds; r++)
                reflect (pair[s][w][1], buf, n);
            _exit (0);
        }
    while (wait (NULL) > 0)
        ;
    _exit (0);
}

/* ---- the parameter server ---- */

static struct slurmdl_ps *join (const char *role, long index)
{
    struct slurmdl_ps_options o = { .role = role,
                                    .index = index,
                                    .servers = SERVERS,
                                    .workers = WORKERS,
                                    .dir = dir,
                                    .mode = SLURMDL_PS_ASYNC,
                                    .log_bytes =
                                        getenv ("DL_PS_LOG_BYTES") ? 0 : -1 };
    struct slurmdl_error err;
    struct slurmdl_ps *ps = slurmdl_ps_open (&o, &err);

    if (!ps)
        fail ("open", &err);
    return ps;
}

static void server (int s)
{
    struct slurmdl_ps *ps = join ("server", s);
    struct slurmdl_error err;

    if (slurmdl_ps_serve (ps, &err) < 0)
        fail ("serve", &err);
    slurmdl_ps_close (ps);
    _exit (0);
}

static void dense_round (struct slurmdl_ps *ps, int w, float *g, float *v)
{
    struct slurmdl_error err;
    int64_t pushed;

    if (slurmdl_ps_push (ps, w, g, &pushed, &err) < 0
        || slurmdl_ps_pull (ps, w, v, NULL, &err) < 0
        || slurmdl_ps_wait (ps, pushed, &err) < 0
        || slurmdl_ps_clock (ps, &err) < 0)
        fail ("dense", &err);
}

static double rows_round (struct slurmdl_ps *ps, int e, int push)
{
    static uint64_t ids[ROWS];
    static float rows[ROWS * ROW];
    struct slurmdl_error err;
    double began;

    for (size_t i = 0; i < ROWS; i++)
        ids[i] = ps_mix (i) % 1000000;
    began = monotonic ();
    for (int i = 0; i < REPEATS; i++)
        if ((push ? slurmdl_ps_push_rows (ps, e, ids, ROWS, rows, NULL, &err)
                  : slurmdl_ps_pull_rows (ps, e, ids, ROWS, rows, NULL, &err))
            < 0)
            fail ("rows", &err);
    if (slurmdl_ps_wait (ps, 0, &err) < 0)
        fail ("wait", &err);
    return monotonic () - began;
}

static void worker (int me)
{
    struct slurmdl_ps_table dense = { .name = "dense",
                                      .n = ELEMENTS,
                                      .rule = SLURMDL_PS_ADD };
    struct slurmdl_ps_table sparse = { .name = "sparse",
                                       .row = ROW,
                                       .rule = SLURMDL_PS_ADAGRAD,
                                       .rate = 0.1,
                                       .high = 1 };
    struct slurmdl_ps *ps = join ("worker", me);
    float *g = calloc (ELEMENTS, sizeof (*g));
    float *v = calloc (ELEMENTS, sizeof (*v));
    int d = slurmdl_ps_table (ps, &dense, NULL, NULL);
    int e = slurmdl_ps_table (ps, &sparse, NULL, NULL);
    int fds[SERVERS];
    int turn = 0;
    double began;

    memset (g, 0, ELEMENTS * sizeof (*g));
    for (int s = 0; s < SERVERS; s++)
        fds[s] = pair[s][me][0];
    for (int r = -1; r < rounds; r++) { /* the first is not counted */
        meet (++turn);
        began = monotonic ();
        copy_worker (fds, (char *)v, (size_t)ELEMENTS * 4 / SERVERS);
        meet (++turn);
        if (r >= 0 && me == 0)
            board->copy[r] = monotonic () - began;
        began = monotonic ();
        dense_round (ps, d, g, v);
        meet (++turn);
        if (r >= 0 && me == 0)
            board->dense[r] = monotonic () - began;
    }
    rows_round (ps, e, 0);
    meet (++turn);
    board->pull_rows = rows_round (ps, e, 0);
    meet (++turn);
    board->push_rows = rows_round (ps, e, 1);
    slurmdl_ps_close (ps);
    _exit (0);
}

static void report (void)
{
    double ratio[ROUNDS_MAX];
    double bytes = 2.0 * WORKERS * ELEMENTS * 4;
    double rows = (double)WORKERS * REPEATS * ROWS;

    for (int r = 0; r < rounds; r++)
        ratio[r] = board->copy[r] / board->dense[r];
    printf ("plain copy      %6.2f GB/s\n",
            bytes / median (board->copy, (size_t)rounds) / 1e9);
    printf ("dense push+pull %6.2f GB/s, %.2f of the copy\n",
            bytes / median (board->dense, (size_t)rounds) / 1e9,
            median (ratio, (size_t)rounds));
    printf ("rows of %d: push %.2f M/s, pull %.2f M/s\n",
            ROW,
            rows / board->push_rows / 1e6,
            rows / board->pull_rows / 1e6);
}

int main (int argc, char **argv)
{
    pid_t pids[2 * SERVERS + WORKERS];
    int failed = 0;
    int status;
    int n = 0;

    if (argc > 1 && atoi (argv[1]) > 0 && atoi (argv[1]) <= ROUNDS_MAX)
        rounds = atoi (argv[1]);
    board = mmap (NULL,
                  sizeof (*board),
                  PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS,
                  -1,
                  0);
    if (board == MAP_FAILED || !mkdtemp (dir))
        fail ("bench", NULL);
    connect_pairs ();
    for (int i = 0; i < 2 * SERVERS + WORKERS; i++)
        if ((pids[n++] = fork ()) == 0) {
            if (i < SERVERS)
                server (i);
            else if (i < 2 * SERVERS)
                copy_server (i - SERVERS);
            else
                worker (i - 2 * SERVERS);
        }
    while (n > 0) {
        waitpid (pids[--n], &status, 0);
        failed |= status;
    }
    if (!failed)
        report ();
    fflush (stdout);
    return execlp ("rm", "rm", "-rf", dir, (char *)NULL);
}
