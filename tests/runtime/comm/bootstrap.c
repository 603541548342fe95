/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that meet, come late, start twice, die, or never start. */
#include <sys/mman.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/bootstrap/bootstrap.h"
#include "runtime/comm/net/listener.h"
#include "runtime/comm/net/socket.h"
#include "tests/runtime/comm/world.h"
#include "tests/unit.h"

enum { RANKS_MAX = 200 };

static char address[64];
static int port;

/* The outcome of each rank, in memory that the processes share. */
static struct result {
    int rv, error;
    struct slurmdl_error err;
} * results;

/* Choose a port of loopback that is free now. */
static void choose_address (void)
{
    static int held = -1;

    if (held >= 0)
        close (held);
    held = world_hold_port (&port);
    snprintf (address, sizeof (address), "127.0.0.1:%d", port);
}

static struct boot *open_rank (long rank, long size, double timeout, struct slurmdl_error *err)
{
    struct slurmdl_comm_options o = {
        .rank = rank, .size = size, .address = address, .timeout = timeout
    };

    return boot_open (&o, err);
}

static int exchange (struct boot *b, size_t bytes, struct slurmdl_error *err)
{
    long size = boot_size (b);
    char *all = malloc ((size_t)size * bytes);
    char *mine = malloc (bytes);
    int rv;

    memset (mine, (int)(boot_rank (b) + (long)bytes), bytes);
    rv = boot_allgather (b, mine, bytes, all, err);
    for (long r = 0; r < size && rv == 0; r++)
        for (size_t k = 0; k < bytes; k++)
            if (all[(size_t)r * bytes + k] != (char)(r + (long)bytes))
                rv = errorf (err, "wrong at %ld", r);
    free (all);
    free (mine);
    return rv;
}

static int three_times (struct boot *b, struct slurmdl_error *err)
{
    return exchange (b, 1, err) < 0 || exchange (b, 4096, err) < 0 || exchange (b, 200, err) < 0
               ? -1
               : 0;
}

/* ---- ranks as processes ---- */

static long sizes;           /* of the world */
static double timeout = 100; /* of every rank */
static void (*before) (long rank);
static int (*after) (struct boot *b, struct slurmdl_error *err) = three_times;

static void run_rank (long rank, struct result *r)
{
    struct boot *b;

    if (before)
        before (rank);
    b = open_rank (rank, sizes, timeout, &r->err);
    r->rv = b ? after (b, &r->err) : -1;
    r->error = errno;
    boot_close (b);
}

static pid_t start (long rank, struct result *r)
{
    pid_t pid = fork ();

    if (pid == 0) {
        alarm (300);
        run_rank (rank, r);
        _exit (0);
    }
    return pid;
}

/* Run all ranks but 'absent'; if 'twice' is >= 0, start that rank twice. */
static void run_world (long size, long absent, long twice)
{
    sizes = size;
    choose_address ();
    for (long r = 0; r <= size; r++)
        results[r] = (struct result){ .rv = -2 };
    for (long r = 0; r < size; r++)
        if (r != absent)
            start (r, &results[r]);
    if (twice >= 0) {
        usleep (1000000);
        start (twice, &results[size]);
    }
    while (wait (NULL) > 0)
        continue;
}

static void all_well (long size)
{
    for (long r = 0; r < size; r++) {
        assert_string_equal (results[r].err.text, "");
        assert_int_equal (results[r].rv, 0);
    }
}

static void all_say (long size, long but, int error, const char *what)
{
    for (long r = 0; r < size; r++) {
        if (r == but)
            continue;
        assert_int_equal (results[r].rv, -1);
        if (!strstr (results[r].err.text, what))
            fail_msg ("rank %ld: %s", r, results[r].err.text);
        if (error)
            assert_int_equal (results[r].error, error);
    }
}

static int reset (void **state)
{
    before = NULL;
    after = three_times;
    timeout = 100;
    memset (results, 0, (RANKS_MAX + 1) * sizeof (*results));
    return 0;
}

