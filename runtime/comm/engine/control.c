/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread, which exchanges packets about named tensors with other ranks. */
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

static const double NEVER = 1e9, LOOK = 2; /* seconds */

/* Whether the tensor's number stands for what this rank wants now. */
static bool knows_task (const struct control *k, const struct engine_task *t)
{
    const struct tensor *now = t->name->now;

    if (!t->name->id || !tensor_agrees (now, &t->t))
        return false;
    return now->what != SLURMDL_ALLGATHER || now->counts[k->e->rank] == t->t.n;
}

static int describe_task (struct control *k, struct engine_task *t)
{
    t->state = TASK_WORDS;
    if (!k->root) {
        packet_number (&k->up, UP_REQUEST);
        packet_number (&k->up, (uint64_t)k->e->rank);
        tensor_put (&k->up, &t->t);
        return k->up.bad ? -1 : 0;
    }
    struct tensor *copy = tensor_copy (&t->t);
    return copy ? coordinator_request (k->root, 0, copy) : -1;
}

static int announce_task (struct control *k, struct engine_task *t)
{
    if (!knows_task (k, t))
        return describe_task (k, t);
    t->state = TASK_BIT;
    return readiness_ready (k->readiness, t->name->id);
}

/* Describe the tensor again if its number is no longer valid. */
static int control_ask_again (struct control *k, struct engine_task *t)
{
    return t->state == TASK_BIT ? describe_task (k, t) : 0;
}

static bool is_due (const struct engine *e, double now)
{
    return e->hurry || e->joining == JOIN_ASKED || e->leave || e->fresh_bytes >= e->fusion
           || e->unanswered == e->known || now >= e->fresh_since + e->cycle;
}

/* The caller holds the lock. */
static int announce_new_tasks (struct control *k)
{
    struct engine *e = k->e;
    struct engine_task *t = e->fresh;

    e->fresh = NULL;
    e->fresh_tail = &e->fresh;
    e->nfresh = 0;
    e->fresh_bytes = 0;
    e->hurry = false;
    e->stats.cycles++;
    timeline_cycle (e->timeline, monotonic ());
    for (; t; t = t->next) {
        if (announce_task (k, t) < 0)
            return -1;
        *(t->state == TASK_BIT ? &e->stats.hits : &e->stats.negotiated) += 1;
    }
    return 0;
}

static int send_join (struct control *k)
{
    k->e->joining = JOIN_SENT;
    if (readiness_join (k->readiness, 0) < 0)
        return -1;
    if (k->root)
        return coordinator_join (k->root, 0);
    packet_number (&k->up, UP_JOIN);
    packet_number (&k->up, (uint64_t)k->e->rank);
    return 0;
}

static void send_leave (struct control *k)
{
    k->told = true;
    if (k->root) {
        coordinator_leave (k->root, 0);
        return;
    }
    packet_number (&k->up, UP_LEAVE);
    packet_number (&k->up, (uint64_t)k->e->rank);
}

/* Announce new tensors, if it is time to. */
static int control_ask (struct control *k)
{
    struct engine *e = k->e;
    int rv = 0;

    pthread_mutex_lock (&e->lock);
    if (e->fresh && is_due (e, monotonic ()))
        rv = announce_new_tasks (k);
    if (rv == 0 && e->joining == JOIN_ASKED && !e->unanswered)
        rv = send_join (k);
    if (rv == 0 && e->leave && !e->code && !k->told)
        send_leave (k);
    pthread_mutex_unlock (&e->lock);
    return rv;
}

/* The time of the next report about a waiting tensor, or of the abort. */
static double next_report (const struct control *k)
{
    const struct engine *e = k->e;
    double since = e->oldest->submitted;
    double at = since + (e->stall_seconds > 0 ? e->stall_seconds : NEVER);

    if (e->stall_seconds > 0 && at <= k->stalled)
        at = k->stalled + e->stall_seconds;
    if (e->stall_abort > 0 && since + e->stall_abort > k->stalled && since + e->stall_abort < at)
        at = since + e->stall_abort;
    return at;
}

