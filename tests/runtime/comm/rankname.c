/* SPDX-License-Identifier: Apache-2.0 */
/* Names, addresses and sockets of ranks that meet. */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "runtime/base/clock.h"
#include "runtime/comm/bootstrap/bootstrap.h"
#include "runtime/comm/bootstrap/tcp.h"
#include "runtime/comm/net/address.h"
#include "runtime/comm/net/listener.h"
#include "runtime/comm/net/socket.h"
#include "tests/runtime/comm/world.h"
#include "tests/unit.h"

CASE (addresses)
{
    static const struct {
        const char *text, *host;
        int port;
    } rows[] = { { "node01:41000", "node01", 41000 },
                 { "[fe80::1]:1", "fe80::1", 1 },
                 { "::1:65535", "::1", 65535 },
                 { "node01", NULL, 0 },
                 { ":1", NULL, 0 },
                 { "a:", NULL, 0 },
                 { "a:0", NULL, 0 },
                 { "a:65536", NULL, 0 },
                 { "a:1x", NULL, 0 } };
    char host[64];
    int n;

    for (size_t i = 0; i < COUNT (rows); i++)
        if (rows[i].host) {
            assert_int_equal (address_split (rows[i].text, host, sizeof (host), &n), 0);
            assert_string_equal (host, rows[i].host);
            assert_int_equal (n, rows[i].port);
        } else
            assert_int_equal (address_split (rows[i].text, host, sizeof (host), &n), -1);
}

CASE (names)
{
    bool missing[4000] = { false };
    char text[160];

    missing[3] = missing[8] = missing[9] = missing[10] = true;
    boot_name_ranks (text, sizeof (text), missing, 4000, NULL);
    assert_string_equal (text, "3, 8-10");
    for (int i = 0; i < 4000; i += 2)
        missing[i] = true;
    boot_name_ranks (text, sizeof (text), missing, 4000, NULL);
    assert_true (strlen (text) < sizeof (text));
    assert_non_null (strstr (text, " more"));
}

static void control_of (int fd, char *name, size_t size)
{
    socklen_t n = (socklen_t)size;

    memset (name, 0, size);
    assert_int_equal (getsockopt (fd, IPPROTO_TCP, TCP_CONGESTION, name, &n), 0);
}

/* Check both ends of the connection. */
static void both_use_reno (struct listen_sockets *s, int caller)
{
    char name[17];
    int called;

    assert_true (caller >= 0);
    assert_int_equal (socket_wait (s->fd[0], POLLIN, monotonic () + 100), 0);
    called = accept (s->fd[0], NULL, NULL);
    control_of (called, name, sizeof (name));
    assert_string_equal (name, "reno");
    control_of (caller, name, sizeof (name));
    assert_string_equal (name, "reno");
    close (caller);
    close (called);
    listen_close (s);
}

CASE (congestion_control)
{
    struct slurmdl_error err = { "" };
    char name[17];
    struct listen_sockets s;
    int caller;

    unsetenv ("DL_COMM_CONGESTION");
    caller = socket (AF_INET, SOCK_STREAM, 0);
    assert_int_equal (socket_congestion (caller, &err), 0);
    control_of (caller, name, sizeof (name));
    assert_true (strncmp (name, "bbr", 3) != 0);
    close (caller);
    setenv ("DL_COMM_CONGESTION", "reno", 1);
    assert_int_equal (listen_open_range (&s, NULL, 0, &err), 0);
    both_use_reno (&s, socket_connect ("127.0.0.1", s.port, monotonic () + 100));
    setenv ("DL_COMM_CONGESTION", "none-such", 1);
    assert_int_equal (listen_open_range (&s, NULL, 0, &err), -1);
    assert_non_null (strstr (err.text, "DL_COMM_CONGESTION=none-such"));
    unsetenv ("DL_COMM_CONGESTION");
}

/* ---- node names that are not host names ---- */

static bool waited; /* the main thread called the resolver */

int __real_getaddrinfo (const char *name, const char *service, const struct addrinfo *hints,
                        struct addrinfo **list);
int __wrap_getaddrinfo (const char *name, const char *service, const struct addrinfo *hints,
                        struct addrinfo **list);

/* A resolver that does not answer. */
int __wrap_getaddrinfo (const char *name, const char *service, const struct addrinfo *hints,
                        struct addrinfo **list)
{
    if (!name || strncmp (name, "nosuch", 6) || (hints && hints->ai_flags & AI_NUMERICHOST))
        return __real_getaddrinfo (name, service, hints, list);
    waited |= gettid () == getpid ();
    if (gettid () != getpid ())
        sleep (200);
    return EAI_AGAIN;
}

/* Describe rank 'rank' of a step whose nodes are all this machine. */
static void set_step (long rank, long size, int port)
{
    const struct {
        const char *name, *before;
        long value;
        const char *after;
    } rows[] = { { "SLURM_STEP_NODELIST", "nosuch[0-", size - 1, "]" },
                 { "SLURM_STEP_NUM_TASKS", "", size, "" },
                 { "SLURM_STEP_TASKS_PER_NODE", "1(x", size, ")" },
                 { "SLURM_PROCID", "", rank, "" },
                 { "SLURM_GTIDS", "", rank, "" },
                 { "SLURM_NODEID", "", rank, "" },
                 { "SLURMD_NODENAME", "nosuch", rank, "" },
                 { "SLURM_STEP_RESV_PORTS", "1,1,", port, "" } };
    static const char *const others[] = { "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                                          "DL_COMM_ADDRESS" };
    char text[64];

    for (size_t i = 0; i < COUNT (others); i++)
        unsetenv (others[i]);
    for (size_t i = 0; i < COUNT (rows); i++) {
        snprintf (text, sizeof (text), "%s%ld%s", rows[i].before, rows[i].value, rows[i].after);
        setenv (rows[i].name, text, 1);
    }
}

/* Returns 0; 1: it failed; 2: it waited for the resolver. */
static int be_rank (long rank, long size, int port)
{
    struct slurmdl_comm_options o = { .bootstrap = "tcp", .timeout = 60 };
    struct slurmdl_error err = { "" };
    struct boot *b;
    char all[100], mine = (char)rank;

    set_step (rank, size, port);
    b = boot_open (&o, &err);
    if (!b || boot_allgather (b, &mine, 1, all, &err) < 0) {
        fprintf (stderr, "# rank %ld: %s\n", rank, err.text);
        return 1;
    }
    boot_close (b);
    return waited ? 2 : 0;
}

static void meet_without_resolver (long size)
{
    int port = 0, status;
    int held = world_hold_port (&port);

    fflush (NULL);
    for (long r = 0; r < size; r++)
        if (fork () == 0) {
            alarm (200);
            _exit (be_rank (r, size, port));
        }
    for (long r = 0; r < size; r++) {
        assert_true (wait (&status) > 0);
        assert_int_equal (status, 0);
    }
    close (held);
}

/* 3 ranks form a star, 100 a tree. */
CASE (ranks_do_not_wait_for_the_resolver)
{
    meet_without_resolver (3);
    meet_without_resolver (100);
}

RUN_CASES ()
