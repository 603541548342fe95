/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake, and who it lets in: of what is changed, sent back, sent again,
 * or said by somebody without the key, nobody.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/comm/net/listener.h"
#include "runtime/comm/net/socket.h"
#include "tests/unit.h"

static const char body[] = "rank 1 of 2";

/* What both know, and a listener in a thread that takes who comes. */
static struct handshake known;
static struct server {
    struct listener l;
    pthread_t thread;
    atomic_bool stop;
    atomic_int taken, turns;
    atomic_size_t pending;
    char said[64];
} server;

static void *serve (void *arg)
{
    struct server *s = arg;
    struct listener_arrival a;

    while (!atomic_load (&s->stop)) {
        poll (listener_poll (&s->l, 0), listener_fds (&s->l), 20);
        listener_serve (&s->l);
        while (listener_take (&s->l, &a)) {
            snprintf (s->said, sizeof (s->said), "%s", a.body);
            atomic_fetch_add (&s->taken, 1);
            close (a.fd);
            free (a.body);
        }
        atomic_fetch_add (&s->turns, 1);
        atomic_store (&s->pending, s->l.n);
    }
    return NULL;
}

static int set_up_with (bool fresh)
{
    known = (struct handshake){ .service = HANDSHAKE_MESH,
                                .version = 3,
                                .fresh = fresh };
    memset (known.key, 5, sizeof (known.key));
    memset (known.token, 9, sizeof (known.token));
    memset (&server, 0, sizeof (server));
    server.l = (struct listener){ .handshake = known,
                                  .most = sizeof (body),
                                  .timeout = 60 };
    return listen_open (&server.l.at, "127.0.0.1", 0) < 0
                   || pthread_create (&server.thread, NULL, serve, &server)
               ? -1
               : 0;
}

static int set_up (void **state)
{
    return set_up_with (false);
}

static int set_up_fresh (void **state)
{
    return set_up_with (true);
}

static int tear_down (void **state)
{
    atomic_store (&server.stop, true);
    pthread_join (server.thread, NULL);
    listener_close (&server.l);
    return 0;
}

static int dial (void)
{
    int fd = socket_connect ("127.0.0.1", server.l.at.port, monotonic () + 60);

    assert_true (fd >= 0);
    return fd;
}

static int call (const struct handshake *h)
{
    int fd = dial ();
    int rv = handshake_call (fd, h, body, sizeof (body), monotonic () + 60);
    int saved = errno;
    char c;

    /* it has been taken, or sent away, when the listener closes it */
    if (rv == 0)
        assert_int_equal (socket_recv (fd, &c, 1, monotonic () + 60), -1);
    close (fd);
    errno = saved;
    return rv;
}

static void who_has_the_key_is_taken (void **state)
{
    assert_int_equal (call (&known), 0);
    assert_int_equal (atomic_load (&server.taken), 1);
    assert_string_equal (server.said, body);
}

static void nobody_else (void **state)
{
    struct handshake other;

    other = known;
    /* who hears the challenge before it proves anything knows why */
    other.key[15] ^= 1;
    assert_int_equal (call (&other), -1);
    assert_int_equal (errno, known.fresh ? ECONNRESET : EACCES);
    other = known; /* another listener of the same step */
    other.token[0] ^= 1;
    assert_int_equal (call (&other), -1);
    assert_int_equal (errno, known.fresh ? ECONNRESET : EACCES);
    other = known;
    other.service = HANDSHAKE_RATES;
    assert_int_equal (call (&other), -1);
    other = known; /* no key is none */
    memset (other.key, 0, sizeof (other.key));
    assert_int_equal (call (&other), -1);
    assert_int_equal (errno, EACCES);
    assert_int_equal (atomic_load (&server.taken), 0);
}

/* ---- what goes over the wire ---- */

struct talk {
    struct handshake_hello hello;
    struct handshake_challenge challenge;
    struct {
        struct handshake_proof proof;
        char body[sizeof (body)];
    } last;
    char go; /* with a fresh token */
};

/* Between a caller and the listener: what each says, with a bit changed. */
struct relay {
    struct listen_sockets at;
    struct talk talk;
    size_t flip; /* bit of 'talk'; SIZE_MAX: none */
    pthread_t thread;
};

static int pass (struct relay *r, int from, int to, size_t at, size_t n)
{
    char *piece = (char *)&r->talk + at;
    size_t half = r->flip == SIZE_MAX ? n / 2 : 0; /* comes alone */

    if (socket_recv (from, piece, n, monotonic () + 60) < 0)
        return -1;
    if (r->flip / 8 >= at && r->flip / 8 < at + n)
        ((char *)&r->talk)[r->flip / 8] ^= (char)(1 << r->flip % 8);
    if (half > 0) {
        if (socket_send (to, piece, half, monotonic () + 60) < 0)
            return -1;
        usleep (50000);
    }
    return socket_send (to, piece + half, n - half, monotonic () + 60);
}