#define BOOT_CASE(f) CASE_WITH (f, reset, NULL)

BOOT_CASE (meet)
{
    static const long n[] = { 1, 2, 3, 17, 64 };

    for (size_t i = 0; i < COUNT (n); i++) {
        run_world (n[i], -1, -1);
        all_well (n[i]);
    }
}

/* A step of 30 nodes with 4 tasks each, in Slurm's variables. */
static void as_on_nodes (long rank)
{
    char text[64];

    setenv ("SLURM_STEP_NODELIST", "n[01-30]", 1);
    setenv ("SLURM_STEP_TASKS_PER_NODE", "4(x30)", 1);
    setenv ("SLURM_STEP_NUM_TASKS", "120", 1);
    snprintf (text, sizeof (text), "%ld", rank);
    setenv ("SLURM_PROCID", text, 1);
    snprintf (text, sizeof (text), "%ld", rank / 4);
    setenv ("SLURM_NODEID", text, 1);
    rank -= rank % 4;
    snprintf (text, sizeof (text), "%ld,%ld,%ld,%ld", rank, rank + 1, rank + 2, rank + 3);
    setenv ("SLURM_GTIDS", text, 1);
}

BOOT_CASE (one_is_missing)
{
    double began = monotonic ();

    timeout = 3;
    run_world (5, 3, -1);
    all_say (5, 3, ETIMEDOUT, "1 of 5 ranks did not connect within 3 s: 3");
    assert_true (monotonic () - began < 100);
}

static void come_late (long rank)
{
    usleep (rank == 0 || rank == 2 ? 700000 : 0);
}

/* Rank 3 waits until the second rank 2 has been rejected. */
static void come_after (long rank)
{
    for (int i = 0; rank == 3 && results[4].rv == -2 && i < 500; i++)
        usleep (10000);
}

BOOT_CASE (one_comes_twice)
{
    before = come_after;
    run_world (4, -1, 2);
    all_well (4);
    assert_int_equal (results[4].rv, -1);
    assert_int_equal (results[4].error, EEXIST);
    assert_non_null (strstr (results[4].err.text, "rank 2 has come twice"));
}

static long victim;

static int one_dies (struct boot *b, struct slurmdl_error *err)
{
    if (exchange (b, 8, err) < 0)
        return -1;
    if (boot_rank (b) == victim)
        raise (SIGKILL);
    return exchange (b, 8, err);
}

static int sleep_at_1 (struct boot *b, struct slurmdl_error *err)
{
    for (long r = 0; boot_rank (b) == 1 && r < boot_size (b); r++)
        while (r != 1 && results[r].rv == -2)
            usleep (10000);
    return exchange (b, 8, err);
}

static int of_other_sizes (struct boot *b, struct slurmdl_error *err)
{
    return exchange (b, boot_rank (b) == 1 ? 8 : 12, err);
}

