/* SPDX-License-Identifier: Apache-2.0 */
/* The collector: one event loop for the connections of all ranks. */
#include "launcher/node/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "launcher/node/diagnosis.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/publish_file.h"
#include "runtime/base/clock.h"
#include "runtime/comm/net/listener.h"
#include "runtime/comm/net/socket.h"
#include "runtime/comm/net/stream.h"

/* ---- the collector's port ---- */

enum { GATHER_PROTOCOL = 2 };

/* Firewalls often let only srun's ports through. */
static int listen_in (struct listen_sockets *s, const char *range)
{
    unsigned from, to, first;
    uint32_t chance = 0;

    if (!range || sscanf (range, "%u-%u", &from, &to) != 2 || from < 1 || to > 65535 || from > to)
        return listen_open (s, NULL, 0);
    if (getrandom (&chance, sizeof (chance), 0) < 0)
        chance = (uint32_t)getpid ();
    first = chance % (to - from + 1);
    for (unsigned i = 0; i <= to - from; i++)
        if (listen_open (s, NULL, (int)(from + (first + i) % (to - from + 1))) == 0)
            return 0;
    return -1;
}

struct handshake gather_handshake (const unsigned char *key)
{
    struct handshake h = { .service = HANDSHAKE_COLLECTOR,
                           .version = GATHER_PROTOCOL,
                           .confirms = true };

    memcpy (h.key, key, sizeof (h.key));
    return h;
}

int gather_open (struct gather *g, int port, const char *range, struct slurmdl_error *err)
{
    int rv = port ? listen_open (&g->listener, NULL, port) : listen_in (&g->listener, range);

    return rv < 0 ? errorf (err, "cannot listen: %s", strerror (errno)) : 0;
}

/* ---- the collector ---- */

enum { EVENTS = 64, LINGER = 60, NOTES_MAX = 1 << 16, RANKS = 32768 };

enum phase { FACTS, PEERS, OVER };

struct gather_connection {
    struct gather_connection *next;
    struct net_stream stream;
    long rank;
    bool done; /* has finished the checks between nodes */
};

struct gather_hub {
    struct gather *g;
    struct listener listener;
    int epoll; /* watches the ranks and g->parent */
    long size; /* 0: no rank has connected yet */
    json_t **ranks;
    struct gather_connection **client_of; /* by rank */
    struct gather_connection *clients;
    long came, done;
    enum phase phase;
    double begun;
    struct rank_layout *layout; /* NULL: unknown */
    struct diagnosis *diagnosis;
    bool ended; /* srun has ended */
};

/* ---- clients ---- */

static void drop_connection (struct gather_hub *h, struct gather_connection *c)
{
    struct gather_connection **at = &h->clients;

    h->client_of[c->rank] = NULL;
    h->done += h->ranks[c->rank] && !c->done;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    net_stream_close (&c->stream);
    free (c);
}

static void watch_descriptor (struct gather_hub *h, int fd, void *what)
{
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = what };

    epoll_ctl (h->epoll, EPOLL_CTL_ADD, fd, &e);
}

static void add_connection (struct gather_hub *h, const struct listener_arrival *a, long rank)
{
    struct gather_connection *c = xcalloc (1, sizeof (*c));

    net_stream_init (&c->stream, a->fd, a->seal);
    c->rank = rank;
    c->next = h->clients;
    h->clients = h->client_of[rank] = c;
    watch_descriptor (h, a->fd, c);
}

static void answer_rank (struct gather_hub *h, long rank)
{
    enum gather_status status = diagnosis_status (h->diagnosis, rank);
    json_t *object = json_pack ("{s:i}", "status", status);

    if (h->client_of[rank])
        gather_send (&h->client_of[rank]->stream, object, monotonic () + 1);
    json_decref (object);
}

/* ---- messages from the ranks ---- */

static const char *fact_text (const json_t *facts, const char *name)
{
    return json_string_value (json_object_get (facts, name)) ?: "";
}

/* The first rank of a node sends what the layout needs. */
static void learn_layout (struct gather_hub *h, const json_t *facts)
{
    const json_t *at = json_object_get (facts, "layout");
    struct layout_facts f = { .hosts = fact_text (at, "hosts"),
                              .tasks = fact_text (at, "tasks"),
                              .distribution = fact_text (at, "distribution"),
                              .gtids = fact_text (at, "gtids"),
                              .ranks = h->size };

    if (h->layout || !at)
        return;
    h->layout = xmalloc (sizeof (*h->layout));
    f.plane = json_integer_value (json_object_get (at, "plane"));
    f.node = json_integer_value (json_object_get (at, "node"));
    if (layout_fill (h->layout, &f) == 0)
        return;
    free (h->layout);
    h->layout = NULL;
}

static int begin_gathering (struct gather_hub *h, const json_t *line)
{
    long size = json_integer_value (json_object_get (line, "size"));

    if (h->size)
        return 0;
    if (size < 1 || size > RANKS)
        return -1;
    h->ranks = xcalloc ((size_t)size, sizeof (*h->ranks));
    h->client_of = xcalloc ((size_t)size, sizeof (*h->client_of));
    h->size = size;
    h->begun = monotonic ();
    return 0;
}

