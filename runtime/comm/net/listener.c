/* SPDX-License-Identifier: Apache-2.0 */
/* Accept connections and authenticate callers.  The number of unauthenticated
 * connections is limited.
 */
#include "runtime/comm/net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/net/socket.h"

/* Accept only ACCEPTS connections per turn, so that each caller can speak before
 * later ones push it out.
 */
enum {
    ACCEPTS = 32,
    UNAUTHENTICATED_S = 10,
    CROWDED_S = 2,
    HELLO = sizeof (struct handshake_hello),
    PROOF = HELLO + sizeof (struct handshake_proof)
};

bool listener_is_mine (int fd)
{
    struct ucred c;
    socklen_t n = sizeof (c);
    int domain = 0;
    socklen_t nd = sizeof (domain);

    if (getsockopt (fd, SOL_SOCKET, SO_DOMAIN, &domain, &nd) < 0)
        return false;
    if (domain != AF_UNIX)
        return true;
    return getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 && c.uid == getuid ();
}

static int accept_one (int listener)
{
    int fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0)
        socket_no_delay (fd);
    return fd;
}

/* ---- unauthenticated connections ---- */

static size_t most_unauthenticated (const struct listener *l)
{
    return LISTENER_UNAUTHENTICATED + l->expected;
}

static void drop_pending (struct listener *l, size_t i)
{
    close (l->pending[i].fd);
    seal_destroy (l->pending[i].seal);
    free (l->pending[i].body);
    l->unauthenticated -= !l->pending[i].proven;
    l->pending[i] = l->pending[--l->n];
}

static int make_pending_room (struct listener *l)
{
    size_t room = 2 * l->room + 16;
    struct listener_pending *p;

    if (l->n < l->room)
        return 0;
    if (!(p = realloc (l->pending, room * sizeof (*p))))
        return -1;
    l->pending = p;
    l->room = room;
    return 0;
}

static bool goes_before (const struct listener_pending *a, const struct listener_pending *b)
{
    return a->challenged != b->challenged ? b->challenged : a->since < b->since;
}

static void drop_unauthenticated (struct listener *l)
{
    size_t first = l->n;

    for (size_t i = 0; i < l->n; i++)
        if (!l->pending[i].proven
            && (first == l->n || goes_before (&l->pending[i], &l->pending[first])))
            first = i;
    if (first < l->n)
        drop_pending (l, first);
}

/* ---- what callers send ---- */

/* Where to put the next bytes, at most '*n'. */
static char *next_of (struct listener_pending *p, size_t *n)
{
    if (p->got < HELLO) {
        *n = HELLO - p->got;
        return (char *)&p->hello + p->got;
    }
    if (p->got < PROOF) {
        *n = PROOF - p->got;
        return (char *)&p->proof + (p->got - HELLO);
    }
    if (p->got < PROOF + p->proof.length) {
        *n = PROOF + p->proof.length - p->got;
        return p->body + (p->got - PROOF);
    }
    *n = PROOF + p->proof.length + SEAL_TAG - p->got;
    return (char *)p->go + (SEAL_TAG - *n);
}