/* Worlds in which all ranks meet, or all but one fail for the same reason. */
static const struct world {
    const char *name;
    void (*before) (long rank);
    int (*after) (struct boot *b, struct slurmdl_error *err);
    double timeout;
    long size, absent, victim;
    int error;
    const char *said;
} worlds[] = {
    /* too many for a star: the ranks that come first get children */
    { "meet_many", NULL, three_times, 100, 150, -1, -1, 0, NULL },
    { "meet_on_nodes", as_on_nodes, three_times, 100, 120, -1, -1, 0, NULL },
    { "one_is_late", come_late, three_times, 100, 4, -1, -1, 0, NULL },
    { "one_of_a_node_is_missing", as_on_nodes, three_times, 8, 120, 41, 41, ETIMEDOUT,
      "1 of 120 ranks did not connect within 8 s: 41 (n11)" },
    { "a_leader_is_missing", as_on_nodes, three_times, 8, 120, 40, 40, ETIMEDOUT,
      "1 of 120 ranks did not connect within 8 s: 40 (n11)" },
    { "rank_0_is_missing", NULL, three_times, 3, 3, 0, 0, ETIMEDOUT,
      "rank 0 did not answer at 127.0.0.1:" },
    { "one_dies", NULL, one_dies, 100, 6, -1, 2, ECONNRESET, "rank 2 (" },
    { "one_dies: the reason", NULL, one_dies, 100, 6, -1, 2, ECONNRESET,
      "has ended or lost its connection" },
    /* rank 140 is far from rank 0 in the tree; every rank must still learn of its death */
    { "one_dies_in_a_tree", NULL, one_dies, 100, 150, -1, 140, ECONNRESET, "rank 140 (" },
    { "one_sleeps", NULL, sleep_at_1, 3, 4, -1, 1, ETIMEDOUT,
      "rank 0 has waited for 3 s for an exchange with 1" },
    { "one_exchanges_something_else", NULL, of_other_sizes, 100, 3, -1, -1, EPROTO,
      "another exchange" },
};

static void play (void **state)
{
    const struct world *w = *state;

    before = w->before;
    after = w->after;
    timeout = w->timeout;
    victim = w->victim;
    run_world (w->size, w->absent, -1);
    if (w->said)
        all_say (w->size, w->victim, w->error, w->said);
    else
        all_well (w->size);
}

/* ---- connections without the secret ---- */

static void disturb (void)
{
    static const char garbage[] = "GET / HTTP/1.1\r\nHost: node01\r\n\r\n";
    double until = monotonic () + 1.5;

    while (monotonic () < until) {
        int silent = socket_connect ("127.0.0.1", port, monotonic () + 1);
        int fd = socket_connect ("127.0.0.1", port, monotonic () + 1);
        if (fd >= 0) {
            socket_send (fd, garbage, sizeof (garbage), monotonic () + 1);
            close (fd);
        }
        usleep (20000);
        if (silent >= 0)
            close (silent);
    }
    _exit (0);
}

/* Rank 1 of another job on the same port.  It needs its own secret, because the
 * jobs of one user share a secret file and trust each other.
 */
static void be_of_another_job (void)
{
    struct slurmdl_error err = { "" };

    setenv ("DL_SECRET", "0123456789abcdef0123456789abcdef", 1);
    setenv ("SLURM_JOB_ID", "77", 1);
    setenv ("SLURM_STEP_ID", "0", 1);
    _exit (open_rank (1, 3, 1, &err) ? 1 : 0);
}

static void come_with_intruders (long rank)
{
    if (rank == 0 && fork () == 0)
        disturb ();
    if (rank == 0 && fork () == 0)
        be_of_another_job ();
    usleep (rank == 2 ? 1200000 : 0);
}

BOOT_CASE (intruders_are_sent_away)
{
    before = come_with_intruders;
    run_world (3, -1, -1);
    all_well (3);
}

static void change_size (long rank)
{
    if (rank == 2)
        sizes = 5;
}

BOOT_CASE (sizes_differ)
{
    before = change_size;
    timeout = 3;
    run_world (3, -1, -1);
    assert_non_null (strstr (results[2].err.text, "rank 2 is one of 5 ranks, and rank 0 one of 3"));
    assert_non_null (strstr (results[1].err.text, "did not connect within 3 s: 2"));
}

static void at_taken_port (struct listen_sockets *s, const char *host)
{
    assert_int_equal (listen_open (s, "127.0.0.1", 0), 0);
    snprintf (address, sizeof (address), "%s:%d", host, s->port);
}

static void start_all (long size)
{
    sizes = size;
    for (long r = 0; r < size; r++) {
        results[r] = (struct result){ .rv = -2 };
        start (r, &results[r]);
    }
    while (wait (NULL) > 0)
        continue;
}

