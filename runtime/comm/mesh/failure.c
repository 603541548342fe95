/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of a mesh: find out which rank failed, and notify all ranks. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/mesh/channel.h"
#include "runtime/comm/net/socket.h"

/* 'peer' answers, and waits for no other rank of this mesh. */
static void describe_absent (const struct mesh *m, long peer, const struct mesh_report *r,
                             char *text, size_t size)
{
    unsigned long ours = atomic_load (&m->calls);

    snprintf (text, size,
              "rank %ld on %s did not reach the collective within %g s: it has called %lu "
              "collectives, rank %ld has called %lu",
              mesh_world_rank (m, peer), mesh_host (m, peer), m->timeout, (unsigned long)r->calls,
              m->endpoint->rank, ours);
}

static void describe_silent (const struct mesh *m, long peer, int code, char *text, size_t size)
{
    if (code == ECONNREFUSED)
        snprintf (text, size, "rank %ld on %s is lost", peer, mesh_host (m, peer));
    else
        snprintf (text, size,
                  "rank %ld on %s did not reach the collective within %g s: its process is "
                  "stopped, or its host does not answer",
                  mesh_world_rank (m, peer), mesh_host (m, peer), m->timeout);
}

/* Find the rank that holds up all others: follow from 'peer' which rank waits for which.  Explain
 * in 'text' why it is late.  Returns its rank in the world.
 */
static long mesh_find_late_rank (struct mesh *part, long peer, char *text, size_t size)
{
    const struct mesh *m = part->root;
    struct mesh_report r = { .waits = -1 };
    long who = mesh_root_rank (part, peer);
    long next = who;

    for (long hops = 0; next >= 0 && next != m->rank && hops < m->size; hops++) {
        who = next;
        if (mesh_query (m, who, &r) < 0) {
            describe_silent (m, who, errno, text, size);
            return m->world[who];
        }
        next = r.waits < 0 ? -1 : mesh_rank_of (m, r.waits);
    }
    describe_absent (m, who, &r, text, size);
    return m->world[who];
}

/* seconds that our listener gets to answer */
static const double LISTENER_ANSWER_SECONDS = 10;

/* Whether we notify this rank: we are connected to it, or it is our neighbour in a hypercube.  Each
 * rank notifies its neighbours, so that all ranks learn of the failure.
 */
static bool is_told (const struct mesh *m, long peer)
{
    unsigned long bits = (unsigned long)(peer ^ m->rank);

    return peer != m->rank
           && ((bits & (bits - 1)) == 0 || atomic_load (&m->links[peer].out) >= 0
               || atomic_load (&m->links[peer].in) >= 0);
}

/* Return the name of the host that is unreachable, or NULL if none is. */
static const char *gone_host (const struct mesh *m)
{
    long r = mesh_unreachable (m);

    return r < 0 ? NULL : m->endpoint->peers[r].host;
}

/* Notify the other ranks.  Skip a host that is unreachable, or once two of its ranks do not answer.
 */
static void spread_failure (const struct mesh *m)
{
    const char *silent = gone_host (m);
    int times = silent ? 2 : 0;

    for (long r = 0; r < m->size; r++) {
        const char *host = mesh_host (m, r);
        bool same = silent && strcmp (silent, host) == 0;
        struct net_seal *seal = NULL;
        int fd;
        if (!is_told (m, r) || m->world[r] == m->root->failed || (same && times > 1))
            continue;
        fd = mesh_call (m, r, DIAL_ABORT, mesh_answer_seconds (m), &seal);
        if (fd >= 0) {
            seal_destroy (seal);
            close (fd);
        } else if (errno != ECONNREFUSED) {
            times = same ? times + 1 : 1;
            silent = host;
        }
    }
}

static int report_failure (struct mesh *m, struct slurmdl_error *err)
{
    /* the listener may be about to pass the reason to the root */
    pthread_mutex_lock (&m->endpoint->mutex);
    pthread_mutex_unlock (&m->endpoint->mutex);
    if (!atomic_exchange (&m->root->told, true)) {
        spread_failure (m->root);
        if (m != m->root)
            spread_failure (m);
    }
    errno = m->code;
    return errorf (err, "%s", m->why);
}

