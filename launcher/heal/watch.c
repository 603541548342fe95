/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side: receive the reports of a step's ranks. */
#include "launcher/heal/heal.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/heal/message.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/net/address.h"
#include "runtime/comm/net/listener.h"
#include "runtime/comm/net/notice.h"
#include "runtime/comm/net/secret.h"
#include "runtime/comm/net/socket.h"
#include "runtime/comm/net/stream.h"

enum { PING_SECONDS = 2, CONFIRM_SECONDS = 60 };

struct watched_rank {
    struct net_stream stream;
    char host[HEAL_HOST];
    bool dumping;
};

struct rank_watch {
    struct listener listener;
    char name[NOTICE_NAME];
    struct watched_rank *ranks;
    struct heal_seen *seen;
    size_t n;
    long step;
    double pinged;
};

/* ---- start ---- */

static int listen_anywhere (struct rank_watch *w, struct slurmdl_error *err)
{
    if (getrandom (w->listener.handshake.key, HANDSHAKE_KEY, 0) != HANDSHAKE_KEY)
        return errorf (err, "cannot get random numbers: %s", strerror (errno));
    return listen_open_range (&w->listener.at, NULL, 0, err);
}

static void remove_older_notices (const char *name)
{
    char prefix[NOTICE_NAME];

    snprintf (prefix, sizeof (prefix), "%.*s", (int)(strrchr (name, '.') - name) + 1, name);
    notice_remove_all (prefix);
}

static int publish (const struct rank_watch *w, struct slurmdl_error *err)
{
    char host[HEAL_HOST] = "", hosts[NOTICE_TEXT - 64], key[SECRET_DIGITS + 1];
    char text[NOTICE_TEXT];
    int rv;

    remove_older_notices (w->name);
    gethostname (host, sizeof (host) - 1);
    address_own (host, hosts, sizeof (hosts));
    secret_print (w->listener.handshake.key, key);
    snprintf (text, sizeof (text), "%d %s %s", w->listener.at.port, key,
              *hosts ? hosts : "localhost");
    rv = notice_put (w->name, text, err);
    handshake_forget (text, sizeof (text));
    handshake_forget (key, sizeof (key));
    return rv;
}

struct rank_watch *rank_watch_create (const char *name, size_t ranks, struct slurmdl_error *err)
{
    struct rank_watch *w = xcalloc (1, sizeof (*w));

    w->ranks = xcalloc (ranks, sizeof (*w->ranks));
    w->seen = xcalloc (ranks, sizeof (*w->seen));
    snprintf (w->name, sizeof (w->name), "%s", name);
    w->n = ranks;
    w->step = -1;
    for (size_t i = 0; i < ranks; i++) {
        net_stream_init (&w->ranks[i].stream, -1, NULL);
        w->seen[i].host = w->ranks[i].host;
    }
    w->listener.handshake = heal_handshake ();
    w->listener.most = sizeof (struct heal_hello);
    w->listener.expected = ranks;
    w->listener.timeout = CONFIRM_SECONDS;
    if (listen_anywhere (w, err) == 0 && publish (w, err) == 0)
        return w;
    rank_watch_destroy (w);
    return NULL;
}

void rank_watch_destroy (struct rank_watch *w)
{
    int e = errno;

    if (!w)
        return;
    if (*w->name)
        notice_remove (w->name);
    for (size_t i = 0; i < w->n; i++)
        net_stream_close (&w->ranks[i].stream);
    handshake_forget (w->listener.handshake.key, HANDSHAKE_KEY);
    listener_close (&w->listener);
    free (w->ranks);
    free (w->seen);
    free (w);
    errno = e;
}

/* ---- ranks that connect ---- */

/* A rank that lost its connection connects again, and replaces its old connection. */
static bool greet_rank (struct rank_watch *w, const struct listener_arrival *a)
{
    int limit = HEAL_SILENCE * 1000;
    struct heal_hello hello;
    struct watched_rank *r;
    struct heal_seen *seen;

    if (a->length != sizeof (hello))
        return false;
    memcpy (&hello, a->body, sizeof (hello));
    hello.host[sizeof (hello.host) - 1] = '\0';
    if (!word_fits (hello.host) || hello.rank < 0 || hello.rank >= (int64_t)w->n
        || w->seen[hello.rank].over)
        return false;
    r = &w->ranks[hello.rank];
    seen = &w->seen[hello.rank];
    net_stream_close (&r->stream);
    net_stream_init (&r->stream, a->fd, a->seal);
    setsockopt (a->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof (limit));
    socket_no_delay (a->fd);
    memcpy (r->host, hello.host, sizeof (r->host));
    w->step = (long)hello.step;
    if (!seen->came || seen->cut || seen->lost)
        seen->moved = monotonic ();
    seen->heard = monotonic ();
    seen->came = true;
    seen->cut = seen->lost = false;
    return true;
}

static void accept_ranks (struct rank_watch *w)
{
    struct listener_arrival a;

    while (listener_take (&w->listener, &a)) {
        if (!a.agrees || a.version != HEAL_VERSION || !greet_rank (w, &a)) {
            seal_destroy (a.seal);
            close (a.fd);
        }
        free (a.body);
    }
}

/* ---- messages from ranks ---- */

static void drop (struct rank_watch *w, size_t i, int error)
{
    struct heal_seen *seen = &w->seen[i];

    net_stream_close (&w->ranks[i].stream);
    w->ranks[i].dumping = false;
    if (seen->over)
        return;
    seen->at = monotonic ();
    if (heal_is_silence (error))
        seen->lost = true;
    else
        seen->cut = true;
}