#define PIECE(m) offsetof (struct talk, m), sizeof (((struct talk *)0)->m)

static int relay_all (struct relay *r, int in, int out)
{
    if (!known.fresh)
        return pass (r, in, out, PIECE (hello)) < 0
                       || pass (r, out, in, PIECE (challenge)) < 0
                       || pass (r, in, out, PIECE (last)) < 0
                   ? -1
                   : 0;
    return pass (r, in, out, PIECE (hello)) < 0
                   || pass (r, in, out, PIECE (last)) < 0
                   || pass (r, out, in, PIECE (challenge)) < 0
                   || pass (r, in, out, PIECE (go)) < 0
               ? -1
               : 0;
}

static void *relay_one (void *arg)
{
    struct relay *r = arg;
    int in, out = dial ();
    char c;

    assert_int_equal (socket_wait (r->at.fd[0], POLLIN, monotonic () + 60), 0);
    in = accept4 (r->at.fd[0], NULL, NULL, SOCK_NONBLOCK);
    if (relay_all (r, in, out) == 0) {
        shutdown (out, SHUT_WR);
        socket_recv (out, &c, 1, monotonic () + 60);
    }
    close (in);
    close (out);
    return NULL;
}

static int call_through (struct relay *r)
{
    int fd, rv;
    char c;

    assert_int_equal (listen_open (&r->at, "127.0.0.1", 0), 0);
    assert_int_equal (pthread_create (&r->thread, NULL, relay_one, r), 0);
    fd = socket_connect ("127.0.0.1", r->at.port, monotonic () + 60);
    rv = handshake_call (fd, &known, body, sizeof (body), monotonic () + 60);
    if (rv == 0)
        socket_recv (fd, &c, 1, monotonic () + 60);
    close (fd);
    pthread_join (r->thread, NULL);
    listen_close (&r->at);
    return rv;
}

static void no_bit_can_be_changed (void **state)
{
    struct relay r = { .flip = SIZE_MAX };

    _Static_assert(sizeof (struct talk)
                       == sizeof (struct handshake_hello)
                              + sizeof (struct handshake_challenge)
                              + sizeof (struct handshake_proof) + sizeof (body)
                              + 4,
                   "no gaps but at the end");
    assert_int_equal (call_through (&r), 0);
    assert_int_equal (atomic_load (&server.taken), 1);
    for (r.flip = 0; r.flip < 8 * offsetof (struct talk, go); r.flip++) {
        /* a longer body would be waited for */
        if (r.flip / 8 == offsetof (struct talk, last.proof.length))
            continue;
        call_through (&r);
        assert_int_equal (atomic_load (&server.taken), 1);
    }
}

/* What one caller has said does not let in another one. */
static void nothing_can_be_said_again (void **state)
{
    struct relay r = { .flip = SIZE_MAX };
    struct handshake_challenge c;
    int fd;
    char end;

    assert_int_equal (call_through (&r), 0);
    fd = dial ();
    socket_send (fd, &r.talk.hello, sizeof (r.talk.hello), monotonic () + 60);
    assert_int_equal (socket_recv (fd, &c, sizeof (c), monotonic () + 60), 0);
    assert_true (memcmp (&c, &r.talk.challenge, sizeof (c)));
    socket_send (fd, &r.talk.last, sizeof (r.talk.last), monotonic () + 60);
    assert_int_equal (socket_recv (fd, &end, 1, monotonic () + 60), -1);
    close (fd);
    assert_int_equal (atomic_load (&server.taken), 1);
}

/* Nor where the listener asks for nothing. */
static void nothing_can_be_said_again_at_once (void **state)
{
    struct relay r = { .flip = SIZE_MAX };
    char all[sizeof (r.talk.hello) + sizeof (r.talk.last)], end;
    int fd;

    assert_int_equal (call_through (&r), 0);
    memcpy (all, &r.talk.hello, sizeof (r.talk.hello));
    memcpy (all + sizeof (r.talk.hello), &r.talk.last, sizeof (r.talk.last));
    for (int i = 0; i < 200; i++) {
        fd = dial ();
        socket_send (fd, all, sizeof (all), monotonic () + 60);
        assert_int_equal (socket_recv (fd, &end, 1, monotonic () + 60), -1);
        close (fd);
        if (i % 2)
            assert_int_equal (call (&known), 0);
    }
    assert_int_equal (atomic_load (&server.taken), 101);
}

/* A challenge of the listener's, even for the caller's own hello, is no proof
 * of a caller's. */
