/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake admits nobody without the key, and no message that was altered,
 * reflected or replayed.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "runtime/base/clock.h"
#include "runtime/comm/net/listener.h"
#include "runtime/comm/net/socket.h"
#include "tests/unit.h"

static const char body[] = "rank 1 of 2";

/* What both sides know, and a thread that accepts callers. */
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
            seal_destroy (a.seal);
            close (a.fd);
            free (a.body);
        }
        atomic_fetch_add (&s->turns, 1);
        atomic_store (&s->pending, s->l.n);
    }
    return NULL;
}

static int set_up_with (bool confirms)
{
    known = (struct handshake){ .service = HANDSHAKE_MESH, .version = 3, .confirms = confirms };
    memset (known.key, 5, sizeof (known.key));
    memset (known.token, 9, sizeof (known.token));
    memset (&server, 0, sizeof (server));
    server.l = (struct listener){ .handshake = known, .most = sizeof (body), .timeout = 60 };
    return listen_open (&server.l.at, "127.0.0.1", 0) < 0
                   || pthread_create (&server.thread, NULL, serve, &server)
               ? -1
               : 0;
}

static int set_up (void **state)
{
    return set_up_with (false);
}

static int set_up_confirming (void **state)
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

#define SERVER_CASE(f) CASE_WITH (f, set_up, tear_down)

static int dial (void)
{
    int fd = socket_connect ("127.0.0.1", server.l.at.port, monotonic () + 60);

    assert_true (fd >= 0);
    return fd;
}

static int call (const struct handshake *h)
{
    int fd = dial ();
    struct net_seal *seal = NULL;
    int rv = handshake_call (fd, h, body, sizeof (body), monotonic () + 60, &seal);
    int saved = errno;
    char c;

    /* the listener closes the connection once it has accepted or rejected it */
    if (rv == 0)
        assert_int_equal (socket_recv (fd, &c, 1, monotonic () + 60), -1);
    assert_int_equal (!seal, rv < 0 || h->plain);
    seal_destroy (seal);
    close (fd);
    errno = saved;
    return rv;
}

SERVER_CASE (who_has_the_key_is_taken)
{
    assert_int_equal (call (&known), 0);
    assert_int_equal (atomic_load (&server.taken), 1);
    assert_string_equal (server.said, body);
}

SERVER_CASE (nobody_else)
{
    struct handshake other;

    other = known;
    /* the challenge tells the caller why it fails */
    other.key[15] ^= 1;
    assert_int_equal (call (&other), -1);
    assert_int_equal (errno, EACCES);
    other = known; /* another listener of the same step */
    other.token[0] ^= 1;
    assert_int_equal (call (&other), -1);
    assert_int_equal (errno, EACCES);
    other = known;
    other.service = HANDSHAKE_RATES;
    assert_int_equal (call (&other), -1);
    other = known; /* an all-zero key is no key */
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
    unsigned char taken[SEAL_TAG], used[SEAL_TAG]; /* only with 'confirms' */
};

/* A man in the middle that forwards each message with one bit flipped. */
struct relay {
    struct listen_sockets at;
    struct talk talk;
    size_t flip; /* which bit of 'talk'; SIZE_MAX: none */
    pthread_t thread;
};

static int pass (struct relay *r, int from, int to, size_t at, size_t n)
{
    char *piece = (char *)&r->talk + at;
    size_t half = r->flip == SIZE_MAX ? n / 2 : 0; /* sent first, on its own */

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
    if (pass (r, in, out, PIECE (hello)) < 0 || pass (r, out, in, PIECE (challenge)) < 0
        || pass (r, in, out, PIECE (last)) < 0)
        return -1;
    if (!known.confirms)
        return 0;
    return pass (r, out, in, PIECE (taken)) < 0 || pass (r, in, out, PIECE (used)) < 0 ? -1 : 0;
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
    struct net_seal *seal = NULL;
    int fd, rv;
    char c;

    assert_int_equal (listen_open (&r->at, "127.0.0.1", 0), 0);
    assert_int_equal (pthread_create (&r->thread, NULL, relay_one, r), 0);
    fd = socket_connect ("127.0.0.1", r->at.port, monotonic () + 60);
    rv = handshake_call (fd, &known, body, sizeof (body), monotonic () + 60, &seal);
    if (rv == 0)
        socket_recv (fd, &c, 1, monotonic () + 60);
    seal_destroy (seal);
    close (fd);
    pthread_join (r->thread, NULL);
    listen_close (&r->at);
    return rv;
}

SERVER_CASE (no_bit_can_be_changed)
{
    struct relay r = { .flip = SIZE_MAX };
    size_t end = 8 * (known.confirms ? sizeof (struct talk) : offsetof (struct talk, taken));

    _Static_assert(sizeof (struct talk)
                       == sizeof (struct handshake_hello) + sizeof (struct handshake_challenge)
                              + sizeof (struct handshake_proof) + sizeof (body) + 2 * SEAL_TAG,
                   "no gaps");
    assert_int_equal (call_through (&r), 0);
    assert_int_equal (atomic_load (&server.taken), 1);
    for (r.flip = 0; r.flip < end; r.flip++) {
        /* the listener would wait for a longer body */
        if (r.flip / 8 == offsetof (struct talk, last.proof.length))
            continue;
        call_through (&r);
        assert_int_equal (atomic_load (&server.taken), 1);
    }
}

