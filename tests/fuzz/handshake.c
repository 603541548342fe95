/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from an unauthenticated caller to a listener, or from a listener to a caller.  The first
 * byte selects one of them and how the service starts its connections.  A caller that has the key
 * sends the other bytes as its body.
 */
#include "runtime/comm/net/listener.c"

#include <pthread.h>

#include "tests/fuzz/fuzz.h"

enum { PLAIN = 1, CONFIRMS = 2, ANSWERS = 4, KNOWS = 8, HELLOS = 16, MOST = 64 };

static struct handshake shake = {
    .service = HANDSHAKE_MESH, .version = 1, .key = { 1 }, .token = { 2 }
};

struct speech {
    int fd;
    const uint8_t *data;
    size_t n;
};

static struct net_seal *call_as (int fd, const void *data, size_t n)
{
    struct net_seal *seal = NULL;

    handshake_call (fd, &shake, data, n, monotonic () + 5, &seal);
    return seal;
}

/* The thread of a caller that has the key. */
static void *call (void *arg)
{
    struct speech *s = arg;

    seal_destroy (call_as (s->fd, s->data, s->n));
    shutdown (s->fd, SHUT_RDWR);
    return NULL;
}

static bool keep_all (void *arg, const void *body, size_t n)
{
    volatile char last = 0;

    (void)arg;
    if (n > 0)
        last = ((const char *)body)[n - 1];
    (void)last;
    return true;
}

/* Read until the handshake is complete or fails.  A caller in a thread may still be sending. */
static void hear_all (struct listener *l, int fd)
{
    struct listener_arrival a;

    begin_pending (l, fd);
    while (l->n > 0 && !l->pending[0].whole) {
        poll (&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 5000);
        if (hear_pending (l, &l->pending[0]) < 0)
            drop_pending (l, 0);
    }
    while (listener_take (l, &a)) {
        keep_all (NULL, a.body, a.length);
        free (a.body);
        seal_destroy (a.seal);
        close (a.fd);
    }
}

static void send_all (int fd, const struct speech *s, bool begins_well)
{
    struct handshake_hello hello = { .magic = HANDSHAKE_MAGIC,
                                     .service = HANDSHAKE_MESH,
                                     .version = 1 };

    if (begins_well)
        send_bytes (fd, &hello, sizeof (hello));
    send_bytes (fd, s->data, s->n);
    shutdown (fd, SHUT_WR);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct speech s = { .data = data + 1, .n = size > 0 ? size - 1 : 0 };
    uint8_t how = size > 0 ? *data : 0;
    struct listener l = { .most = MOST, .is_welcome = keep_all };
    pthread_t thread;
    int fds[2];

    if (s.n > 4096 || socketpair (AF_UNIX, SOCK_STREAM, 0, fds) < 0)
        return 0;
    shake.plain = how & PLAIN;
    shake.confirms = how & CONFIRMS;
    l.handshake = shake;
    l.timeout = 5;
    s.fd = fds[1];
    if (how & ANSWERS) {
        send_all (fds[1], &s, false);
        seal_destroy (call_as (fds[0], "body", 4));
        close (fds[0]);
    } else if (how & KNOWS && pthread_create (&thread, NULL, call, &s) == 0) {
        hear_all (&l, fds[0]);
        pthread_join (thread, NULL);
    } else {
        send_all (fds[1], &s, how & HELLOS);
        hear_all (&l, fds[0]);
    }
    close (fds[1]);
    listener_close (&l);
    return 0;
}
