/* SPDX-License-Identifier: Apache-2.0 */
/* Bootstrap over TCP: all ranks connect to a port of rank 0. */
#include "runtime/comm/bootstrap/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/bootstrap/resolver.h"
#include "runtime/comm/net/clean.h"
#include "runtime/comm/net/socket.h"

enum {
    ATTEMPT_S = 5, /* to connect */
    TAKEN_S = 2,   /* for an older step to give the port back */
    SPARE_FILES = 64
};

/* The others have to hear from rank 0 whom it has waited for. */
static const double slack = 2;

/* Each rank that comes is an open file of rank 0's. */
static void raise_limit (long files)
{
    struct rlimit l;
    rlim_t want = (rlim_t)files + SPARE_FILES;

    if (getrlimit (RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= want)
        return;
    l.rlim_cur = want < l.rlim_max ? want : l.rlim_max;
    setrlimit (RLIMIT_NOFILE, &l);
}

static void pause_ms (long ms)
{
    struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };
    int saved = errno;

    nanosleep (&ts, NULL);
    errno = saved;
}

/* ---- rank 0 ---- */

static int say_missing (const struct boot_accept *m, struct slurmdl_error *err)
{
    const struct boot_place *p = m->place;
    char names[160];

    boot_name_ranks (names, sizeof (names), m->missing, p->size, p->layout);
    errorf (err,
            "%ld of %ld ranks did not come within %g s: %s",
            m->left,
            p->size,
            p->timeout,
            names);
    errno = ETIMEDOUT;
    return -1;
}

/* The port of a step that has just ended may still be in use. */
static int open_listener (struct boot_place *p, struct slurmdl_error *err)
{
    double deadline = monotonic () + TAKEN_S;
    int rv;

    if (p->listener.n > 0)
        return 0;
    while ((rv = listen_open (&p->listener, p->host, p->port)) < 0
           && errno == EADDRINUSE && monotonic () < deadline)
        pause_ms (50);
    if (rv < 0)
        errorf (err,
                "rank 0 (%s) cannot listen on port %d: %s: set "
                "DL_COMM_ADDRESS to HOST:PORT with another port",
                p->own,
                p->port,
                strerror (errno));
    return rv;
}

/* All who were to come have read it, or are too late. */
static void remove_secret (const struct boot_place *p)
{
    if (*p->secret)
        secret_remove (p->secret);
}

static int host_meeting (struct boot_tree *t,
                         struct boot_place *p,
                         struct slurmdl_error *err)
{
    struct boot_accept m;
    int rv = -1;

    if (open_listener (p, err) < 0) {
        remove_secret (p);
        return -1;
    }
    raise_limit (p->size);
    if (boot_accept_open (&m, p, &p->listener) < 0)
        goto out;
    for (long r = 1; r < p->size; r++)
        boot_accept_expect (&m, r);
    rv = boot_accept_run (&m, monotonic () + p->timeout);
    remove_secret (p);
    if (rv < 0 && errno == ETIMEDOUT)
        say_missing (&m, err);
    else if (rv < 0 && errno == EOPNOTSUPP)
        errorf (err, "%s", m.differs.text);
    if (boot_accept_end (&m, t) < 0)
        rv = -1;
    if (rv == 0)
        rv = boot_tree_build (t, p, err);
out:
    if (rv < 0)
        errorf (err, "rank 0 (%s): %s", p->own, strerror (errno));
    boot_accept_close (&m);
    return rv;
}

/* ---- the others ---- */

/* Returns 0, 1: try again, or -1: told not to. */
static int hear_answer (struct boot_tree *t,
                        const struct boot_place *p,
                        struct listen_sockets *listener,
                        struct slurmdl_error *err)
{
    struct net_stream *w = &t->parent.stream;
    size_t most = BOOT_TEXT + sizeof (struct boot_welcome)
                  + (size_t)p->size * sizeof (struct boot_child);

    if (net_stream_wait (w, most, monotonic () + p->timeout + slack) < 0)
        return errno == EBADMSG ? boot_say_altered (&t->parent, err) : 1;
    if (p->heard)
        *p->heard = true;
    switch (w->head.kind) {
    case BOOT_WELCOME:
        return boot_tree_move (t, p, listener, err);
    case BOOT_REFUSED:
        errno = EEXIST;
        return errorf (
            err, "rank 0 (%s): %s", t->parent.from, clean_text (w->body));
    case BOOT_FAILED:
        return errorf (err, "%s", boot_tree_reason (w));
    }
    errno = EPROTO;
    return 1;
}

static int introduce_at (struct boot_tree *t,
                         const struct boot_place *p,
                         struct listen_sockets *listener,
                         double deadline,
                         struct slurmdl_error *err)
{
    double until = monotonic () + ATTEMPT_S;
    int rv = 1;

    /* what does not answer there may be somebody else's */
    if (boot_introduce (t,
                        p,
                        listener->n ? listener->port : 0,
                        false,
                        until < deadline ? until : deadline)
        == 0)
        rv = hear_answer (t, p, listener, err);
    else if (errno == EOPNOTSUPP)
        rv = boot_say_differs (p->plain, p->rank, p->own, err);
    if (rv != 0) {
        int saved = errno;
        boot_peer_close (&t->parent);
        errno = saved;
    }
    return rv;
}