/* A replay of one caller's messages admits nobody. */
SERVER_CASE (nothing_can_be_said_again)
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

/* The listener's own challenge is no proof, not even the one that answers this
 * caller's hello.
 */
SERVER_CASE (nothing_can_be_sent_back)
{
    struct handshake_hello hello = { HANDSHAKE_MAGIC, HANDSHAKE_MESH, 3, 0, { 1 }, { 9 } };
    struct handshake_challenge first, second;
    struct handshake_proof proof = { 0 };
    int a = dial (), b = dial ();
    char c;

    socket_send (a, &hello, sizeof (hello), monotonic () + 60);
    assert_int_equal (socket_recv (a, &first, sizeof (first), monotonic () + 60), 0);
    memcpy (hello.nonce, first.nonce, sizeof (hello.nonce));
    socket_send (b, &hello, sizeof (hello), monotonic () + 60);
    assert_int_equal (socket_recv (b, &second, sizeof (second), monotonic () + 60), 0);
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

/* ---- plain connections ---- */

SERVER_CASE (both_are_plain_or_none)
{
    struct handshake other = known;

    other.plain = true;
    assert_int_equal (call (&other), -1);
    assert_int_equal (errno, EOPNOTSUPP);
    server.l.handshake.plain = true;
    assert_int_equal (call (&other), 0);
    assert_int_equal (call (&known), -1);
    assert_int_equal (errno, EOPNOTSUPP);
    server.l.handshake.plain = false;
    assert_int_equal (call (&known), 0);
}

/* ---- records ---- */

/* A record verifies only unchanged, once, in order, and in its own direction
 * of its own connection.  After a failure nothing verifies any more.
 */
static void check_seals (bool aes)
{
    static const unsigned char one[SEAL_KEY] = { 1 }, two[SEAL_KEY] = { 2 };
    char data[3][70000] = { "first", "second", "third" };
    size_t sizes[3] = { 16, 0, sizeof (data[0]) };
    unsigned char tags[3][SEAL_TAG];
    struct net_seal *a, *b;

    for (int way = 0; way < 8; way++) {
        a = seal_create (one, two, aes);
        b = seal_create (two, one, aes);
        for (int i = 0; i < 3; i++)
            seal_make (a, data[i], sizes[i], tags[i]);
        if (way == 1)
            assert_int_equal (seal_check (b, data[1], sizes[1], tags[1]), -1);
        if (way == 2) /* reflected to its sender */
            assert_int_equal (seal_check (a, data[0], sizes[0], tags[0]), -1);
        if (way != 1)
            assert_int_equal (seal_check (b, data[0], sizes[0], tags[0]), 0);
        if (way == 3) /* replayed */
            assert_int_equal (seal_check (b, data[0], sizes[0], tags[0]), -1);
        if (way == 4) /* out of order */
            assert_int_equal (seal_check (b, data[2], sizes[2], tags[2]), -1);
        if (way == 5) /* truncated */
            assert_int_equal (seal_check (b, data[2], 16, tags[1]), -1);
        if (way == 6) {
            tags[1][15] ^= 1;
            assert_int_equal (seal_check (b, data[1], sizes[1], tags[1]), -1);
        }
        if (way == 7) {
            assert_int_equal (seal_check (b, data[1], sizes[1], tags[1]), 0);
            data[2][69999] ^= 1;
            assert_int_equal (seal_check (b, data[2], sizes[2], tags[2]), -1);
            data[2][69999] ^= 1;
        }
        if (way == 0 || way == 2)
            assert_int_equal (seal_check (b, data[1], sizes[1], tags[1]), 0);
        errno = 0;
        assert_int_equal (seal_check (b, data[2], sizes[2], tags[2]),
                          way == 0 || way == 2 ? 0 : -1);
        assert_int_equal (errno, way == 0 || way == 2 ? 0 : EBADMSG);
        seal_destroy (a);
        seal_destroy (b);
    }
    assert_int_equal (seal_size (NULL), 0);
    assert_int_equal (seal_check (NULL, "x", 1, NULL), 0);
}

/* The tag of a long record covers a digest of it: every byte must still count,
 * and so must the length.
 */
static void check_long_seals (bool aes)
{
    static const unsigned char one[SEAL_KEY] = { 1 }, two[SEAL_KEY] = { 2 };
    static const size_t sizes[] = { 2047, 2048, 2049, 4096, 65535, 65536, 65537 };
    static unsigned char data[65538];
    unsigned char tag[SEAL_TAG];

    for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++) {
        size_t n = sizes[i];
        for (size_t at = 0; at <= n + 1; at += at + 20 < n ? 509 : 1) {
            struct net_seal *a = seal_create (one, two, aes);
            struct net_seal *b = seal_create (two, one, aes);
            seal_make (a, data, n, tag);
            if (at < n)
                data[at] ^= 0x80;
            if (at == n) /* one more zero */
                assert_int_equal (seal_check (b, data, n + 1, tag), -1);
            else
                assert_int_equal (seal_check (b, data, n, tag), at < n ? -1 : 0);
            if (at < n)
                data[at] ^= 0x80;
            seal_destroy (a);
            seal_destroy (b);
        }
    }
}

