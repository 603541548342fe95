/* SPDX-License-Identifier: Apache-2.0 */
/* Submit named tensors, wait for them and take their results. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/futex.h"
#include "runtime/comm/engine/engine.h"
#include "runtime/comm/reduce/reduce.h"

/* The next ticket of this process, over all communicators. */
static atomic_llong next_ticket = 1;

static bool is_real_type (enum slurmdl_type type)
{
    return type == SLURMDL_F32 || type == SLURMDL_F64;
}

static bool is_integer_type (enum slurmdl_type type)
{
    return type != SLURMDL_F16 && type != SLURMDL_BF16 && !is_real_type (type)
           && type != SLURMDL_C64 && type != SLURMDL_C128 && type != SLURMDL_F8_E4M3
           && type != SLURMDL_F8_E5M2;
}

static bool request_reduces (const struct slurmdl_request *r)
{
    return r->what == SLURMDL_ALLREDUCE || r->what == SLURMDL_REDUCE_SCATTER;
}

static bool in_rows (const struct slurmdl_request *r)
{
    return r->what == SLURMDL_ALLGATHER || r->what == SLURMDL_REDUCE_SCATTER;
}

static bool is_zero_width (const struct slurmdl_request *r)
{
    return in_rows (r) && r->row == SLURMDL_ZERO_WIDTH;
}

static bool scales (const struct slurmdl_request *r)
{
    return (r->prescale != 0 && r->prescale != 1) || (r->postscale != 0 && r->postscale != 1);
}

/* Returns the error in the request, or NULL. */
static const char *check_compression (const struct slurmdl_request *r)
{
    if (r->compression == SLURMDL_PLAIN)
        return NULL;
    if ((unsigned)r->compression > SLURMDL_AS_BF16)
        return "no such compression";
    return r->what != SLURMDL_ALLREDUCE ? "only an all-reduce can be compressed" : NULL;
}

static const char *check_reduction (const struct slurmdl_request *r)
{
    if ((unsigned)r->op > SLURMDL_PRODUCT || !reduce_defined (r->type, r->op))
        return "this operation is not defined for this type";
    if (scales (r) && is_integer_type (r->type))
        return "integers cannot be scaled";
    return NULL;
}

static const char *check_request (const struct engine *e, const struct slurmdl_request *r)
{
    if (!r->name || !*r->name)
        return "the name is missing";
    if ((unsigned)r->what > SLURMDL_REDUCE_SCATTER)
        return "no such collective";
    if (!slurmdl_type_size (r->type))
        return "no such element type";
    if (is_zero_width (r) && r->what != SLURMDL_ALLGATHER)
        return "only an all-gather can have rows of zero width";
    if (!r->in && r->n && !is_zero_width (r) && !(r->what == SLURMDL_BROADCAST && r->out))
        return "memory is NULL";
    if (in_rows (r) && r->row && !is_zero_width (r) && r->n % r->row)
        return "'n' must be a multiple of 'row'";
    if (r->ndims < 0 || r->ndims > SLURMDL_DIMS_MAX || (r->ndims && !r->dims))
        return "a shape must have 0 to 8 dimensions";
    if (r->what == SLURMDL_BROADCAST && (r->root < 0 || r->root >= e->size))
        return "the root is not a rank";
    if (r->group && !r->members)
        return "the number of members of the group is missing";
    if (!request_reduces (r) && scales (r))
        return "only a reduction can be scaled";
    if (request_reduces (r) && check_reduction (r))
        return check_reduction (r);
    return check_compression (r);
}

/* The location of a request's memory, and the mark of what a stream has to do first. */
struct memory_place {
    const struct memory_ops *in, *out; /* NULL: host memory */
    struct memory_mark *mark;
};

static const void *input_of (const struct slurmdl_request *r)
{
    return r->in && (r->n || !r->out) ? r->in : r->out;
}

static int find_memory_place (const struct slurmdl_request *r, struct memory_place *p,
                              struct slurmdl_error *err)
{
    const void *in = input_of (r);
    const struct memory_ops *ops;

    p->in = in ? memory_ops_of (in) : NULL;
    p->out = r->out == in ? p->in : r->out ? memory_ops_of (r->out) : NULL;
    p->mark = NULL;
    ops = p->in ? p->in : p->out;
    if (!ops || !ops->mark || (p->mark = ops->mark (p->in ? in : r->out, r->stream)))
        return 0;
    return errorf (err, "%.80s: its stream belongs to another device than its memory", r->name);
}

static void leave_place (struct memory_place *p)
{
    if (p->mark)
        (p->in ? p->in : p->out)->unmark (p->mark);
}