/* Returns -1 if the peer is not a rank of this step or duplicates another rank. */
static int greet (struct gather_hub *h, const struct listener_arrival *a, const json_t *said)
{
    long rank = json_integer_value (json_object_get (said, "rank"));

    if (!json_is_object (said) || begin_gathering (h, said) < 0 || rank < 0 || rank >= h->size
        || h->client_of[rank] || h->ranks[rank])
        return -1;
    learn_layout (h, said);
    add_connection (h, a, rank);
    return 0;
}

static void take_arrivals (struct gather_hub *h)
{
    struct listener_arrival a;

    while (listener_take (&h->listener, &a)) {
        json_t *said = json_loadb (a.body, a.length, JSON_REJECT_DUPLICATES, NULL);
        if (greet (h, &a, said) < 0) {
            seal_destroy (a.seal);
            close (a.fd);
        }
        json_decref (said);
        free (a.body);
    }
}

/* Returns -1 if the message is invalid. */
static int read_first_message (struct gather_hub *h, struct gather_connection *c, json_t *line)
{
    json_t *facts = json_object_get (line, "facts");
    struct timespec now;

    if (!json_is_object (facts))
        return -1;
    clock_gettime (CLOCK_REALTIME, &now);
    json_object_set_new (facts, "skew",
                         json_real ((double)now.tv_sec + (double)now.tv_nsec / 1e9
                                    - json_number_value (json_object_get (facts, "time"))));
    h->ranks[c->rank] = json_incref (line);
    h->came++;
    if (h->phase == OVER)
        answer_rank (h, c->rank);
    return 0;
}

static void take_peer_report (struct gather_hub *h, struct gather_connection *c, json_t *line)
{
    json_t *rank = h->ranks[c->rank];
    json_t *findings = json_object_get (line, "findings");

    if (c->done || h->phase != PEERS)
        return;
    if (json_is_array (findings))
        json_array_extend (json_object_get (rank, "findings"), findings);
    json_object_set (rank, "rates", json_object_get (line, "rates"));
    c->done = true;
    h->done++;
}

/* Report that something between the rank and the collector alters its messages. */
static void complain_altered (const struct gather_hub *h, const struct gather_connection *c)
{
    const char *host = h->layout ? layout_host (h->layout, c->rank) : "";

    fprintf (stderr,
             "dl: check: a message from rank %ld%s%s was altered in transit (wrong MAC), or is not "
             "JSON: closing the connection\n",
             c->rank, *host ? " on " : "", host);
}

static void receive_message (struct gather_hub *h, struct gather_connection *c)
{
    json_t *line;
    int rv = 0;

    while (rv == 0 && (line = gather_receive (&c->stream))) {
        if (!h->ranks[c->rank])
            rv = read_first_message (h, c, line);
        else
            take_peer_report (h, c, line);
        json_decref (line);
    }
    if (rv < 0 || errno != EAGAIN) {
        if (rv == 0 && errno == EBADMSG)
            complain_altered (h, c);
        drop_connection (h, c);
    }
}

/* ---- the phases ---- */

static const json_t *hub_fact (const struct gather_hub *h, long rank, const char *name)
{
    return h->ranks[rank] ? json_object_get (json_object_get (h->ranks[rank], "facts"), name)
                          : NULL;
}

static bool leads_node (const struct gather_hub *h, long rank)
{
    return h->client_of[rank] && hub_fact (h, rank, "local_rank")
           && json_integer_value (hub_fact (h, rank, "local_rank")) == 0;
}

/* Return the address of the first rank on the next node in the ring, or NULL if there is
 * no other node.
 */
static json_t *next_leader (const struct gather_hub *h, long rank)
{
    for (long i = 1; i < h->size; i++) {
        long other = (rank + i) % h->size;
        if (leads_node (h, other))
            return json_pack ("{s:O?, s:O?, s:O?}", "host", hub_fact (h, other, "host"), "address",
                              hub_fact (h, other, "address"), "port",
                              hub_fact (h, other, "peer_port"));
    }
    return NULL;
}

static void send_go (struct gather_hub *h)
{
    for (long i = 0; i < h->size; i++) {
        json_t *next = leads_node (h, i) ? next_leader (h, i) : NULL;
        json_t *go = json_pack ("{s:{s:b, s:o*}}", "go", "leader", leads_node (h, i), "next", next);
        if (go && h->client_of[i])
            gather_send (&h->client_of[i]->stream, go, monotonic () + 1);
        json_decref (go);
    }
}

static bool is_node_name (const char *name)
{
    return *name && !strpbrk (name, " ,[]/?");
}

/* Tell the launcher which nodes the experiment must avoid. */
static void write_notes (const struct gather_hub *h)
{
    const struct diagnosis *d = h->diagnosis;
    char *text = xcalloc (1, NOTES_MAX);
    size_t n = 0;

    for (long i = 0; i < d->nnodes; i++)
        if (d->nodes[i].bad && is_node_name (d->nodes[i].name) && n + 2 * NAME_TEXT < NOTES_MAX)
            n += (size_t)snprintf (text + n, NOTES_MAX - n, "%s\n", d->nodes[i].name);
    if (n > 0)
        publish_replace (h->g->notes, text, n, NULL);
    free (text);
}