/* Whether this rank waits for others.  If so, control_wait_seconds() returns at
 * most 2 s, so that we check on their hosts.
 */
static bool control_waits (const struct control *k)
{
    bool rv;

    pthread_mutex_lock (&k->e->lock);
    rv = k->e->oldest || k->e->joining != JOIN_NO;
    pthread_mutex_unlock (&k->e->lock);
    return rv;
}

/* Seconds until control_ask() has something to do, or -1 for never. */
static double control_wait_seconds (const struct control *k)
{
    struct engine *e = k->e;
    double now = monotonic ();
    double at = -1;

    pthread_mutex_lock (&e->lock);
    if (e->oldest)
        at = next_report (k);
    if (e->fresh && is_due (e, now))
        at = now;
    else if (e->fresh && e->fresh_since + e->cycle < at)
        at = e->fresh_since + e->cycle;
    if ((e->oldest || e->joining != JOIN_NO) && (at < 0 || at > now + LOOK))
        at = now + LOOK;
    pthread_mutex_unlock (&e->lock);
    if (at < 0)
        return -1;
    return at > now ? at - now : 0;
}

/* Tell the ranks below us who keeps a tensor waiting.  After DL_STALL_ABORT seconds
 * this is an error.
 */
static void control_report_late (struct control *k, double age, const char *text)
{
    if (k->e->stall_abort > 0 && age >= k->e->stall_abort) {
        packet_number (&k->down, DOWN_FAIL);
        packet_number (&k->down, ETIMEDOUT);
    } else {
        packet_number (&k->down, DOWN_TROUBLE);
    }
    packet_text (&k->down, text);
}

/* The ranks above us have not begun.  Tell those below. */
static void report_stall_here (struct control *k, const char *name, double age, uint64_t others)
{
    char text[256];
    size_t n = stall_waits (name, age, others, text, sizeof (text));

    snprintf (text + n, sizeof (text) - n, "rank %ld (%.30s)", k->tree.parent,
              mesh_host (k->e->channel->mesh, k->tree.parent));
    control_report_late (k, age, text);
}

static void report_stall (struct control *k, const struct engine_task *t, double age,
                          uint64_t others)
{
    if (k->root) {
        stall_report (k->stall, t->name->text, age, others, monotonic (), &k->down);
        return;
    }
    if (!k->heard) {
        report_stall_here (k, t->name->text, age, others);
        return;
    }
    packet_number (&k->up, UP_STALL);
    packet_text (&k->up, t->name->text);
    packet_real (&k->up, age);
    packet_number (&k->up, others);
}

/* Report a tensor that has been ready for too long. */
static void control_report_stall (struct control *k, double now)
{
    struct engine *e = k->e;

    pthread_mutex_lock (&e->lock);
    if (e->oldest && now >= next_report (k)) {
        k->stalled = now;
        report_stall (k, e->oldest, now - e->oldest->submitted, e->unanswered - 1);
    }
    pthread_mutex_unlock (&e->lock);
}

/* ---- from below ---- */

static int up_ready (struct control *k, size_t unit, struct packet *p)
{
    struct packet_run run = packet_take_ids (p);
    uint32_t id;

    (void)unit;
    while (packet_take_id (p, &run, &id))
        if (readiness_ready (k->readiness, id) < 0)
            return -1;
    return 0;
}

static int up_request (struct control *k, size_t unit, struct packet *p)
{
    uint64_t rank = packet_take_number (p);
    struct tensor *t = tensor_take (p);

    (void)unit;
    if (!t || rank >= (uint64_t)k->e->size) {
        tensor_free (t);
        return -1;
    }
    if (k->root)
        return coordinator_request (k->root, (long)rank, t);
    packet_number (&k->up, UP_REQUEST);
    packet_number (&k->up, rank);
    tensor_put (&k->up, t);
    tensor_free (t);
    return 0;
}