static void take_beat (struct heal_seen *seen, const struct heal_beat *b)
{
    double moved = monotonic () - b->quiet;

    if (moved > seen->moved)
        seen->moved = moved;
    seen->cores = b->cores;
    seen->sleeps = b->sleeps;
    seen->state = b->state > 0 && b->state < 127 ? (char)b->state : 0;
    seen->work.beats++;
    seen->work.active += b->active;
    seen->work.ready += b->ready;
    seen->work.throttled += b->throttled;
    seen->work.blocked += seen->state == 'D';
    seen->work.stopped += seen->state == 'T';
    slow_add_gpu (&seen->gpu, &b->gpu);
}

static bool is_sound (const struct heal_network *report)
{
    if (report->nlinks < 0 || report->nlinks > HEAL_LINKS)
        return false;
    for (int64_t i = 0; i < report->nlinks; i++)
        if (!memchr (report->links[i].name, '\0', HEAL_LINK_NAME)
            || !word_fits (report->links[i].name))
            return false;
    return true;
}

static void take_rank_message (struct rank_watch *w, size_t i)
{
    const struct net_stream *s = &w->ranks[i].stream;
    struct heal_seen *seen = &w->seen[i];
    struct heal_network report;
    struct heal_beat b;
    int64_t status;

    seen->heard = monotonic ();
    if (s->head.kind == HEAL_BEAT && s->head.length == sizeof (b)) {
        memcpy (&b, s->body, sizeof (b));
        take_beat (seen, &b);
    } else if (s->head.kind == HEAL_OVER && s->head.length == sizeof (status)) {
        memcpy (&status, s->body, sizeof (status));
        seen->over = true;
        seen->status = (int)status;
        seen->at = monotonic ();
    } else if (s->head.kind == HEAL_NETWORK && s->head.length == sizeof (report)) {
        memcpy (&report, s->body, sizeof (report));
        if (is_sound (&report))
            slow_add_network (&seen->network, &report);
    } else if (s->head.kind == HEAL_DUMPED)
        w->ranks[i].dumping = false;
}

/* Take the messages that have arrived.  Returns false at the end of the connection. */
static bool hear (struct rank_watch *w, size_t i)
{
    struct net_stream *s = &w->ranks[i].stream;
    enum stream_read got;

    while ((got = net_stream_read (s, HEAL_MOST)) == STREAM_WHOLE) {
        take_rank_message (w, i);
        net_stream_next (s);
    }
    return got != STREAM_FAILED;
}

/* A rank may have said that it is over before its connection broke, so first take what it said. */
static void hear_out (struct rank_watch *w, size_t i, int error)
{
    hear (w, i);
    drop (w, i, error);
}

static void tell (struct rank_watch *w, size_t i, enum heal_message kind, const void *body,
                  size_t n)
{
    struct net_stream *s = &w->ranks[i].stream;

    if (s->fd >= 0 && net_stream_send (s, kind, body, n, monotonic () + 0.1) < 0)
        hear_out (w, i, errno);
}

/* If a host does not acknowledge a ping in time, the kernel closes the connection
 * (TCP_USER_TIMEOUT).
 */
static void ping (struct rank_watch *w)
{
    if (monotonic () - w->pinged < PING_SECONDS)
        return;
    w->pinged = monotonic ();
    for (size_t i = 0; i < w->n; i++)
        tell (w, i, HEAL_PING, NULL, 0);
}

/* SO_ERROR reports only once why a connection ended, so read it before anything else does. */
static int error_of (int fd)
{
    int error = 0;
    socklen_t size = sizeof (error);

    return getsockopt (fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

void rank_watch_serve (struct rank_watch *w)
{
    struct pollfd *p = listener_poll (&w->listener, w->n);
    size_t first = listener_fds (&w->listener);

    if (!p)
        return;
    for (size_t i = 0; i < w->n; i++)
        p[first + i] = (struct pollfd){ .fd = w->ranks[i].stream.fd, .events = POLLIN };
    if (poll (p, first + w->n, 0) > 0)
        for (size_t i = 0; i < w->n; i++) {
            int error = p[first + i].revents & POLLERR ? error_of (p[first + i].fd) : 0;
            if (error)
                hear_out (w, i, error);
            else if (p[first + i].revents && !hear (w, i))
                drop (w, i, errno);
        }
    listener_serve (&w->listener);
    accept_ranks (w);
    ping (w);
}

const struct heal_seen *rank_watch_seen (const struct rank_watch *w, size_t *n)
{
    *n = w->n;
    return w->seen;
}

long rank_watch_step (const struct rank_watch *w)
{
    return w->step;
}

/* ---- messages to ranks ---- */

void rank_watch_dump (struct rank_watch *w, const char *folder, long number)
{
    char where[PATH_MAX + 32];

    snprintf (where, sizeof (where), "%ld %s", number, folder);
    for (size_t i = 0; i < w->n; i++)
        if (w->ranks[i].stream.fd >= 0 && !w->seen[i].over) {
            w->ranks[i].dumping = true;
            tell (w, i, HEAL_DUMP, where, strlen (where));
        }
}

size_t rank_watch_dumping (const struct rank_watch *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += w->ranks[i].dumping && !heal_is_silent (&w->seen[i], monotonic ());
    return n;
}

void rank_watch_end (struct rank_watch *w)
{
    for (size_t i = 0; i < w->n; i++)
        tell (w, i, HEAL_END, NULL, 0);
}