static int send_bytes (int fd, const void *data, size_t n)
{
    return send (fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

static int challenge (struct listener *l, struct listener_pending *p)
{
    p->challenged = true;
    if (!l->has_pair && handshake_draw (&l->pair) < 0)
        return -1;
    l->has_pair = true;
    if (!handshake_is_hello (&l->handshake, &p->hello)
        || handshake_answer (&l->handshake, &l->pair, &p->hello, &p->challenge) < 0)
        return -1;
    return send_bytes (p->fd, &p->challenge, sizeof (p->challenge));
}

static int take_proof (struct listener *l, struct listener_pending *p)
{
    if (p->proof.length > l->most || !(p->body = malloc ((size_t)p->proof.length + 1)))
        return -1;
    p->body[p->proof.length] = '\0';
    return 0;
}

static int send_answer (struct listener_pending *p)
{
    unsigned char tag[SEAL_TAG];

    handshake_confirm (p->seal, tag);
    return send_bytes (p->fd, tag, sizeof (tag));
}

/* Progress of a caller that is not accepted yet. */
enum pending_progress { PENDING_REJECTED = -1, PENDING_SENDS_MORE, PENDING_COMPLETE };

static enum pending_progress take_pending_body (struct listener *l, struct listener_pending *p)
{
    const struct handshake *h = &l->handshake;

    if (!handshake_is_proven (h, &p->hello, &p->challenge, &p->proof, p->body)
        || !(p->seal = handshake_seal (h, &l->pair, &p->hello, &p->challenge)))
        return PENDING_REJECTED;
    p->proven = true;
    l->unauthenticated--;
    if (!h->confirms)
        return PENDING_COMPLETE;
    p->since = monotonic ();
    return handshake_agrees (h, &p->hello)
                   && (!l->is_welcome || l->is_welcome (l->arg, p->body, p->proof.length))
                   && send_answer (p) == 0
               ? PENDING_SENDS_MORE
               : PENDING_REJECTED;
}

static enum pending_progress check_pending (struct listener *l, struct listener_pending *p)
{
    if (p->got < HELLO)
        return PENDING_SENDS_MORE;
    if (!p->challenged)
        return challenge (l, p) < 0 ? PENDING_REJECTED : PENDING_SENDS_MORE;
    if (p->got < PROOF)
        return PENDING_SENDS_MORE;
    if (!p->body && take_proof (l, p) < 0)
        return PENDING_REJECTED;
    if (p->got < PROOF + p->proof.length)
        return PENDING_SENDS_MORE;
    if (!p->proven)
        return take_pending_body (l, p);
    if (p->got < PROOF + p->proof.length + SEAL_TAG)
        return PENDING_SENDS_MORE;
    return handshake_is_confirmed (p->seal, p->go) < 0 ? PENDING_REJECTED : PENDING_COMPLETE;
}

static int hear_pending (struct listener *l, struct listener_pending *p)
{
    while (!p->whole) {
        size_t n;
        char *to = next_of (p, &n);
        ssize_t got = recv (p->fd, to, n, MSG_DONTWAIT);
        enum pending_progress progress;
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (got <= 0)
            return -1;
        p->got += (size_t)got;
        if ((progress = check_pending (l, p)) == PENDING_REJECTED)
            return -1;
        p->whole = progress == PENDING_COMPLETE;
    }
    return 0;
}

/* ---- turns ---- */

static void begin_pending (struct listener *l, int fd)
{
    if (!listener_is_mine (fd) || make_pending_room (l) < 0) {
        close (fd);
        return;
    }
    l->pending[l->n++] = (struct listener_pending){ .fd = fd, .since = monotonic () };
    l->unauthenticated++;
    if (hear_pending (l, &l->pending[l->n - 1]) < 0)
        drop_pending (l, l->n - 1);
    else if (l->unauthenticated > most_unauthenticated (l))
        drop_unauthenticated (l);
}

/* No more descriptors are available, and poll() would report a waiting connection
 * again at once.  Drop an unauthenticated connection, or the one that has just
 * arrived.
 */
static void make_way (struct listener *l, int listener)
{
    int fd;

    if (l->unauthenticated > 0) {
        drop_unauthenticated (l);
        return;
    }
    if (l->spare > 0)
        close (l->spare);
    if ((fd = accept_one (listener)) >= 0)
        close (fd);
    l->spare = open ("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_some (struct listener *l, int listener)
{
    int fd;

    if (l->spare <= 0)
        l->spare = open ("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < ACCEPTS; i++) {
        if ((fd = accept_one (listener)) >= 0)
            begin_pending (l, fd);
        else if (errno == EMFILE || errno == ENFILE)
            make_way (l, listener);
        else if (errno != ECONNABORTED && errno != EINTR)
            break;
    }
}

size_t listener_fds (const struct listener *l)
{
    return (size_t)l->at.n + l->n;
}

struct pollfd *listener_poll (struct listener *l, size_t more)
{
    size_t room = listener_fds (l) + more;
    struct pollfd *p;

    if (room > l->poll_room) {
        if (!(p = realloc (l->poll, 2 * room * sizeof (*p))))
            return NULL;
        l->poll = p;
        l->poll_room = 2 * room;
    }
    p = l->poll;
    for (int i = 0; i < l->at.n; i++)
        *p++ = (struct pollfd){ .fd = l->at.fd[i], .events = POLLIN };
    for (size_t i = 0; i < l->n; i++)
        *p++ = (struct pollfd){ .fd = l->pending[i].fd, .events = POLLIN };
    return l->poll;
}

static bool is_pending_late (const struct listener *l, const struct listener_pending *p, double now)
{
    double seconds = p->proven                                           ? l->timeout
                     : l->unauthenticated > most_unauthenticated (l) / 2 ? CROWDED_S
                                                                         : UNAUTHENTICATED_S;

    return !p->whole && now - p->since > seconds;
}

void listener_serve (struct listener *l)
{
    const struct pollfd *sockets = l->poll;
    const struct pollfd *pending = l->poll + l->at.n;
    double now = l->n > 0 ? monotonic () : 0;

    for (size_t i = l->n; i-- > 0;) {
        struct listener_pending *p = &l->pending[i];
        bool ended = pending[i].revents && hear_pending (l, p) < 0;
        if (ended || is_pending_late (l, p, now))
            drop_pending (l, i);
    }
    for (int i = 0; i < l->at.n; i++)
        if (sockets[i].revents)
            accept_some (l, sockets[i].fd);
}

bool listener_take (struct listener *l, struct listener_arrival *a)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct listener_pending *p = &l->pending[i];
        if (!p->whole)
            continue;
        *a = (struct listener_arrival){ .fd = p->fd,
                                        .seal = handshake_end (&l->handshake, p->seal),
                                        .agrees = handshake_agrees (&l->handshake, &p->hello),
                                        .version = p->hello.version,
                                        .length = p->proof.length,
                                        .body = p->body };
        l->pending[i] = l->pending[--l->n];
        return true;
    }
    return false;
}

void listener_close (struct listener *l)
{
    while (l->n > 0)
        drop_pending (l, l->n - 1);
    listen_close (&l->at);
    if (l->spare > 0)
        close (l->spare);
    handshake_forget (l->handshake.key, sizeof (l->handshake.key));
    handshake_forget (&l->pair, sizeof (l->pair));
    l->has_pair = false;
    free (l->pending);
    free (l->poll);
    l->pending = NULL;
    l->poll = NULL;
    l->room = l->poll_room = 0;
    l->spare = 0;
}