static int up_join (struct control *k, size_t unit, struct packet *p)
{
    uint64_t rank = packet_take_number (p);

    if (rank >= (uint64_t)k->e->size || readiness_join (k->readiness, unit) < 0)
        return -1;
    if (k->root)
        return coordinator_join (k->root, (long)rank);
    packet_number (&k->up, UP_JOIN);
    packet_number (&k->up, rank);
    return 0;
}

static int up_leave (struct control *k, size_t unit, struct packet *p)
{
    uint64_t rank = packet_take_number (p);

    (void)unit;
    if (rank >= (uint64_t)k->e->size)
        return -1;
    if (k->root) {
        coordinator_leave (k->root, (long)rank);
        return 0;
    }
    packet_number (&k->up, UP_LEAVE);
    packet_number (&k->up, rank);
    return 0;
}

static int up_stall (struct control *k, size_t unit, struct packet *p)
{
    const char *name = packet_take_text (p);
    double age = packet_take_real (p);
    uint64_t others = packet_take_number (p);

    (void)unit;
    if (k->root) {
        stall_report (k->stall, name, age, others, monotonic (), &k->down);
        return 0;
    }
    packet_number (&k->up, UP_STALL);
    packet_text (&k->up, name);
    packet_real (&k->up, age);
    packet_number (&k->up, others);
    return 0;
}

static int up_here (struct control *k, size_t unit, struct packet *p)
{
    uint64_t rank = packet_take_number (p);
    const char *name = packet_take_text (p);
    uint64_t here = packet_take_number (p);

    (void)unit;
    if (rank >= (uint64_t)k->e->size)
        return -1;
    if (k->root) {
        stall_answer (k->stall, (long)rank, name, here != 0);
        return 0;
    }
    packet_number (&k->up, UP_HERE);
    packet_number (&k->up, rank);
    packet_text (&k->up, name);
    packet_number (&k->up, here);
    return 0;
}

/* engine_fail() ends this thread, which then tells the others. */
static int up_fail (struct control *k, size_t unit, struct packet *p)
{
    int code = (int)packet_take_number (p);

    (void)unit;
    engine_fail (k->e, code, packet_take_text (p));
    return -1;
}

int control_up (struct control *k, size_t unit, struct packet *p)
{
    static int (*const take[]) (struct control *, size_t, struct packet *) = {
        [UP_READY] = up_ready, [UP_REQUEST] = up_request, [UP_JOIN] = up_join,
        [UP_LEAVE] = up_leave, [UP_STALL] = up_stall,     [UP_HERE] = up_here,
        [UP_FAIL] = up_fail,
    };

    while (packet_more (p)) {
        uint64_t what = packet_take_number (p);
        if (what < UP_READY || what > UP_FAIL || take[what](k, unit, p) < 0)
            return -1;
    }
    return p->bad ? -1 : 0;
}

static int take_counts (struct control *k, struct tensor *t, struct packet *p)
{
    if (t->what != SLURMDL_ALLGATHER)
        return 0;
    t->counts = calloc ((size_t)k->e->size, sizeof (*t->counts));
    for (long r = 0; r < k->e->size; r++) {
        size_t n = packet_take_number (p);
        if (t->counts)
            t->counts[r] = n;
    }
    return t->counts ? 0 : -1;
}

/* The caller holds the lock. */
static int learn_tensor (struct control *k, uint32_t id, struct tensor *t)
{
    struct name *n = name_find (k->e, t->name, true);

    if (!n || map_get (&k->ids, id) || map_set (&k->ids, id, n) < 0
        || readiness_assign (k->readiness, id) < 0)
        return -1;
    tensor_free (n->now);
    n->now = t;
    n->id = id;
    k->e->known++;
    return 0;
}

static int down_assign (struct control *k, struct packet *p)
{
    uint32_t id = (uint32_t)packet_take_number (p);
    struct tensor *t = tensor_take (p);
    int rv;

    if (!t)
        return -1;
    if (take_counts (k, t, p) < 0) {
        tensor_free (t);
        return -1;
    }
    pthread_mutex_lock (&k->e->lock);
    rv = learn_tensor (k, id, t);
    pthread_mutex_unlock (&k->e->lock);
    if (rv < 0)
        tensor_free (t);
    return rv;
}

