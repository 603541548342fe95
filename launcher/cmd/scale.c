/* SPDX-License-Identifier: Apache-2.0 */
/* dl scale, and the array tasks that an experiment has in Slurm's queue. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/options.h"
#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/job/job.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "launcher/worker/worker.h"
#include "runtime/base/environment.h"
#include "runtime/base/error.h"

enum { SLOTS_MAX = 1 << 16 };

/* An event has no room for more tasks than UNSEEN_MAX. */
enum { TASKS_MAX = 1 << 20, UNSEEN_MAX = 1 << 13 };

static void queue_add (struct queue *q, struct worker_slot slot)
{
    XGROW (q->list, (size_t)q->n);
    q->list[q->n++] = slot;
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

/* Whether the job is one of dl job, which is not an array.  A heterogeneous job counts
 * as its first component.  The job that this process runs in does not count, because
 * nothing can wait for itself.
 */
static bool is_lone_job (const struct sweep *s, const struct slurm_job *j)
{
    bool found = false;
    char name[32];

    snprintf (name, sizeof (name), "%ld", j->id);
    for (size_t i = 0; i < s->nsubmits; i++)
        found |= !strcmp (s->submits[i].job, name);
    return j->task < 0 && found && strcmp (environment_text ("SLURM_JOB_ID", ""), name) != 0;
}

static void add_tasks (struct queue *p, const struct sweep *s, const struct slurm_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const struct slurm_job *j = &jobs->list[i];
        if ((j->task >= 0 && !is_retired (s, j->id, j->task)) || is_lone_job (s, j))
            queue_add (p, (struct worker_slot){ .job = j->id,
                                                .task = j->task,
                                                .pending = !strcmp (j->state, "PENDING") });
    }
}

/* "12,17" */
static char *submitted_jobs_text (const struct sweep *s)
{
    char *text;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    for (size_t i = 0; i < s->nsubmits; i++)
        fprintf (f, "%s%s", i ? "," : "", s->submits[i].job);
    xclose_memstream (f);
    return text;
}

