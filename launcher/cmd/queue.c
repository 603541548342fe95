/* SPDX-License-Identifier: Apache-2.0 */
/* The array tasks of an experiment that Slurm has, and those that are to end.
 */
#include "launcher/cmd/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/replay.h"
#include "launcher/sys/user.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"

enum { SLOTS_MAX = 1 << 16 };

/* More tasks than an event has room for need not be looked for. */
enum { TASKS_MAX = 1 << 20, UNSEEN_MAX = 1 << 13 };

int queue_add (struct queue *q, struct worker_slot slot)
{
    struct worker_slot *list = array_grow (q->list, (size_t)q->n, sizeof (*list));

    if (!list)
        return -1;
    q->list = list;
    list[q->n++] = slot;
    return 0;
}

static bool is_retired (const struct sweep *s, long job, long task)
{
    char slot[64];

    snprintf (slot, sizeof (slot), "%ld_%ld", job, task);
    if (sweep_retires (s, slot))
        return true;
    snprintf (slot, sizeof (slot), "%ld_%ld.0", job, task);
    return sweep_retires (s, slot);
}

static int add_tasks (struct queue *p, const struct sweep *s, const struct slurm_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const struct slurm_job *j = &jobs->list[i];
        if (j->task >= 0 && !is_retired (s, j->id, j->task)
            && queue_add (p,
                          (struct worker_slot){
                              .job = j->id,
                              .task = j->task,
                              .pending = !strcmp (j->state, "PENDING"),
                          })
                   < 0)
            return -1;
    }
    return 0;
}

static char *job_list (const struct sweep *s)
{
    size_t capacity = 1;
    char *text;

    for (size_t i = 0; i < s->nsubmits; i++)
        capacity += strlen (s->submits[i].job) + 1;
    if (!(text = calloc (1, capacity)))
        return NULL;
    for (size_t i = 0; i < s->nsubmits; i++) {
        strcat (text, i ? "," : "");
        strcat (text, s->submits[i].job);
    }
    return text;
}

int queue_find (struct queue *p, const struct sweep *s, struct slurmdl_error *err)
{
    char *names = job_list (s);
    struct slurm_jobs jobs;
    enum slurm_answer answer;
    int rv = 0;

    if (!names)
        return errorf (err, "out of memory");
    if (s->nsubmits > 0) {
        answer =
            slurm_jobs_ask (&(struct slurm_queue){ .jobs = names, .each_task = true }, &jobs, err);
        if (answer == SLURM_ANSWERED && add_tasks (p, s, &jobs) < 0)
            rv = errorf (err, "out of memory");
        else if (answer != SLURM_ANSWERED && answer != SLURM_NO_SUCH_JOB)
            rv = -1;
        slurm_jobs_free (&jobs);
    }
    free (names);
    return rv;
}

static size_t add_slots (char *buf, size_t n, const struct worker_slot *p, long lanes)
{
    size_t capacity = SLOTS_MAX - n;

    if (capacity < (size_t)lanes * 64)
        return n;
    if (p->local)
        return n + (size_t)sprintf (buf + n, "local-%ld-%ld ", p->job, p->task);
    if (lanes == 1)
        return n + (size_t)sprintf (buf + n, "%ld_%ld ", p->job, p->task);
    for (long i = 0; i < lanes; i++)
        n += (size_t)sprintf (buf + n, "%ld_%ld.%ld ", p->job, p->task, i);
    return n;
}

int queue_retire (struct sweep *s, long workers, const struct queue *p, long n,
                  struct slurmdl_error *err)
{
    char *slots = calloc (1, SLOTS_MAX);
    size_t len = 0;
    int rv;

    if (!slots)
        return errorf (err, "out of memory");
    for (long i = 0; i < n; i++)
        len = add_slots (slots, len, &p->list[i], (long)s->exp->lanes);
    if (len)
        slots[len - 1] = '\0';
    rv = sweep_insist (s,
                       (struct event){ .op = EVENT_SCALE,
                                       .by = user_name (),
                                       .workers = workers,
                                       .slots = len ? slots : NULL },
                       NULL, NULL, err);
    free (slots);
    return rv;
}

static bool has (const struct queue *q, long job, long task)
{
    for (long i = 0; i < q->n; i++)
        if (q->list[i].job == job && q->list[i].task == task)
            return true;
    return false;
}

/* A worker of this task is at work, or may be. */
static bool is_at_work (const struct peer_info *list, long n, long job, long task)
{
    char slot[64];
    size_t len = (size_t)snprintf (slot, sizeof (slot), "%ld_%ld", job, task);

    for (long i = 0; i < n; i++)
        if (!list[i].gone && !strncmp (list[i].slot, slot, len) && strchr (".", list[i].slot[len]))
            return true;
    return false;
}

int queue_retire_unseen (struct sweep *s, const struct queue *seen, size_t nsubmits,
                         struct slurmdl_error *err)
{
    long workers = s->wanted ? s->wanted : (long)s->exp->workers;
    struct peer_info *peers = NULL;
    struct queue unseen = { 0 };
    long n = peer_list (s->dir, &peers, err);
    int rv = n < 0 ? -1 : 0;

    for (size_t i = 0; i < nsubmits && rv == 0; i++) {
        const struct submit *a = &s->submits[i];
        long job = strtol (a->job, NULL, 10);
        /* whoever has put it: an array is no longer than that */
        long last = a->last < TASKS_MAX ? a->last : TASKS_MAX;
        for (long task = a->first > 0 ? a->first : 1;
             task <= last && rv == 0 && unseen.n < UNSEEN_MAX; task++)
            if (!has (seen, job, task) && !is_retired (s, job, task)
                && !is_at_work (peers, n, job, task))
                rv = queue_add (&unseen, (struct worker_slot){ .job = job, .task = task });
    }
    if (rv == 0 && unseen.n > 0)
        rv = queue_retire (s, workers, &unseen, unseen.n, err);
    free (unseen.list);
    free (peers);
    return rv;
}