/* Nobody waits for the port: rank 0 listens on another one and publishes it. */
BOOT_CASE (port_is_taken)
{
    struct listen_sockets s;
    double begun = monotonic ();

    at_taken_port (&s, "127.0.0.1");
    start_all (3);
    all_well (3);
    assert_true (monotonic () - begun < 90);
    listen_close (&s);
}

/* Nobody waits for a rank 0 that finds no free port either. */
BOOT_CASE (all_ports_are_taken)
{
    double begun = monotonic ();
    struct listen_sockets s;
    char range[32];

    at_taken_port (&s, "192.0.2.1");
    snprintf (range, sizeof (range), "%d-%d", s.port, s.port);
    setenv ("DL_COMM_PORTS", range, 1);
    start_all (3);
    unsetenv ("DL_COMM_PORTS");
    all_say (3, -1, 0, "cannot listen: no port to listen on: Address already");
    assert_true (monotonic () - begun < 90);
    listen_close (&s);
}

/* Ranks that cannot publish a port can meet only on the one they agreed on. */
BOOT_CASE (nothing_can_be_published)
{
    struct slurmdl_error err = { "" };
    char *home = strdup (getenv ("HOME") ? getenv ("HOME") : "");
    struct listen_sockets s;

    setenv ("HOME", "/nonexistent", 1);
    setenv ("DL_SECRET", "0123456789abcdef0123456789abcdef", 1);
    run_world (3, -1, -1);
    all_well (3);
    at_taken_port (&s, "127.0.0.1");
    assert_null (open_rank (0, 2, 100, &err));
    assert_non_null (strstr (err.text, "is in use, and cannot publish"));
    assert_non_null (strstr (err.text, "DL_COMM_ADDRESS"));
    listen_close (&s);
    unsetenv ("DL_SECRET");
    setenv ("HOME", home, 1);
    free (home);
}

/* While rank 0 lingers, wait for rank 1, however late it is. */
int nanosleep (const struct timespec *t, struct timespec *left)
{
    for (int i = 0; t->tv_sec >= 5 && results[1].rv == -2 && i < 10000; i++)
        usleep (10000);
    return clock_nanosleep (CLOCK_MONOTONIC, 0, t, left);
}

/* Rank 2 wants no tags; it and rank 0 see that they disagree.  Rank 1 arrives
 * after rank 2 has failed.
 */
static void set_plain (long rank)
{
    setenv ("DL_COMM_INTEGRITY", rank == 2 ? "handshake" : "frames", 1);
    while (rank == 1 && results[2].rv == -2)
        usleep (10000);
}

BOOT_CASE (one_is_plain)
{
    before = set_plain;
    run_world (3, -1, -1);
    all_say (3, -1, 0, "DL_COMM_INTEGRITY=handshake");
    assert_int_equal (results[0].error, EOPNOTSUPP);
    assert_int_equal (results[2].error, EOPNOTSUPP);
}

BOOT_CASE (all_are_plain)
{
    setenv ("DL_COMM_INTEGRITY", "handshake", 1);
    run_world (3, -1, -1);
    all_well (3);
    setenv ("DL_COMM_INTEGRITY", "none", 1);
    run_world (2, -1, -1);
    all_say (2, -1, EINVAL, "DL_COMM_INTEGRITY=none: not frames or handshake");
    unsetenv ("DL_COMM_INTEGRITY");
}

BOOT_CASE (over_ipv6)
{
    sizes = 2;
    timeout = 50;
    choose_address ();
    snprintf (address, sizeof (address), "[::1]:%d", port);
    start (1, &results[1]);
    run_rank (0, &results[0]);
    wait (NULL);
    all_well (2);
}

int main (void)
{
    results = mmap (NULL, (RANKS_MAX + 1) * sizeof (*results), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED)
        return 99;
    for (size_t i = 0; i < COUNT (worlds); i++)
        add_case ((struct CMUnitTest){ worlds[i].name, play, reset, NULL, (void *)&worlds[i] });
    alarm (900);
    return run_cases (NULL, NULL);
}
