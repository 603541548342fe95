/* SPDX-License-Identifier: Apache-2.0 */
/* Check the lines of a node check, and the collector with many connections, some of them without
 * the key.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "launcher/node/checks.h"
#include "launcher/node/diagnosis.h"
#include "runtime/base/clock.h"
#include "runtime/comm/net/stream.h"
#include "tests/unit.h"

CASE (cleaning)
{
    char buf[8];

    gather_clean (buf, sizeof (buf), "a\tb\x7f\xc3\xa4too long");
    assert_string_equal (buf, "a?b???t");
    gather_clean (buf, sizeof (buf), NULL);
    assert_string_equal (buf, "");
}

/* ---- the wire ---- */

CASE (lines)
{
    static const char text[] = "{\"a\":1}\n{\"a\":2}\n[]\n";
    struct gather_line line = { 0 };
    json_t *v;
    int fds[2];

    assert_int_equal (pipe2 (fds, O_NONBLOCK), 0);
    for (size_t i = 0; i < sizeof (text) - 1; i++) {
        assert_int_equal (write (fds[1], text + i, 1), 1);
        v = gather_read (fds[0], &line);
        if (text[i] != '\n') {
            assert_null (v);
            assert_int_equal (errno, EAGAIN);
        } else if (i < sizeof (text) - 2)
            assert_true (json_integer_value (json_object_get (v, "a")) >= 1);
        else {
            assert_null (v);
            assert_int_equal (errno, EBADMSG);
        }
        json_decref (v);
    }
    close (fds[1]);
    assert_null (gather_read (fds[0], &line));
    assert_int_equal (errno, ECONNRESET);
    close (fds[0]);
    gather_line_free (&line);
}

CASE (endless_line)
{
    struct gather_line line = { 0 };
    static char block[4096];
    int fds[2];

    memset (block, 'x', sizeof (block));
    assert_int_equal (pipe2 (fds, O_NONBLOCK), 0);
    for (int i = 0; i < GATHER_LINE / 4096 + 1; i++) {
        if (write (fds[1], block, sizeof (block)) < 0)
            break;
        assert_null (gather_read (fds[0], &line));
        if (errno != EAGAIN)
            break;
    }
    assert_int_equal (errno, EMSGSIZE);
    close (fds[0]);
    close (fds[1]);
    gather_line_free (&line);
}

/* ---- the collector ---- */

enum { MANY = 2000, LIARS = 50, PARTS = 100 };

static int dial (int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t)port),
                              .sin_addr = { htonl (INADDR_LOOPBACK) } };
    int fd = socket (AF_INET, SOCK_STREAM, 0);

    assert_int_equal (connect (fd, (struct sockaddr *)&to, sizeof (to)), 0);
    return fd;
}

static void send_json (struct net_stream *w, json_t *v)
{
    assert_non_null (v);
    assert_int_equal (gather_send (w, v, monotonic () + 10), 0);
    json_decref (v);
}

static json_t *receive (struct net_stream *w)
{
    json_t *v;

    fcntl (w->fd, F_SETFL, O_NONBLOCK);
    while (!(v = gather_receive (w)) && errno == EAGAIN) {
        struct pollfd p = { .fd = w->fd, .events = POLLIN };
        assert_true (poll (&p, 1, 20000) == 1);
    }
    return v;
}

static int greet (struct net_stream *w, int fd, const unsigned char *key, int rank)
{
    struct handshake with = gather_handshake (key);
    char text[64];
    int n = snprintf (text, sizeof (text), "{\"rank\":%d,\"size\":%d}", rank, MANY);

    net_stream_init (w, fd, NULL);
    return handshake_call (fd, &with, text, (size_t)n, monotonic () + 60, &w->seal);
}

static json_t *told (int rank)
{
    char host[16];

    snprintf (host, sizeof (host), "n%d", rank / 8);
    return json_pack ("{s:{s:s, s:i, s:f}, s:[]}", "facts", "host", host, "local_rank", rank % 8,
                      "time", 0.0, "findings");
}

static pid_t collector (struct gather *g)
{
    struct slurmdl_error err = { "" };
    pid_t pid;
    int null;

    memset (g->key, 7, sizeof (g->key));
    assert_int_equal (gather_open (g, 0, NULL, &err), 0);
    if ((pid = fork ()) == 0) {
        null = open ("/dev/null", O_WRONLY);
        dup2 (null, 2);
        _exit (gather_serve (g) == GATHER_GO ? 0 : 1);
    }
    listen_close (&g->listener);
    return pid;
}

/* Ranks connect at the same time; each thread handles some of them. */
static struct part {
    const struct gather *g;
    struct net_stream *streams;
    int first, failed;
    pthread_t thread;
} parts[PARTS];

static void *greet_part (void *arg)
{
    struct part *p = arg;

    for (int i = p->first; i < MANY; i += PARTS)
        p->failed += greet (&p->streams[i], dial (p->g->listener.port), p->g->key, i) != 0;
    return NULL;
}

static void greet_all (const struct gather *g, struct net_stream *streams)
{
    for (int i = 0; i < PARTS; i++) {
        parts[i] = (struct part){ .g = g, .streams = streams, .first = i };
        assert_int_equal (pthread_create (&parts[i].thread, NULL, greet_part, &parts[i]), 0);
    }
    for (int i = 0; i < PARTS; i++) {
        pthread_join (parts[i].thread, NULL);
        assert_int_equal (parts[i].failed, 0);
    }
}

/* The collector rejects peers without the key, whatever they send. */
static void send_liars (int port)
{
    for (int i = 0; i < LIARS; i++) {
        int fd = dial (port);
        struct net_stream w;
        if (i % 2)
            assert_int_equal (greet (&w, fd, (const unsigned char *)"0123456789abcdef", i), -1);
        else
            assert_true (write (fd, "GET / HTTP/1.0\r\n\r\n", 18) == 18);
        close (fd);
    }
}

/* What each rank sends and receives after the handshake. */
static void report_all (struct net_stream *w)
{
    json_t *v;

    for (int i = 0; i < MANY; i++)
        send_json (&w[i], told (i));
    for (int i = 0; i < MANY; i++) {
        v = receive (&w[i]);
        assert_non_null (json_object_get (v, "go"));
        json_decref (v);
        send_json (&w[i], json_pack ("{s:[]}", "findings"));
    }
    for (int i = 0; i < MANY; i++) {
        v = receive (&w[i]);
        assert_int_equal (json_integer_value (json_object_get (v, "status")), GATHER_GO);
        json_decref (v);
        net_stream_close (&w[i]);
    }
}

static bool may_open_many (void)
{
    struct rlimit limit;

    if (getrlimit (RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max < 2 * MANY)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit (RLIMIT_NOFILE, &limit) == 0;
}

CASE (many_ranks)
{
    struct gather g = { .level = LEVEL_QUICK, .table = true, .parent = -1 };
    static struct net_stream streams[MANY];
    struct net_stream again;
    double start;
    pid_t pid;
    int status;

    if (!may_open_many ())
        SKIP_CASE ("too few files may be open");
    pid = collector (&g);
    start = monotonic ();
    send_liars (g.listener.port);
    greet_all (&g, streams);
    /* a second rank 7 */
    assert_int_equal (greet (&again, dial (g.listener.port), g.key, 7), 0);
    report_all (streams);
    net_stream_close (&again);
    printf ("# %d ranks: %.2f s\n", MANY, monotonic () - start);
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_int_equal (status, 0);
}

RUN_CASES ()