static int down_drop (struct control *k, struct packet *p)
{
    uint32_t id = (uint32_t)packet_take_number (p);
    struct name *n = map_get (&k->ids, id);
    int rv = 0;

    if (!n)
        return 0;
    readiness_drop (k->readiness, id);
    map_set (&k->ids, id, NULL);
    pthread_mutex_lock (&k->e->lock);
    n->id = 0;
    k->e->known--;
    if (n->task)
        rv = control_ask_again (k, n->task);
    name_tidy (k->e, n);
    pthread_mutex_unlock (&k->e->lock);
    return rv;
}

static size_t count_ids (struct packet *p)
{
    struct packet copy = *p;
    struct packet_run run = packet_take_ids (&copy);
    size_t n = 0;
    uint32_t id;

    while (packet_take_id (&copy, &run, &id))
        n++;
    return n;
}

/* A rank that has joined has no task in the batch. */
static int fill_batch (struct control *k, struct engine_batch *b, struct packet *p)
{
    struct packet_run run = packet_take_ids (p);
    uint32_t id;

    for (; packet_take_id (p, &run, &id); b->n++) {
        struct name *n = map_get (&k->ids, id);
        struct engine_item *i = &b->items[b->n];
        if (!n)
            return -1;
        *i = (struct engine_item){ .name = n, .t = n->now, .task = n->task };
        n->parts++;
        n->now->refs++;
        if (i->task) {
            engine_answered (k->e, i->task);
        }
    }
    return p->bad ? -1 : 0;
}

static int down_batch (struct control *k, struct packet *p)
{
    struct engine *e = k->e;
    size_t n = count_ids (p);
    struct engine_batch *b = calloc (1, sizeof (*b) + n * sizeof (*b->items));
    int rv;

    if (!b)
        return -1;
    b->agreed = monotonic ();
    pthread_mutex_lock (&e->lock);
    if ((rv = fill_batch (k, b, p)) == 0) {
        *e->queue_tail = b;
        e->queue_tail = &b->next;
        e->batches++;
        e->stats.fused++;
        pthread_cond_signal (&e->work);
    } else {
        for (size_t i = 0; i < b->n; i++)
            tensor_free (b->items[i].t);
        free (b);
    }
    pthread_mutex_unlock (&e->lock);
    return rv;
}

static int down_error (struct control *k, struct packet *p)
{
    const char *name = packet_take_text (p);
    int code = (int)packet_take_number (p);
    const char *text = packet_take_text (p);
    struct name *n;

    pthread_mutex_lock (&k->e->lock);
    n = name_find (k->e, name, false);
    if (n && n->task && n->task->state != TASK_BATCH) {
        engine_answered (k->e, n->task);
        engine_finish (k->e, n->task, code, text);
    }
    pthread_mutex_unlock (&k->e->lock);
    return 0;
}

static int down_joined (struct control *k, struct packet *p)
{
    long last = (long)packet_take_number (p);

    readiness_rejoin (k->readiness);
    pthread_mutex_lock (&k->e->lock);
    k->e->last_to_join = last;
    k->e->joining = JOIN_NO;
    k->e->joins++;
    engine_wake_joined (k->e);
    pthread_mutex_unlock (&k->e->lock);
    return 0;
}

/* Answer for a rank.  One that has joined keeps nobody waiting. */
static void answer_question (struct control *k, long rank, const char *name, bool here)
{
    if (k->root) {
        stall_answer (k->stall, rank, name, here);
        return;
    }
    packet_number (&k->up, UP_HERE);
    packet_number (&k->up, (uint64_t)rank);
    packet_text (&k->up, name);
    packet_number (&k->up, here);
}

