/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of this rank and of those below it, on their way to rank 0. */
#include <errno.h>
#include <stdio.h>

#include "runtime/base/clock.h"
#include "runtime/comm/engine/control.h"

static const double NEVER = 1e9, LOOK = 2; /* seconds */

/* Whether the number stands for what this rank wants now. */
static bool is_known (const struct control *k, const struct engine_task *t)
{
    const struct tensor *now = t->name->now;

    if (!t->name->id || !tensor_agrees (now, &t->t))
        return false;
    return now->what != SLURMDL_ALLGATHER || now->counts[k->e->rank] == t->t.n;
}

static int describe (struct control *k, struct engine_task *t)
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

static int ask (struct control *k, struct engine_task *t)
{
    if (!is_known (k, t))
        return describe (k, t);
    t->state = TASK_BIT;
    return readiness_ready (k->readiness, t->name->id);
}

int control_ask_again (struct control *k, struct engine_task *t)
{
    return t->state == TASK_BIT ? describe (k, t) : 0;
}

static bool is_due (const struct engine *e, double now)
{
    return e->hurry || e->joining == JOIN_ASKED || e->leave || e->fresh_bytes >= e->fusion
           || e->unanswered == e->known || now >= e->fresh_since + e->cycle;
}

/* With the lock held. */
static int ask_fresh (struct control *k)
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
        if (ask (k, t) < 0)
            return -1;
        *(t->state == TASK_BIT ? &e->stats.hits : &e->stats.negotiated) += 1;
    }
    return 0;
}

static int say_join (struct control *k)
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

static void say_leave (struct control *k)
{
    k->told = true;
    if (k->root) {
        coordinator_leave (k->root, 0);
        return;
    }
    packet_number (&k->up, UP_LEAVE);
    packet_number (&k->up, (uint64_t)k->e->rank);
}

int control_ask (struct control *k)
{
    struct engine *e = k->e;
    int rv = 0;

    pthread_mutex_lock (&e->lock);
    if (e->fresh && is_due (e, monotonic ()))
        rv = ask_fresh (k);
    if (rv == 0 && e->joining == JOIN_ASKED && !e->unanswered)
        rv = say_join (k);
    if (rv == 0 && e->leave && !e->code && !k->told)
        say_leave (k);
    pthread_mutex_unlock (&e->lock);
    return rv;
}

/* When it is told again that something waits: then, and when it is over. */
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

bool control_waits (const struct control *k)
{
    bool rv;

    pthread_mutex_lock (&k->e->lock);
    rv = k->e->oldest || k->e->joining != JOIN_NO;
    pthread_mutex_unlock (&k->e->lock);
    return rv;
}

double control_wait_seconds (const struct control *k)
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

void control_report_late (struct control *k, double age, const char *text)
{
    if (k->e->stall_abort > 0 && age >= k->e->stall_abort) {
        packet_number (&k->down, DOWN_FAIL);
        packet_number (&k->down, ETIMEDOUT);
    } else {
        packet_number (&k->down, DOWN_TROUBLE);
    }
    packet_text (&k->down, text);
}

/* Above us nobody has begun: those below are told. */
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

void control_report_stall (struct control *k, double now)
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

/* The others hear it from engine_fail(), after which this thread ends. */
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