static int come_to_leader (struct boot_tree *t,
                           const struct boot_place *p,
                           struct slurmdl_error *err)
{
    int fd = boot_node_connect (p);
    struct listen_sockets none = { 0 };

    if (fd < 0)
        return 1;
    boot_peer_init (&t->parent, fd, NULL);
    t->parent.rank = boot_node_leader (p);
    memcpy (t->parent.host, p->own, sizeof (t->parent.host));
    return introduce_at (t, p, &none, monotonic () + p->timeout, err);
}

/* Where the name may mean nothing, this machine is tried until it has an
 * address.
 */
static int connect_to_root (const struct boot_place *p,
                            struct lookup *name,
                            double deadline)
{
    const char *host = p->nearby ? lookup_answer (name) : p->host;
    double until = monotonic () + ATTEMPT_S;

    return socket_connect (host ? host : "127.0.0.1",
                           p->port,
                           until < deadline ? until : deadline);
}

/* Rank 0 may not have made it yet, or one of another meeting: 1. */
static int read_secret (struct boot_place *p, struct slurmdl_error *err)
{
    if (!*p->secret || secret_look_up (p->secret, p->key, err) == 0)
        return 0;
    return errno == ENOENT || errno == ESTALE ? 1 : -1;
}

/* For the meeting of a node, which has no time-out of its own. */
static int await_secret (struct boot_place *p)
{
    double deadline = monotonic () + p->timeout / 4;
    int rv;

    while ((rv = read_secret (p, NULL)) == 1 && monotonic () < deadline)
        pause_ms (10);
    return rv ? -1 : 0;
}

/* As in introduce_at(). */
static int try_root (struct boot_tree *t,
                     struct boot_place *p,
                     struct lookup *name,
                     struct listen_sockets *listener,
                     double deadline,
                     struct slurmdl_error *err)
{
    int fd = connect_to_root (p, name, deadline);

    if (fd < 0)
        return 1;
    boot_peer_init (&t->parent, fd, NULL);
    t->parent.rank = 0;
    return introduce_at (t, p, listener, deadline, err);
}

static int no_answer (const struct boot_place *p,
                      const struct slurmdl_error *why,
                      bool strange,
                      struct slurmdl_error *err)
{
    const char *text = strerror (errno);

    if (strange)
        text = "what listens there does not know this step's secret";
    errorf (err,
            "rank 0 did not answer at %s:%d within %g s: %s",
            p->host,
            p->port,
            p->timeout,
            *why->text ? why->text : text);
    errno = ETIMEDOUT;
    return -1;
}

static int come_to_root (struct boot_tree *t,
                         struct boot_place *p,
                         struct listen_sockets *listener,
                         struct slurmdl_error *err)
{
    double deadline = monotonic () + p->timeout;
    struct lookup *name = p->nearby ? lookup_start (p->host) : NULL;
    struct slurmdl_error why;
    bool strange = false;
    long wait = 5;
    int rv;

    /* rank 0 may not listen yet; not all ranks come back at once */
    for (;;) {
        why = (struct slurmdl_error){ "" };
        if ((rv = read_secret (p, &why)) == 0)
            rv = try_root (t, p, name, listener, deadline, &why);
        strange |= rv == 1 && errno == EACCES;
        if (rv != 1 || monotonic () > deadline)
            break;
        pause_ms (wait + (p->rank * 7) % (wait + 1));
        wait = wait < 200 ? wait * 2 : wait;
    }
    lookup_leave (name);
    if (rv == 1)
        return no_answer (p, &why, strange, err);
    return rv < 0 ? errorf (err, "%s", why.text) : 0;
}

static int join_meeting (struct boot_tree *t,
                         struct boot_place *p,
                         struct slurmdl_error *err)
{
    long leader = p->size > BOOT_STAR ? boot_node_leader (p) : -1;
    struct listen_sockets listener = { 0 };
    int rv = 1;

    /* a node meets under a name that is made of the secret */
    if (leader > 0 && *p->secret && await_secret (p) < 0)
        leader = -1;
    if (leader == p->rank)
        boot_node_gather (t, p);
    else if (leader > 0)
        rv = come_to_leader (t, p, err);
    if (rv == 1 && p->size > BOOT_STAR
        && listen_open_range (&listener, NULL, 0, err) < 0)
        return -1;
    if (rv == 1)
        rv = come_to_root (t, p, &listener, err);
    listen_close (&listener);
    return rv;
}

int boot_tree_open (struct boot_tree *t,
                    struct boot_place *p,
                    struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    int rv;

    memset (t, 0, sizeof (*t));
    boot_peer_init (&t->parent, -1, NULL);
    t->rank = p->rank;
    t->size = p->size;
    t->timeout = p->timeout;
    t->layout = p->layout;
    rv = p->rank == 0 ? host_meeting (t, p, &why) : join_meeting (t, p, &why);
    if (rv < 0) {
        int saved = errno;
        boot_tree_tell (t, NULL, saved, why.text);
        t->broken = true;
        boot_tree_close (t, true);
        errorf (err, "%s", why.text);
        errno = saved;
    }
    return rv;
}

void boot_tree_close (struct boot_tree *t, bool ours)
{
    if (t->broken && ours)
        boot_tree_drain (t);
    for (long i = 0; i < t->nchildren; i++)
        boot_peer_close (&t->children[i]);
    free (t->children);
    boot_peer_close (&t->parent);
    t->children = NULL;
    t->nchildren = 0;
}