static int down_who (struct control *k, struct packet *p)
{
    struct engine *e = k->e;
    const char *name = packet_take_text (p);
    struct name *n;
    bool here;

    pthread_mutex_lock (&e->lock);
    n = name_find (e, name, false);
    here = (n && n->task) || e->joining == JOIN_SENT;
    pthread_mutex_unlock (&e->lock);
    answer_question (k, e->rank, name, here);
    for (size_t i = 0; i < k->tree.n; i++)
        if (k->children[i].expected)
            answer_question (k, k->tree.children[i], name, false);
    return 0;
}

static int down_trouble (struct control *k, struct packet *p)
{
    struct engine *e = k->e;
    const char *text = packet_take_text (p);

    pthread_mutex_lock (&e->lock);
    snprintf (e->trouble.text, sizeof (e->trouble.text), "%s", text);
    e->news = true;
    pthread_mutex_unlock (&e->lock);
    return 0;
}

/* A rank has left: tensors that it has not submitted before will never come. */
static int down_left (struct control *k, struct packet *p)
{
    struct engine *e = k->e;
    long rank = (long)packet_take_number (p);
    char text[256];

    if (rank < 0 || rank >= k->e->size)
        return -1;
    k->ended = true;
    snprintf (text, sizeof (text), "rank %ld (%s) has closed the communicator", rank,
              mesh_host (e->channel->mesh, rank));
    pthread_mutex_lock (&e->lock);
    e->left = true;
    if (!e->code)
        snprintf (e->why.text, sizeof (e->why.text), "%s", text);
    engine_fail_unanswered (e, ECONNRESET, text);
    engine_wake_joined (e);
    pthread_mutex_unlock (&e->lock);
    return 0;
}

static int down_fail (struct control *k, struct packet *p)
{
    int code = (int)packet_take_number (p);

    engine_fail (k->e, code, packet_take_text (p));
    return -1;
}

/* The packet needs no answer: its arrival is the message. */
static int down_here (struct control *k, struct packet *p)
{
    (void)k;
    (void)p;
    return 0;
}

int control_down (struct control *k, struct packet *p)
{
    static int (*const take[]) (struct control *, struct packet *) = {
        [DOWN_ASSIGN] = down_assign,   [DOWN_DROP] = down_drop,     [DOWN_BATCH] = down_batch,
        [DOWN_ERROR] = down_error,     [DOWN_JOINED] = down_joined, [DOWN_WHO] = down_who,
        [DOWN_TROUBLE] = down_trouble, [DOWN_LEFT] = down_left,     [DOWN_FAIL] = down_fail,
        [DOWN_HERE] = down_here,
    };

    while (packet_more (p)) {
        uint64_t what = packet_take_number (p);
        if (what < DOWN_ASSIGN || what > DOWN_HERE || take[what](k, p) < 0)
            return -1;
    }
    return p->bad ? -1 : 0;
}

static const double LOOK_SECONDS = 1; /* how often to check whether a rank has gone */

/* Send the new child a packet, so that it knows that we are here. */
static int welcome_child (struct control *k, size_t i, int fd, struct net_seal *seal)
{
    struct packet p = { NULL };
    int rv;

    packet_number (&p, DOWN_HERE);
    rv = connection_open (&k->children[i], fd, seal);
    if (rv == 0)
        rv = connection_send (&k->children[i], &p);
    packet_free (&p);
    k->absent--;
    return rv;
}

static int fail_control (struct control *k, const struct slurmdl_error *err)
{
    engine_fail (k->e, errno, err->text);
    return -1;
}

static int fail_silent_rank (struct control *k, long rank)
{
    struct slurmdl_error err = { "" };

    mesh_timed_out (k->e->channel->mesh, rank, &err);
    return fail_control (k, &err);
}