int mesh_fail (struct mesh *m, int code, struct slurmdl_error *err, const char *fmt, ...)
{
    char text[DIAL_TEXT];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    mesh_reason (m, code, text);
    return report_failure (m, err);
}

int mesh_usable (struct mesh *m, struct slurmdl_error *err)
{
    if (!atomic_load (&m->aborted) && !endpoint_is_foreign (m->endpoint))
        return 0;
    if (!endpoint_is_foreign (m->endpoint))
        return report_failure (m, err);
    errno = ENOTCONN;
    return errorf (err, "the communicator belongs to the parent process");
}

/* Our listener may not have handled a message yet that the rank sent before it exited.  It handles
 * messages in order, so once it answers a query of our own, it has delivered that message, however
 * busy the machine is.
 */
static void pass_listener (struct mesh *m)
{
    double until = monotonic () + LISTENER_ANSWER_SECONDS;
    struct mesh_report ignored;
    struct net_seal *seal = NULL;
    int fd = mesh_call (m, m->rank, DIAL_QUERY, LISTENER_ANSWER_SECONDS, &seal);

    if (fd < 0)
        return;
    socket_recv (fd, &ignored, sizeof (ignored), until);
    seal_destroy (seal);
    close (fd);
}

/* Wait a moment: the lost rank or another one may have sent a more specific reason. */
static void await_reason (struct mesh *m)
{
    struct pollfd p = { .fd = m->event, .events = POLLIN };
    eventfd_t value;
    double until;

    if (!atomic_load (&m->aborted))
        pass_listener (m);
    until = monotonic () + 0.2;
    while (!atomic_load (&m->aborted) && monotonic () < until) {
        poll (&p, 1, 20);
        eventfd_read (m->event, &value);
    }
}

int mesh_altered (struct mesh *m, long peer, struct slurmdl_error *err)
{
    return mesh_fail (m, EBADMSG, err,
                      "a message from rank %ld on %s to rank %ld on %s was altered in transit "
                      "(wrong MAC): connection closed",
                      mesh_world_rank (m, peer), mesh_host (m, peer), m->endpoint->rank,
                      mesh_host (m, m->rank));
}

int mesh_lost (struct mesh *m, long peer, struct slurmdl_error *err)
{
    await_reason (m);
    m->root->failed = m->world[peer];
    return mesh_fail (m, ECONNRESET, err,
                      "rank %ld on %s is lost: its process exited, or its host or the "
                      "network failed",
                      mesh_world_rank (m, peer), mesh_host (m, peer));
}

int mesh_timed_out (struct mesh *m, long peer, struct slurmdl_error *err)
{
    char text[DIAL_TEXT];

    mesh_set_waits (m, peer);
    m->root->failed = mesh_find_late_rank (m, peer, text, sizeof (text));
    await_reason (m); /* a rank that waited longer may have timed out and exited before */
    return mesh_fail (m, ETIMEDOUT, err, "%s", text);
}

void mesh_abort (struct mesh *m, const char *why)
{
    if (endpoint_is_foreign (m->endpoint))
        return;
    mesh_fail (m->root, ECONNRESET, NULL, "rank %ld on %s aborted: %s", m->endpoint->rank,
               mesh_host (m, m->rank), why ? why : "no reason given");
}

static long first_ended (const struct mesh *m)
{
    const struct process_id *self = &mesh_self (m)->member;

    for (long r = 0; r < m->size; r++)
        if (r != m->rank && m->node[r] == m->node[m->rank]
            && process_id_has_ended (&mesh_peer (m, r)->member, self))
            return r;
    return -1;
}

int mesh_check (struct mesh *m, struct slurmdl_error *err)
{
    long before = m->suspect;

    if (mesh_usable (m, err) < 0)
        return -1;
    m->suspect = first_ended (m);
    return m->suspect >= 0 && m->suspect == before ? mesh_lost (m, m->suspect, err) : 0;
}
