/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread: exchanges packets about named tensors with other ranks.
 */
#include "runtime/comm/engine/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"

/* Rank 0 keeps so many batches ahead of its executor: one that runs and one to
 * pack meanwhile.  What gets ready later than that travels together.
 */
enum { AHEAD = 2, FAN = 32 };

static const double GOODBYE = 5; /* seconds, to see that all have heard it */

static const char *host_of (const void *arg, long rank)
{
    const struct engine *e = arg;

    return mesh_host (e->channel->mesh, rank);
}

/* ---- start ---- */

static int connect_to (struct control *k, struct connection *w, long rank)
{
    struct slurmdl_error err = { "" };
    struct net_seal *seal = NULL;
    int fd = mesh_socket (k->e->channel->mesh, rank, &seal, &err);

    w->fd = -1;
    if (fd >= 0 && connection_open (w, fd, seal) == 0)
        return 0;
    engine_fail (k->e, errno, *err.text ? err.text : strerror (errno));
    return -1;
}

static int find_place (struct control *k)
{
    struct mesh *m = k->e->channel->mesh;
    const char *text = getenv ("DL_COMM_FAN");
    long fan = text ? strtol (text, NULL, 10) : 0;
    long *node = malloc ((size_t)k->e->size * sizeof (*node));
    int rv = -1;

    for (long r = 0; node && r < k->e->size; r++)
        node[r] = mesh_node_of (m, r);
    if (node)
        rv = engine_tree_make (&k->tree, k->e->rank, k->e->size, node, fan > 0 ? fan : FAN);
    free (node);
    return rv;
}

static int make_relay (struct control *k)
{
    long *units = malloc ((k->tree.n + 1) * sizeof (*units));

    if (!units)
        return -1;
    units[0] = 1;
    memcpy (units + 1, k->tree.below, k->tree.n * sizeof (*units));
    k->readiness = readiness_create (k->tree.n + 1, units);
    free (units);
    k->children = calloc (k->tree.n + 1, sizeof (*k->children));
    for (size_t i = 0; k->children && i < k->tree.n; i++)
        connection_expect (&k->children[i]);
    k->absent = k->tree.n;
    return k->readiness && k->children ? 0 : -1;
}

static int make_root (struct control *k)
{
    struct engine *e = k->e;

    if (e->rank)
        return 0;
    k->root = coordinator_create (e->size, host_of, e, &k->down);
    k->stall = stall_create (e->size, host_of, e);
    return k->root && k->stall ? 0 : -1;
}

static int start (struct control *k)
{
    k->parent.fd = -1;
    if (find_place (k) < 0 || make_relay (k) < 0 || make_root (k) < 0) {
        engine_fail (k->e, ENOMEM, "no memory for named tensors");
        return -1;
    }
    k->begun = monotonic ();
    return k->tree.parent >= 0 ? connect_to (k, &k->parent, k->tree.parent) : 0;
}

/* ---- one round ---- */

static void lost (struct control *k, long rank)
{
    char text[256];

    snprintf (text, sizeof (text), "rank %ld (%s) has gone", rank, host_of (k->e, rank));
    engine_fail (k->e, ECONNRESET, text);
}

static void altered (struct control *k, long rank)
{
    char text[256];

    snprintf (text, sizeof (text),
              "what rank %ld (%s) sent was altered on its way (wrong MAC): the "
              "connection is ended",
              rank, host_of (k->e, rank));
    engine_fail (k->e, EBADMSG, text);
}

static int send_down (struct control *k, const struct packet *p)
{
    for (size_t i = 0; i < k->tree.n; i++)
        if (connection_send (&k->children[i], p) < 0) {
            lost (k, k->tree.children[i]);
            return -1;
        }
    return 0;
}

/* What the coordinator says goes to all, this rank too, which may have
 * something to answer.
 */
static int deliver (struct control *k)
{
    while (k->down.n) {
        struct packet now = k->down;
        int rv;
        memset (&k->down, 0, sizeof (k->down));
        if (now.bad)
            engine_fail (k->e, ENOMEM, "no memory for named tensors");
        rv = now.bad ? -1 : send_down (k, &now);
        if (rv == 0)
            rv = control_down (k, &now);
        packet_free (&now);
        if (rv < 0)
            return -1;
    }
    return 0;
}

/* What all units are ready for goes up. */
static int pass_on (struct control *k)
{
    size_t n;
    uint32_t *ids = readiness_full (k->readiness, &n);

    if (k->root) {
        for (size_t i = 0; i < n; i++)
            if (coordinator_ready (k->root, ids[i]) < 0)
                return -1;
    } else if (n) {
        packet_number (&k->up, UP_READY);
        packet_ids (&k->up, ids, n);
    }
    return 0;
}