static void nothing_can_be_sent_back (void **state)
{
    struct handshake_hello hello = {
        HANDSHAKE_MAGIC, HANDSHAKE_MESH, 3, { 1 }
    };
    struct handshake_challenge first, second;
    struct handshake_proof proof = { 0 };
    int a = dial (), b = dial ();
    char c;

    socket_send (a, &hello, sizeof (hello), monotonic () + 60);
    assert_int_equal (
        socket_recv (a, &first, sizeof (first), monotonic () + 60), 0);
    memcpy (hello.nonce, first.nonce, sizeof (hello.nonce));
    socket_send (b, &hello, sizeof (hello), monotonic () + 60);
    assert_int_equal (
        socket_recv (b, &second, sizeof (second), monotonic () + 60), 0);
    memcpy (proof.mac, second.mac, sizeof (proof.mac));
    socket_send (a, &proof, sizeof (proof), monotonic () + 60);
    assert_int_equal (socket_recv (a, &c, 1, monotonic () + 60), -1);
    memcpy (proof.mac, first.mac, sizeof (proof.mac));
    socket_send (b, &proof, sizeof (proof), monotonic () + 60);
    assert_int_equal (socket_recv (b, &c, 1, monotonic () + 60), -1);
    close (a);
    close (b);
    assert_int_equal (atomic_load (&server.taken), 0);
}

/* ---- many ---- */

enum { IDLE = 700 };

static void raise_limit (rlim_t files)
{
    struct rlimit l;

    getrlimit (RLIMIT_NOFILE, &l);
    l.rlim_cur = files < l.rlim_max ? files : l.rlim_max;
    setrlimit (RLIMIT_NOFILE, &l);
}

static void idle_ones_keep_nobody_out (void **state)
{
    int *fds = malloc (IDLE * sizeof (*fds));
    double end;
    char c;

    raise_limit (4 * IDLE);
    for (int i = 0; i < IDLE; i++)
        fds[i] = dial ();
    assert_int_equal (call (&known), 0);
    /* the caller itself may still be counted */
    assert_true (atomic_load (&server.pending) <= LISTENER_STRANGERS + 1);
    /* the first went for the others, and the last go by themselves */
    assert_int_equal (socket_recv (fds[0], &c, 1, monotonic () + 60), -1);
    assert_int_equal (errno, ECONNRESET);
    end = monotonic () + 60;
    while (atomic_load (&server.pending) > 0 && monotonic () < end)
        usleep (10000);
    assert_int_equal (atomic_load (&server.pending), 0);
    for (int i = 0; i < IDLE; i++)
        close (fds[i]);
    free (fds);
}

/* A process that may open no more files neither spins nor stays closed. */
static void without_files (void **state)
{
    int fds[256], n = 0, from, client = dial ();
    double end = monotonic () + 60;
    char c;

    while (atomic_load (&server.pending) != 1 && monotonic () < end)
        usleep (1000);
    raise_limit (256);
    while (n < 256 && (fds[n] = dup (client)) >= 0)
        n++;
    close (fds[--n]); /* for the next caller's own end */
    close (dial ());
    from = atomic_load (&server.turns);
    usleep (300000);
    assert_true (atomic_load (&server.turns) - from < 100);
    while (n > 0)
        close (fds[--n]);
    assert_int_equal (call (&known), 0);
    assert_int_equal (socket_recv (client, &c, 1, monotonic () + 60), -1);
    close (client);
}

static int option_of (int fd, int level, int name)
{
    int value = -1;

    assert_int_equal (
        getsockopt (fd, level, name, &value, &(socklen_t){ sizeof (value) }),
        0);
    return value;
}

/* A peer whose machine is gone is noticed: 7 s, and 5 probes 3 s apart. */
static void a_lost_machine_is_noticed (void **state)
{
    int fd = socket (AF_INET, SOCK_STREAM, 0);

    assert_true (fd >= 0);
    socket_tune (fd, 7, 3, 5);
    assert_true (option_of (fd, SOL_SOCKET, SO_KEEPALIVE));
    assert_int_equal (option_of (fd, IPPROTO_TCP, TCP_KEEPIDLE), 7);
    assert_int_equal (option_of (fd, IPPROTO_TCP, TCP_KEEPINTVL), 3);
    assert_int_equal (option_of (fd, IPPROTO_TCP, TCP_KEEPCNT), 5);
    assert_true (option_of (fd, IPPROTO_TCP, TCP_NODELAY));
    close (fd);
}

#define WITH_SERVER(f) cmocka_unit_test_setup_teardown (f, set_up, tear_down)
#define FRESH(f)                                                               \
    {                                                                          \
#f " (fresh)", f, set_up_fresh, tear_down, NULL                        \
    }

int main (void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER (who_has_the_key_is_taken),
        WITH_SERVER (nobody_else),
        WITH_SERVER (no_bit_can_be_changed),
        WITH_SERVER (nothing_can_be_said_again),
        WITH_SERVER (nothing_can_be_sent_back),
        WITH_SERVER (idle_ones_keep_nobody_out),
        WITH_SERVER (without_files),
        cmocka_unit_test (a_lost_machine_is_noticed),
        FRESH (who_has_the_key_is_taken),
        FRESH (nobody_else),
        FRESH (no_bit_can_be_changed),
        FRESH (nothing_can_be_said_again_at_once),
        FRESH (idle_ones_keep_nobody_out),
    };

    alarm (900);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