/* Accept children as they connect.  Returns -1 if one is gone or takes too long. */
static int control_accept_children (struct control *k, double now)
{
    bool over = now - k->begun > k->e->timeout;

    for (size_t i = 0; k->absent && i < k->tree.n; i++) {
        struct slurmdl_error err = { "" };
        long rank = k->tree.children[i];
        struct net_seal *seal = NULL;
        int fd;
        if (!k->children[i].expected)
            continue;
        fd = mesh_socket_now (k->e->channel->mesh, rank, &seal, &err);
        if (fd >= 0 ? welcome_child (k, i, fd, seal) < 0 : errno != EAGAIN)
            return fail_control (k, &err);
        if (fd < 0 && over)
            return fail_silent_rank (k, rank);
    }
    return !k->root && !k->heard && over ? fail_silent_rank (k, k->tree.parent) : 0;
}

/* Seconds until we have to check on ranks that have not connected, or -1 for never. */
static double absence_wait_seconds (const struct control *k)
{
    return k->absent || (!k->root && !k->heard) ? LOOK_SECONDS : -1;
}

/* Rank 0 stays this many batches ahead of its executor: one is running and another
 * is packed meanwhile.  Tensors that become ready later travel together.
 */
enum { AHEAD = 2, FAN = 32 };

static const double GOODBYE = 5; /* seconds to wait until everybody has read the goodbye */

static const char *rank_host (const void *arg, long rank)
{
    const struct engine *e = arg;

    return mesh_host (e->channel->mesh, rank);
}

/* ---- start ---- */

static int connect_to_rank (struct control *k, struct connection *w, long rank)
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

static int find_tree_place (struct control *k)
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
    k->root = coordinator_create (e->size, rank_host, e, &k->down);
    k->stall = stall_create (e->size, rank_host, e);
    return k->root && k->stall ? 0 : -1;
}

static int control_init (struct control *k)
{
    k->parent.fd = -1;
    if (find_tree_place (k) < 0 || make_relay (k) < 0 || make_root (k) < 0) {
        engine_fail (k->e, ENOMEM, "no memory for named tensors");
        return -1;
    }
    k->begun = monotonic ();
    return k->tree.parent >= 0 ? connect_to_rank (k, &k->parent, k->tree.parent) : 0;
}

/* ---- one round ---- */

static void control_lost_rank (struct control *k, long rank)
{
    char text[256];

    snprintf (text, sizeof (text), "rank %ld (%s) has gone", rank, rank_host (k->e, rank));
    engine_fail (k->e, ECONNRESET, text);
}

static void altered (struct control *k, long rank)
{
    char text[256];

    snprintf (text, sizeof (text),
              "a message from rank %ld (%s) was altered in transit (wrong MAC): connection closed",
              rank, rank_host (k->e, rank));
    engine_fail (k->e, EBADMSG, text);
}

static int send_packet_down (struct control *k, const struct packet *p)
{
    for (size_t i = 0; i < k->tree.n; i++)
        if (connection_send (&k->children[i], p) < 0) {
            control_lost_rank (k, k->tree.children[i]);
            return -1;
        }
    return 0;
}

/* Send the coordinator's decisions to all ranks.  Deliver them to this rank too,
 * which may add an answer.
 */
static int deliver_decisions (struct control *k)
{
    while (k->down.n) {
        struct packet now = k->down;
        int rv;
        memset (&k->down, 0, sizeof (k->down));
        if (now.bad)
            engine_fail (k->e, ENOMEM, "no memory for named tensors");
        rv = now.bad ? -1 : send_packet_down (k, &now);
        if (rv == 0)
            rv = control_down (k, &now);
        packet_free (&now);
        if (rv < 0)
            return -1;
    }
    return 0;
}

/* Report upwards the tensors that all units are ready for. */
static int pass_readiness_up (struct control *k)
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

static void send_decisions (struct control *k)
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

/* Whether to continue: there is more to send, or the executor already has room.  If
 * it has none, it wakes us later.
 */
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

/* Rank 0 collects readiness and decides.  Its decisions may lead to more. */
static int hear_and_decide (struct control *k, double now)
{
    look_at_stall (k, now);
    do {
        if (pass_readiness_up (k) < 0)
            return -1;
        send_decisions (k);
        if (deliver_decisions (k) < 0)
            return -1;
    } while (has_more (k));
    return 0;
}