int queue_find (struct queue *p, const struct sweep *s, struct slurmdl_error *err)
{
    char *names;
    struct slurm_jobs jobs;
    enum slurm_answer answer;

    if (s->nsubmits == 0)
        return 0;
    names = submitted_jobs_text (s);
    answer = slurm_jobs_ask (&(struct slurm_queue){ .jobs = names, .each_task = true }, &jobs, err);
    if (answer == SLURM_ANSWERED)
        add_tasks (p, s, &jobs);
    slurm_jobs_free (&jobs);
    free (names);
    return answer == SLURM_ANSWERED || answer == SLURM_NO_SUCH_JOB ? 0 : -1;
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

/* Publish the requested number of workers and tell the first 'n' slots in 'p' to end.
 */
static int queue_retire (struct sweep *s, long workers, const struct queue *p, long n,
                         struct slurmdl_error *err)
{
    char *slots = xcalloc (1, SLOTS_MAX);
    size_t len = 0;
    int rv;

    for (long i = 0; i < n; i++)
        len = add_slots (slots, len, &p->list[i], (long)s->exp->resources->lanes);
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

static bool queue_has (const struct queue *q, long job, long task)
{
    for (long i = 0; i < q->n; i++)
        if (q->list[i].job == job && q->list[i].task == task)
            return true;
    return false;
}

/* Whether a worker of this task may be active. */
static bool slot_is_at_work (const struct peer_info *list, long n, long job, long task)
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
    long workers = s->wanted ? s->wanted : (long)s->exp->resources->workers;
    struct peer_info *peers = NULL;
    struct queue unseen = { 0 };
    long n = peer_list (s->dir, &peers, err);
    int rv = n < 0 ? -1 : 0;

    for (size_t i = 0; i < nsubmits && rv == 0; i++) {
        const struct submit *a = &s->submits[i];
        long job = strtol (a->job, NULL, 10);
        /* the log may contain any number, but no array is longer than this */
        long last = a->last < TASKS_MAX ? a->last : TASKS_MAX;
        for (long task = a->first > 0 ? a->first : 1; task <= last && unseen.n < UNSEEN_MAX; task++)
            if (!queue_has (seen, job, task) && !is_retired (s, job, task)
                && !slot_is_at_work (peers, n, job, task))
                queue_add (&unseen, (struct worker_slot){ .job = job, .task = task });
    }
    if (rv == 0 && unseen.n > 0)
        rv = queue_retire (s, workers, &unseen, unseen.n, err);
    free (unseen.list);
    free (peers);
    return rv;
}

/* ---- the command ---- */

enum { TEXT_MAX = 1 << 12 };

static int find_local (struct queue *p, const struct sweep *s, struct slurmdl_error *err)
{
    struct peer_info *list;
    long n = peer_list (s->dir, &list, err);

    for (long i = 0; i < n; i++) {
        struct worker_slot place = { .local = true };
        if (!list[i].gone && list[i].here
            && sscanf (list[i].slot, "local-%ld-%ld", &place.job, &place.task) == 2
            && !sweep_retires (s, list[i].slot))
            queue_add (p, place);
    }
    free (list);
    return n < 0 ? -1 : 0;
}

/* Retire pending tasks first, then those with the highest numbers. */
static int goes_first (const void *a, const void *b)
{
    const struct worker_slot *x = a;
    const struct worker_slot *y = b;

    if (x->pending != y->pending)
        return x->pending ? -1 : 1;
    if (x->job != y->job)
        return x->job > y->job ? -1 : 1;
    return x->task > y->task ? -1 : x->task < y->task;
}

/* Others can write to the log, which could name any job of this user. */
static bool may_cancel (const struct sweep *s, const struct worker_slot *p)
{
    char job[32];

    snprintf (job, sizeof (job), "%ld", p->job);
    return p->pending && trust_has_job (s, job);
}

/* Cancel only pending tasks.  A task that has started in the meantime ends by itself.
 */
static void cancel_pending (const struct sweep *s, const struct queue *p, long n)
{
    struct slurmdl_error err = { "" };
    char **tasks = NULL;

    for (long i = 0; i < n; i++)
        if (may_cancel (s, &p->list[i]))
            strings_addf (&tasks, "%ld_%ld", p->list[i].job, p->list[i].task);
    if (slurm_cancel (tasks, "--state=PENDING", &err) < 0)
        complain ("%s", err.text);
    strings_free (tasks);
}

static int add_workers (struct sweep *s, const struct command_line *line, long workers)
{
    struct slurmdl_error err = { "" };
    const struct scale_options *opt = line->options;
    struct executor x;
    int rv = ask_trust (s, opt->trust);

    if (rv)
        return rv;
    executor_open (&x, s, false, workers);
    if ((rv = x.ops->start (&x, &err)) < 0)
        complain ("%s", err.text);
    else
        printf ("%s: %ld more worker%s (job %s)\n", s->dir, x.granted, x.granted == 1 ? "" : "s",
                x.job);
    x.ops->close (&x);
    return rv < 0 ? EXIT_SLURM : EXIT_OK;
}

static int scale_to (struct sweep *s, const struct command_line *line, struct queue *p,
                     long workers)
{
    struct slurmdl_error err = { "" };
    bool local = p->n > 0;
    long units, fewer;

    if (!local && queue_find (p, s, &err) < 0)
        return fail_on (s, &err);
    units = local ? workers : executor_tasks (s->exp, workers);
    fewer = p->n > units ? p->n - units : 0;
    if (p->n)
        qsort (p->list, (size_t)p->n, sizeof (*p->list), goes_first);
    if (queue_retire (s, workers, p, fewer, &err) < 0)
        return fail_on (s, &err);
    cancel_pending (s, p, fewer);
    if (!local && units > p->n)
        return add_workers (s, line, (units - p->n) * (long)s->exp->resources->lanes);
    printf ("%s: %ld worker%s\n", s->dir, workers, workers == 1 ? "" : "s");
    return EXIT_OK;
}

/* Whether the argument names a run of dl elastic, directly or below --dir. */
static bool find_elastic (const struct command_line *line, char *dir, size_t size)
{
    if (line->nargs < 2)
        return false;
    snprintf (dir, size, "%s", line->args[1]);
    if (elastic_is_run (dir))
        return true;
    snprintf (dir, size, "%s/%s", line->dir, line->args[1]);
    return elastic_is_run (dir);
}

static int scale_elastic (const char *dir, long nodes)
{
    struct slurmdl_error err = { "" };
    enum elastic_scaling r = elastic_scale (dir, nodes, &err);

    if (r == SCALE_ERROR)
        return fail (&err);
    printf ("%s: %ld node%s%s\n", dir, nodes, nodes == 1 ? "" : "s",
            r == SCALE_SAME ? ", as before" : "");
    return EXIT_OK;
}

/* Whether the argument names a run of dl elastic whose directory is gone. */
static bool was_elastic (const struct command_line *line)
{
    const char *name = line->nargs > 1 ? line->args[1] : "";
    const char *slash = strrchr (name, '/');
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/%s", line->dir, name);
    return !strncmp (slash ? slash + 1 : name, "elastic.", 8) && access (name, F_OK) != 0
           && access (dir, F_OK) != 0;
}

int cmd_scale (const struct command_line *line)
{
    char dir[PATH_MAX];
    struct slurmdl_error err = { "" };
    struct queue places = { 0 };
    struct sweep *s;
    char *end;
    long workers = strtol (line->args[0], &end, 10);
    int rv;

    if (*end || end == line->args[0] || workers < 1 || workers > WORKERS_MAX) {
        complain ("scale: '%s' is not a number of workers from 1 to %d", line->args[0],
                  WORKERS_MAX);
        return EXIT_USAGE;
    }
    if (find_elastic (line, dir, sizeof (dir)))
        return scale_elastic (dir, workers);
    if (was_elastic (line)) {
        complain ("no run of dl elastic %s in %s; it has ended, or use --dir", line->args[1],
                  line->dir);
        return EXIT_NOT_FOUND;
    }
    if ((rv = open_experiment (line, line->args[1], &s)))
        return rv;
    if (s->state != SWEEP_RUNNING) {
        complain ("%s is %s: there is nothing to scale", s->dir, sweep_state_name (s->state));
        rv = EXIT_USAGE;
    } else if (find_local (&places, s, &err) < 0)
        rv = fail_on (s, &err);
    else
        rv = scale_to (s, line, &places, workers);
    free (places.list);
    sweep_close (s);
    return rv;
}