static void emit (struct control *k)
{
    struct engine *e = k->e;
    size_t ahead, fusion;

    pthread_mutex_lock (&e->lock);
    ahead = e->batches;
    fusion = e->fusion;
    pthread_mutex_unlock (&e->lock);
    if (ahead < AHEAD)
        coordinator_emit (k->root, fusion, AHEAD - ahead);
}

/* The executor says when it has room, unless it has some already. */
static bool has_more (struct control *k)
{
    struct engine *e = k->e;
    bool more;

    pthread_mutex_lock (&e->lock);
    e->hungry = coordinator_waits (k->root);
    more = k->down.n || (e->hungry && e->batches < AHEAD);
    pthread_mutex_unlock (&e->lock);
    return more;
}

static void look_at_stall (struct control *k, double now)
{
    char text[256];
    double age;

    if (!stall_text (k->stall, now, text, sizeof (text), &age))
        return;
    control_report_late (k, age, text);
}

/* Rank 0 hears itself and decides; what follows may be news for it. */
static int decide (struct control *k, double now)
{
    look_at_stall (k, now);
    do {
        if (pass_on (k) < 0)
            return -1;
        emit (k);
        if (deliver (k) < 0)
            return -1;
    } while (has_more (k));
    return 0;
}

static int send_up (struct control *k)
{
    int rv = 0;

    if (pass_on (k) < 0)
        return -1;
    if (k->up.n && (rv = connection_send (&k->parent, &k->up)) < 0)
        lost (k, k->tree.parent);
    packet_clear (&k->up);
    return rv;
}

static int hear (struct control *k, size_t unit)
{
    struct connection *w = unit ? &k->children[unit - 1] : &k->parent;
    long from = unit ? k->tree.children[unit - 1] : k->tree.parent;
    int gone = connection_read (w);
    struct packet p;

    while (connection_take (w, &p)) {
        int rv = 0;
        if (unit) {
            rv = control_up (k, unit, &p);
        } else if (!k->ended) {
            k->heard = true;
            rv = send_down (k, &p);
            rv = rv < 0 ? rv : control_down (k, &p);
        }
        if (rv < 0)
            return -1;
    }
    if (w->altered)
        altered (k, from);
    else if (gone < 0 && !k->ended)
        lost (k, from);
    return w->altered ? -1 : gone;
}

static size_t fill (const struct control *k, struct pollfd *p)
{
    p[0] = (struct pollfd){ .fd = k->e->wake, .events = POLLIN };
    p[1] = (struct pollfd){ .fd = k->parent.fd, .events = POLLIN };
    if (connection_waits (&k->parent))
        p[1].events |= POLLOUT;
    for (size_t i = 0; i < k->tree.n; i++) {
        p[i + 2] = (struct pollfd){ .fd = k->children[i].fd, .events = POLLIN };
        if (connection_waits (&k->children[i]))
            p[i + 2].events |= POLLOUT;
    }
    p[k->tree.n + 2] = (struct pollfd){ .fd = k->absent ? mesh_event (k->e->channel->mesh) : -1,
                                        .events = POLLIN };
    return k->tree.n + 2;
}

static double sooner (double a, double b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return a < b ? a : b;
}

static double wait_seconds (const struct control *k, double now)
{
    double wait = sooner (control_wait_seconds (k), control_meeting (k));

    return k->stall ? sooner (wait, stall_wait_seconds (k->stall, now)) : wait;
}

static int sleep_until (struct pollfd *p, size_t n, double seconds)
{
    struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    return ppoll (p, n, seconds < 0 ? NULL : &t, NULL);
}

static int listen_to (struct control *k, struct pollfd *p, double seconds)
{
    size_t n = fill (k, p);
    uint64_t count;

    if (sleep_until (p, n + 1, seconds) <= 0)
        return 0;
    if (p[0].revents) {
        if (read (k->e->wake, &count, sizeof (count)) < 0)
            return 0;
        atomic_store (&k->e->awake, false);
    }
    for (size_t i = 1; i < n; i++) {
        struct connection *w = i > 1 ? &k->children[i - 2] : &k->parent;
        if (p[i].revents & POLLOUT)
            connection_flush (w); /* a failure is seen when it is read from */
        if (p[i].revents & ~POLLOUT && hear (k, i - 1) < 0)
            return -1;
    }
    return 0;
}