static int send_packet_up (struct control *k)
{
    int rv = 0;

    if (pass_readiness_up (k) < 0)
        return -1;
    if (k->up.n && (rv = connection_send (&k->parent, &k->up)) < 0)
        control_lost_rank (k, k->tree.parent);
    packet_clear (&k->up);
    return rv;
}

static int hear_unit (struct control *k, size_t unit)
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
            rv = send_packet_down (k, &p);
            rv = rv < 0 ? rv : control_down (k, &p);
        }
        if (rv < 0)
            return -1;
    }
    if (w->altered)
        altered (k, from);
    else if (gone < 0 && !k->ended)
        control_lost_rank (k, from);
    return w->altered ? -1 : gone;
}

static size_t fill_poll (const struct control *k, struct pollfd *p)
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
    double wait = sooner (control_wait_seconds (k), absence_wait_seconds (k));

    return k->stall ? sooner (wait, stall_wait_seconds (k->stall, now)) : wait;
}

static int poll_seconds (struct pollfd *p, size_t n, double seconds)
{
    struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    return ppoll (p, n, seconds < 0 ? NULL : &t, NULL);
}

static int listen_to (struct control *k, struct pollfd *p, double seconds)
{
    size_t n = fill_poll (k, p);
    uint64_t count;

    if (poll_seconds (p, n + 1, seconds) <= 0)
        return 0;
    if (p[0].revents) {
        if (read (k->e->wake, &count, sizeof (count)) < 0)
            return 0;
        atomic_store (&k->e->awake, false);
    }
    for (size_t i = 1; i < n; i++) {
        struct connection *w = i > 1 ? &k->children[i - 2] : &k->parent;
        if (p[i].revents & POLLOUT)
            connection_flush (w); /* a failure shows in the next read */
        if (p[i].revents & ~POLLOUT && hear_unit (k, i - 1) < 0)
            return -1;
    }
    return 0;
}

/* Check on hosts ourselves: the kernel would notice much later, and not at all
 * while something is in flight.
 */
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
        control_lost_rank (k, rank);
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
        if (k->ended || control_accept_children (k, now) < 0 || control_ask (k) < 0
            || look_at_hosts (k, now) < 0)
            break;
        control_report_stall (k, now);
        if ((k->root ? hear_and_decide (k, now) : send_packet_up (k)) < 0)
            break;
        if (!k->root && deliver_decisions (k) < 0)
            break;
        helped = executor_help (k->e);
    }
}

/* ---- end ---- */

/* Tell the ranks above and below why we failed. */
static void spread_error (struct control *k)
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

/* Closing a socket with unread data also discards what the peer has not read yet,
 * so wait for the others to end too.
 */
static void goodbye (struct control *k, struct pollfd *p, double until)
{
    size_t n = fill_poll (k, p);
    size_t open = 0;

    for (size_t i = 1; i < n; i++) {
        open += p[i].fd >= 0;
        if (p[i].fd >= 0 && !(p[i].events & POLLOUT))
            shutdown (p[i].fd, SHUT_WR);
    }
    while (open && monotonic () < until) {
        p[0].fd = -1;
        if (poll_seconds (p, n, until - monotonic ()) <= 0)
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

static void release_control (struct control *k)
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

/* Let the executor finish its queue, or drop it after an error. */
static void control_end (struct control *k)
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
    if (control_init (&k) == 0 && (p = calloc (k.tree.n + 3, sizeof (*p))))
        exchange_packets (&k, p);
    if (!k.ended && !engine_code (k.e))
        engine_fail (k.e, ENOMEM, "no memory for named tensors");
    if (k.children && engine_code (k.e))
        spread_error (&k);
    control_end (&k);
    if (p)
        goodbye (&k, p, monotonic () + (engine_code (k.e) ? 1 : GOODBYE));
    free (p);
    release_control (&k);
    return NULL;
}
