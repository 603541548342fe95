/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of rank 0 to requests. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/comm/engine/control.h"

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

/* With the lock held. */
static int learn (struct control *k, uint32_t id, struct tensor *t)
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
    rv = learn (k, id, t);
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

/* A rank that has joined has no task. */
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

/* A rank that has joined keeps nobody waiting. */
static void answer (struct control *k, long rank, const char *name, bool here)
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
    answer (k, e->rank, name, here);
    for (size_t i = 0; i < k->tree.n; i++)
        if (k->children[i].expected)
            answer (k, k->tree.children[i], name, false);
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

/* What it has not submitted before will not come any more. */
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

/* That it has come is what it says. */
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