/* Set fields that do not matter to the same value on all ranks. */
static void normalize (const struct slurmdl_request *r, const struct memory_place *p,
                       struct tensor *t)
{
    *t = (struct tensor){ .what = r->what,
                          .type = r->type,
                          .n = r->n,
                          .row = 1,
                          .prescale = r->prescale != 0 ? r->prescale : 1,
                          .postscale = r->postscale != 0 ? r->postscale : 1,
                          .refs = 1 };
    if (request_reduces (r))
        t->op = r->op;
    if (r->what == SLURMDL_BROADCAST)
        t->root = r->root;
    if (in_rows (r) && r->row)
        t->row = is_zero_width (r) ? 0 : r->row;
    if (is_real_type (r->type))
        t->compression = r->compression;
    if (r->group)
        t->members = r->members;
    t->ndims = r->ndims;
    for (int i = r->what == SLURMDL_ALLGATHER; i < r->ndims; i++)
        t->dims[i] = r->dims[i];
    t->device = p->in && p->out;
}

static struct engine_task *task_make (struct engine *e, const struct slurmdl_request *r,
                                      struct memory_place *p)
{
    struct engine_task *t = e->spare;

    if (t)
        e->spare = t->next;
    else if (!(t = malloc (sizeof (*t))))
        return NULL;
    memset (t, 0, sizeof (*t));
    normalize (r, p, &t->t);
    t->in = r->in ? r->in : r->out;
    t->out = r->out;
    t->take = !r->out;
    /* reading the clock costs as much as the rest */
    t->submitted = e->fresh && !e->timeline ? e->fresh_since : monotonic ();
    if (r->group && !(t->t.group = strdup (r->group))) {
        task_free (e, t);
        return NULL;
    }
    t->memory = p->in ? p->in : p->out;
    t->mark = p->mark;
    p->mark = NULL;
    return t;
}

static void link_task (struct engine *e, struct engine_task *t)
{
    t->name->task = t;
    t->t.name = t->name->text;
    t->ticket = atomic_fetch_add (&next_ticket, 1);
    t->earlier = e->all;
    if (e->all)
        e->all->later = t;
    e->all = t;
    t->before = e->newest;
    *(e->newest ? &e->newest->after : &e->oldest) = t;
    e->newest = t;
    e->unanswered++;
    e->unfinished++;
    if (!e->fresh)
        e->fresh_since = t->submitted;
    *e->fresh_tail = t;
    e->fresh_tail = &t->next;
    e->nfresh++;
    e->fresh_bytes += tensor_weight (&t->t);
}

static void unlink_task (struct engine *e, struct engine_task *t)
{
    map_set (&e->tickets, (uint64_t)t->ticket, NULL);
    *(t->later ? &t->later->earlier : &e->all) = t->earlier;
    if (t->earlier)
        t->earlier->later = t->later;
}

/* The control thread sleeps until there is a task, then for a cycle, and no longer
 * once there is enough to do.
 */
static bool is_time_to_wake (const struct engine *e)
{
    return e->nfresh == 1 || e->fresh_bytes >= e->fusion || e->unanswered == e->known;
}

static int refuse_request (const struct engine *e, struct slurmdl_error *err)
{
    if (e->code || e->left) {
        errno = ENOTCONN;
        return errorf (err, "%s", e->why.text);
    }
    errno = e->closing ? ENOTCONN : EINVAL;
    return errorf (err, "%s",
                   e->closing ? "the communicator is being closed"
                              : "this rank has joined the others");
}

/* The task takes over the mark in 'p'. */
static int64_t submit_locked (struct engine *e, const struct slurmdl_request *r,
                              struct memory_place *p, struct slurmdl_error *err)
{
    struct name *name;
    struct engine_task *t;

    if (e->code || e->left || e->closing || e->joining != JOIN_NO)
        return refuse_request (e, err);
    if (!(name = name_find (e, r->name, true)))
        return errorf (err, "no memory for a tensor");
    if (name->task) {
        errno = EEXIST;
        return errorf (err, "%.80s is already in flight", r->name);
    }
    if (!(t = task_make (e, r, p))) {
        name_tidy (e, name);
        return errorf (err, "no memory for a tensor");
    }
    t->name = name;
    link_task (e, t);
    if (map_set (&e->tickets, (uint64_t)t->ticket, t) < 0)
        engine_fail_locked (e, ENOMEM, "no memory for a ticket");
    if (is_time_to_wake (e))
        engine_wake (e);
    return t->ticket;
}

static int64_t submit_request_locked (struct engine *e, const struct slurmdl_request *r,
                                      struct slurmdl_error *err)
{
    const char *wrong = check_request (e, r);
    struct memory_place place;
    int64_t ticket;
    int saved;

    if (wrong) {
        errno = EINVAL;
        return errorf (err, "%.80s: %s", r->name ? r->name : "", wrong);
    }
    if (find_memory_place (r, &place, err) < 0)
        return -1;
    pthread_mutex_lock (&e->lock);
    ticket = submit_locked (e, r, &place, err);
    pthread_mutex_unlock (&e->lock);
    saved = errno;
    leave_place (&place);
    errno = saved;
    return ticket;
}

int64_t slurmdl_submit (struct slurmdl_comm *c, const struct slurmdl_request *r,
                        struct slurmdl_error *err)
{
    struct engine *e = engine_enter (c, true, err);
    int64_t ticket;