static void print_result (const struct gather_hub *h)
{
    char line[512];

    if (h->g->json) {
        diagnosis_json (h->diagnosis, stdout);
        return;
    }
    if (h->g->table)
        ranks_print (h->ranks, h->size, stderr);
    if (h->g->level == LEVEL_NONE)
        return;
    diagnosis_print (h->diagnosis, stderr);
    diagnosis_line (h->diagnosis, line, sizeof (line));
    fprintf (stderr, "dl: check: %s (%.1f s)\n", line, monotonic () - h->begun);
}

static void end_gathering (struct gather_hub *h)
{
    h->phase = OVER;
    h->diagnosis = diagnosis_create (h->ranks, h->size, h->layout);
    if (h->g->level == LEVEL_NONE)
        h->diagnosis->stop = false;
    else if (h->g->notes)
        write_notes (h);
    print_result (h);
    for (long i = 0; i < h->size; i++)
        if (h->client_of[i])
            answer_rank (h, i);
}

/* Return when the current phase ends even if ranks are missing. */
static double phase_limit (const struct gather_hub *h)
{
    const struct gather_times *t = &gather_times[h->g->level];

    switch (h->phase) {
    case FACTS:
        return h->begun + t->facts;
    case PEERS:
        return h->begun + t->facts + t->peers;
    case OVER:
        break;
    }
    /* while srun runs, answer ranks that connect late, too */
    return h->begun + t->all + (h->g->parent < 0 ? 0 : LINGER);
}

static void step_on (struct gather_hub *h)
{
    bool timed_out = monotonic () >= phase_limit (h);

    if (h->phase == FACTS && (h->came == h->size || timed_out)) {
        h->phase = PEERS;
        if (h->g->level == LEVEL_NONE)
            h->done = h->came;
        else
            send_go (h);
        timed_out = monotonic () >= phase_limit (h);
    }
    if (h->phase == PEERS && (h->done >= h->came || timed_out)) {
        end_gathering (h);
        timed_out = false;
    }
    if (h->phase == OVER && (timed_out || (h->came == h->size && !h->clients)))
        h->ended = true;
}

/* ---- the loop ---- */

/* Whether the process that this collector serves still runs. */
static bool parent_is_alive (const struct gather_hub *h)
{
    char byte;
    ssize_t n;

    if (h->g->parent < 0)
        return true;
    n = read (h->g->parent, &byte, 1);
    return n > 0 || (n < 0 && errno == EAGAIN);
}

static int wait_ms (const struct gather_hub *h)
{
    double now = monotonic ();
    double until = h->size ? phase_limit (h) : now + 1000;

    if (h->listener.n > 0 && until > now + 1)
        until = now + 1;
    return socket_left (until);
}

static void handle_events (struct gather_hub *h)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait (h->epoll, events, EVENTS, 0);

    for (int i = 0; i < n; i++)
        if (events[i].data.ptr == h->g)
            h->ended = !parent_is_alive (h);
        else
            receive_message (h, events[i].data.ptr);
}

static void collector_loop (struct gather_hub *h)
{
    while (!h->ended) {
        struct pollfd *p = listener_poll (&h->listener, 1);
        size_t last = listener_fds (&h->listener);
        if (!p)
            out_of_memory ();
        p[last] = (struct pollfd){ .fd = h->epoll, .events = POLLIN };
        if (poll (p, last + 1, wait_ms (h)) < 0)
            continue;
        if (p[last].revents)
            handle_events (h);
        listener_serve (&h->listener);
        take_arrivals (h);
        if (h->size)
            step_on (h);
    }
}

/* Returns how many ranks may connect at once. */
static size_t allow_many (void)
{
    struct rlimit limit = { 1024, 1024 };

    if (getrlimit (RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit (RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur / 2 < RANKS ? limit.rlim_cur / 2 : RANKS;
}

int gather_serve (struct gather *g)
{
    struct gather_hub h = { .g = g,
                            .listener = { .at = g->listener,
                                          .handshake = gather_handshake (g->key),
                                          .most = GATHER_LINE,
                                          .expected = allow_many (),
                                          .timeout = gather_times[g->level].all } };
    int rv;

    h.epoll = epoll_create1 (EPOLL_CLOEXEC);
    if (g->parent >= 0) {
        fcntl (g->parent, F_SETFL, O_NONBLOCK);
        watch_descriptor (&h, g->parent, g);
    }
    collector_loop (&h);
    rv = h.diagnosis && h.diagnosis->stop ? GATHER_AGAIN : GATHER_GO;
    while (h.clients)
        drop_connection (&h, h.clients);
    for (long i = 0; i < h.size; i++)
        json_decref (h.ranks[i]);
    diagnosis_destroy (h.diagnosis);
    free (h.ranks);
    free (h.client_of);
    free (h.layout);
    close (h.epoll);
    listener_close (&h.listener);
    return rv;
}