/* The kernel would say so much later, and not while something is on its way. */
static int look_at_hosts (struct control *k, double now)
{
    struct mesh *m = k->e->channel->mesh;

    if (now < k->looked + 1 || !control_waits (k))
        return 0;
    k->looked = now;
    for (size_t i = 0; i <= k->tree.n; i++) {
        const struct connection *w = i ? &k->children[i - 1] : &k->parent;
        long rank = i ? k->tree.children[i - 1] : k->tree.parent;
        if (!mesh_is_unreachable (m, rank, w->fd))
            continue;
        lost (k, rank);
        return -1;
    }
    return 0;
}

static void exchange_packets (struct control *k, struct pollfd *p)
{
    bool helped = false;
    double now;

    while (!k->ended && !engine_code (k->e)) {
        now = monotonic ();
        if (listen_to (k, p, helped ? 0 : wait_seconds (k, now)) < 0)
            break;
        now = monotonic ();
        if (k->ended || control_meet (k, now) < 0 || control_ask (k) < 0
            || look_at_hosts (k, now) < 0)
            break;
        control_report_stall (k, now);
        if ((k->root ? decide (k, now) : send_up (k)) < 0)
            break;
        if (!k->root && deliver (k) < 0)
            break;
        helped = executor_help (k->e);
    }
}

/* ---- end ---- */

/* Tell everybody why, above and below. */
static void spread (struct control *k)
{
    struct engine *e = k->e;
    struct packet p = { NULL };

    packet_number (&p, UP_FAIL);
    packet_number (&p, (uint64_t)e->code);
    packet_text (&p, e->why.text);
    if (k->parent.fd >= 0)
        connection_send (&k->parent, &p);
    packet_clear (&p);
    packet_number (&p, DOWN_FAIL);
    packet_number (&p, (uint64_t)e->code);
    packet_text (&p, e->why.text);
    for (size_t i = 0; i < k->tree.n; i++)
        if (k->children[i].fd >= 0)
            connection_send (&k->children[i], &p);
    packet_free (&p);
}

/* A socket that is closed with something unread takes with it what the peer
 * has not read: so wait for the others to end, too.
 */
static void goodbye (struct control *k, struct pollfd *p, double until)
{
    size_t n = fill (k, p);
    size_t open = 0;

    for (size_t i = 1; i < n; i++) {
        open += p[i].fd >= 0;
        if (p[i].fd >= 0 && !(p[i].events & POLLOUT))
            shutdown (p[i].fd, SHUT_WR);
    }
    while (open && monotonic () < until) {
        p[0].fd = -1;
        if (sleep_until (p, n, until - monotonic ()) <= 0)
            return;
        for (size_t i = 1; i < n; i++) {
            struct connection *w = i > 1 ? &k->children[i - 2] : &k->parent;
            struct packet rest;
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            if (p[i].revents & POLLOUT && (connection_flush (w) < 0 || !connection_waits (w))) {
                shutdown (p[i].fd, SHUT_WR);
                p[i].events = POLLIN;
            }
            if (p[i].revents & ~POLLOUT && connection_read (w) < 0) {
                p[i].fd = -1;
                open--;
            }
            while (connection_take (w, &rest))
                continue;
        }
    }
}

static void release (struct control *k)
{
    size_t n = k->children ? k->tree.n : 0;
    struct name *name;
    size_t at = 0;

    connection_close (&k->parent);
    for (size_t i = 0; i < n; i++)
        connection_close (&k->children[i]);
    free (k->children);
    pthread_mutex_lock (&k->e->lock);
    while ((name = map_next (&k->ids, &at))) {
        name->id = 0;
        name_tidy (k->e, name);
    }
    pthread_mutex_unlock (&k->e->lock);
    map_free (&k->ids);
    engine_tree_free (&k->tree);
    readiness_destroy (k->readiness);
    coordinator_destroy (k->root);
    stall_destroy (k->stall);
    packet_free (&k->up);
    packet_free (&k->down);
}

/* The executor goes on to the end of its queue, or drops it. */
static void end (struct control *k)
{
    struct engine *e = k->e;

    pthread_mutex_lock (&e->lock);
    e->over = true;
    pthread_cond_broadcast (&e->work);
    if (e->code)
        engine_abort_channel (e);
    pthread_mutex_unlock (&e->lock);
}

void *control_main (void *arg)
{
    struct control k = { .e = arg };
    struct pollfd *p = NULL;

    pthread_setname_np (pthread_self (), "dl-tensors");
    if (start (&k) == 0 && (p = calloc (k.tree.n + 3, sizeof (*p))))
        exchange_packets (&k, p);
    if (!k.ended && !engine_code (k.e))
        engine_fail (k.e, ENOMEM, "no memory for named tensors");
    if (k.children && engine_code (k.e))
        spread (&k);
    end (&k);
    if (p)
        goodbye (&k, p, monotonic () + (engine_code (k.e) ? 1 : GOODBYE));
    free (p);
    release (&k);
    return NULL;
}