SERVER_CASE (records_are_sealed)
{
    check_seals (false);
    check_long_seals (false);
    if (seal_has_aes ()) {
        check_seals (true);
        check_long_seals (true);
    }
}

/* A listener without the key gets a hello, and no proof of the key. */
SERVER_CASE (nothing_is_proven_without_the_key)
{
    struct handshake_challenge wrong = { .nonce = { 1 }, .point = { 9 } };
    struct listen_sockets at;
    struct handshake_hello hello;
    char more;
    pid_t pid;
    int fd, status;

    assert_int_equal (listen_open (&at, "127.0.0.1", 0), 0);
    if ((pid = fork ()) == 0) {
        struct net_seal *seal;
        fd = socket_connect ("127.0.0.1", at.port, monotonic () + 60);
        _exit (handshake_call (fd, &known, body, sizeof (body), monotonic () + 60, &seal) < 0
                       && errno == EACCES
                   ? 0
                   : 1);
    }
    assert_int_equal (socket_wait (at.fd[0], POLLIN, monotonic () + 60), 0);
    fd = accept4 (at.fd[0], NULL, NULL, SOCK_NONBLOCK);
    assert_int_equal (socket_recv (fd, &hello, sizeof (hello), monotonic () + 60), 0);
    socket_send (fd, &wrong, sizeof (wrong), monotonic () + 60);
    assert_int_equal (socket_recv (fd, &more, 1, monotonic () + 60), -1);
    assert_int_equal (errno, ECONNRESET);
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_int_equal (status, 0);
    close (fd);
    listen_close (&at);
}

/* ::1 is also localhost, but a listener on localhost listens on 127.0.0.1. */
CASE (a_name_that_every_host_has)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int other = socket (AF_INET6, SOCK_STREAM, 0), fd;
    struct sockaddr_in peer;
    socklen_t n = sizeof (peer);
    struct listen_sockets at;

    assert_int_equal (listen_open (&at, "localhost", 0), 0);
    six.sin6_port = htons ((uint16_t)at.port);
    if (other >= 0 && bind (other, (struct sockaddr *)&six, sizeof (six)) == 0)
        assert_int_equal (listen (other, 1), 0);
    fd = socket_connect ("localhost", at.port, monotonic () + 60);
    assert_true (fd >= 0);
    assert_int_equal (getpeername (fd, (struct sockaddr *)&peer, &n), 0);
    assert_int_equal (peer.sin_family, AF_INET);
    close (fd);
    close (other);
    listen_close (&at);
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

SERVER_CASE (idle_ones_keep_nobody_out)
{
    int *fds = malloc (IDLE * sizeof (*fds));
    double end;
    char c;

    raise_limit (4 * IDLE);
    for (int i = 0; i < IDLE; i++)
        fds[i] = dial ();
    assert_int_equal (call (&known), 0);
    /* the caller itself may still count as unauthenticated */
    assert_true (atomic_load (&server.pending) <= LISTENER_UNAUTHENTICATED + 1);
    /* the first was evicted for a later one; the last ones time out */
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

/* A listener that has run out of file descriptors does not spin, and accepts
 * again once some are free.
 */
SERVER_CASE (without_files)
{
    int fds[256], n = 0, from, client = dial ();
    double end = monotonic () + 60;
    char c;

    while (atomic_load (&server.pending) != 1 && monotonic () < end)
        usleep (1000);
    raise_limit (256);
    while (n < 256 && (fds[n] = dup (client)) >= 0)
        n++;
    close (fds[--n]); /* for the next caller's end */
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

    assert_int_equal (getsockopt (fd, level, name, &value, &(socklen_t){ sizeof (value) }), 0);
    return value;
}

/* Keepalive detects a peer whose host is gone: after 7 s, 5 probes 3 s apart. */
CASE (a_lost_machine_is_noticed)
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

#define CONFIRMS(f)                                                                                \
    {                                                                                              \
#f " (confirming)", f, set_up_confirming, tear_down, NULL                                  \
    }

int main (void)
{
    const struct CMUnitTest confirming[] = {
        CONFIRMS (who_has_the_key_is_taken),  CONFIRMS (nobody_else),
        CONFIRMS (no_bit_can_be_changed),     CONFIRMS (both_are_plain_or_none),
        CONFIRMS (idle_ones_keep_nobody_out),
    };

    for (size_t i = 0; i < COUNT (confirming); i++)
        add_case (confirming[i]);
    alarm (900);
    return run_cases (NULL, NULL);
}