    if (!e)
        return -1;
    ticket = submit_request_locked (e, r, err);
    engine_leave (e);
    return ticket;
}

static int unknown_ticket (int64_t ticket, struct slurmdl_error *err)
{
    bool old = ticket > 0 && ticket < atomic_load (&next_ticket);

    errno = old ? ECONNRESET : EINVAL;
    return errorf (err,
                   old ? "ticket %lld was released, or belongs to a broken communicator"
                       : "there is no ticket %lld",
                   (long long)ticket);
}

static struct engine_task *task_of (struct engine *e, int64_t ticket)
{
    return map_get (&e->tickets, (uint64_t)ticket);
}

int slurmdl_done (struct slurmdl_comm *c, int64_t ticket)
{
    struct engine *e = engine_enter (c, false, NULL);
    struct engine_task *t;
    int done = 1;

    if (!e)
        return 1;
    pthread_mutex_lock (&e->lock);
    if ((t = task_of (e, ticket)))
        done = atomic_load (&t->done) != 0;
    pthread_mutex_unlock (&e->lock);
    engine_leave (e);
    return done;
}

/* A program that waits submits nothing meanwhile, so do not wait for the end of the
 * cycle.  Returns with the lock held and the task done.
 */
static void wait_locked (struct engine *e, struct engine_task *t)
{
    if (!atomic_load (&t->done) && e->fresh && !e->hurry) {
        e->hurry = true;
        engine_wake (e);
    }
    while (!atomic_load (&t->done)) {
        t->awaited = true;
        pthread_mutex_unlock (&e->lock);
        futex_wait (&t->done, 0, -1);
        pthread_mutex_lock (&e->lock);
    }
}

static int wait_for_task (struct engine_task *t, struct slurmdl_error *err)
{
    if (!t->code)
        return 0;
    errno = t->code;
    return errorf (err, "%s", t->err.text);
}

/* Skip tasks whose results are still to be taken. */
static struct engine_task *next_of_all (const struct engine *e)
{
    struct engine_task *t = e->all;

    while (t && t->take && atomic_load (&t->done) && !t->code)
        t = t->earlier;
    return t;
}

static int wait_all (struct engine *e, struct slurmdl_error *err)
{
    struct engine_task *t;
    int code = 0;

    while ((t = next_of_all (e))) {
        wait_locked (e, t);
        if (t->take && !t->code)
            continue;
        if (wait_for_task (t, err) < 0 && !code)
            code = t->code;
        unlink_task (e, t);
        task_free (e, t);
    }
    errno = code;
    return code ? -1 : 0;
}

static int wait_one (struct engine *e, int64_t ticket, struct slurmdl_error *err)
{
    struct engine_task *t = task_of (e, ticket);
    int rv;

    if (!t)
        return unknown_ticket (ticket, err);
    wait_locked (e, t);
    rv = wait_for_task (t, err);
    unlink_task (e, t);
    task_free (e, t);
    return rv;
}

int slurmdl_wait (struct slurmdl_comm *c, int64_t ticket, struct slurmdl_error *err)
{
    struct engine *e = engine_enter (c, false, err);
    int saved;
    int rv;

    if (!e)
        return ticket ? unknown_ticket (ticket, err) : 0;
    pthread_mutex_lock (&e->lock);
    rv = ticket ? wait_one (e, ticket, err) : wait_all (e, err);
    saved = errno;
    pthread_mutex_unlock (&e->lock);
    engine_leave (e);
    errno = saved;
    return rv;
}

static void give_result (struct engine *e, struct engine_task *t, void **out, size_t *n,
                         size_t *counts)
{
    *out = t->result;
    *n = t->nresult;
    for (long r = 0; counts && r < e->size; r++)
        counts[r] = t->counts ? t->counts[r] : 0;
    t->result = NULL;
}

static int take_one (struct engine *e, int64_t ticket, void **out, size_t *n, size_t *counts,
                     struct slurmdl_error *err)
{
    struct engine_task *t = task_of (e, ticket);
    int rv;

    if (!t)
        return unknown_ticket (ticket, err);
    if (!t->take) {
        errno = EINVAL;
        return errorf (err, "the result is in the request's own memory");
    }
    wait_locked (e, t);
    rv = wait_for_task (t, err);
    if (rv == 0)
        give_result (e, t, out, n, counts);
    unlink_task (e, t);
    task_free (e, t);
    return rv;
}

int slurmdl_take (struct slurmdl_comm *c, int64_t ticket, void **out, size_t *n, size_t *counts,
                  struct slurmdl_error *err)
{
    struct engine *e = engine_enter (c, false, err);
    int saved;
    int rv;

    *out = NULL;
    *n = 0;
    if (!e)
        return unknown_ticket (ticket, err);
    pthread_mutex_lock (&e->lock);
    rv = take_one (e, ticket, out, n, counts, err);
    saved = errno;
    pthread_mutex_unlock (&e->lock);
    engine_leave (e);
    errno = saved;
    return rv;
}
