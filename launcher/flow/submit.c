/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs for the steps of a flow, which wait for each other by dependencies. */
#include "launcher/flow/submit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/flow/jobs.h"
#include "launcher/flow/step.h"
#include "runtime/base/error.h"

/* ---- all steps ---- */

struct pass {
    const struct flow_run *r;
    bool again;
    struct flow_queue q;
    long *jobs;     /* of each step, what others wait for; 0: nothing */
    bool *fresh;    /* submitted now */
    bool *deferred; /* its tasks are not known yet, or those before it */
    long submitted;
    struct slurmdl_error *err;
};

/* The newest start.  Of a new run there are none but those of a job that
 * submits the rest meanwhile, which are this one's.
 */
static long last_start (const struct pass *p, const struct flow_step *s)
{
    return p->again ? flow_last (p->r, s, -1, "intent") : 0;
}

/* The job of the newest start; one that was submitted, and whose number nobody
 * could note any more, Slurm knows by its token.
 */
static long find_job (struct pass *p, const struct flow_step *s, long n)
{
    long id = flow_job_of (p->r, s, n);
    char token[160];

    flow_job_token (token, p->r, s, n);
    for (size_t i = 0; id == 0 && n > 0 && i < p->q.n; i++)
        if (!strcmp (p->q.list[i].token, token)) {
            id = p->q.list[i].id;
            flow_note_job (p->r, s, n, id, NULL);
        }
    return id > 0 || n == 0 ? id : flow_job_to_come (p->r, s, n);
}

/* Whether Slurm has it, and whether all of it waits.  One that is newer than
 * what is known of the queue came after that was asked.
 */
static bool is_active (struct pass *p, long id, bool *pending)
{
    bool active = false;

    *pending = true;
    if (id > p->q.highest && id > 0) {
        free (p->q.list);
        if (flow_queue_read (p->r, &p->q, p->err) < 0)
            return false;
    }
    for (size_t i = 0; i < p->q.n; i++)
        if (p->q.list[i].id == id) {
            active = true;
            *pending &= p->q.list[i].pending;
        }
    return active;
}

static bool is_control (const struct pass *p, const struct flow_step *s, long n)
{
    json_t *intent = n > 0 ? flow_record (p->r, s, -1, "intent", n) : NULL;
    const char *mode = json_string_value (json_object_get (intent, "mode"));
    bool is = mode && !strcmp (mode, "submit");

    json_decref (intent);
    return is;
}

/* "afterok:12:13,afterany:14" */
static void add_dependencies (const struct pass *p, const struct flow_step *s, FILE *o)
{
    static const char *const words[] = { "afterok", "afterany", "aftercorr" };

    for (int wait = AFTER_OK; wait <= AFTER_EACH; wait++) {
        bool first = true;
        for (size_t i = 0; i < s->nlinks; i++) {
            const struct flow_link *l = &s->links[i];
            enum flow_wait how = l->wait;
            /* an array of the rest has no task for each of this one's */
            if (how == AFTER_EACH && (p->again || !p->fresh[l->step]))
                how = AFTER_OK;
            if (p->jobs[l->step] == 0 || how != (enum flow_wait)wait)
                continue;
            if (first)
                fprintf (o, "%s%s", ftell (o) > 0 ? "," : "", words[wait]);
            fprintf (o, ":%ld", p->jobs[l->step]);
            first = false;
        }
    }
}

/* Those of all others, "afterany:12:13"; and the list of them. */
static json_t *add_all (const struct pass *p, FILE *o)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < p->r->flow->n; i++)
        if (!p->r->flow->steps[i].on_exit && p->jobs[i]) {
            fprintf (o, "%s:%ld", ftell (o) > 0 ? "" : "afterany", p->jobs[i]);
            json_array_append_new (list, json_integer (p->jobs[i]));
        }
    return list;
}

/* "0-4,7": the tasks without a result. */
static char *tasks_left (const struct pass *p, const struct flow_step *s)
{
    long width = flow_width (p->r, s);
    char *text = NULL;
    size_t size;
    FILE *o = open_memstream (&text, &size);
    long from = -1;

    for (long i = 0; o && i <= width; i++) {
        bool left = i < width && flow_task_state (p->r, s, i, NULL) < TASK_SKIPPED;
        if (left && from < 0)
            from = i;
        if (left || from < 0)
            continue;
        fprintf (o, "%s%ld", ftell (o) > 0 ? "," : "", from);
        if (i - 1 > from)
            fprintf (o, "-%ld", i - 1);
        from = -1;
    }
    if (o)
        fclose (o);
    return text;
}

static int submit_step (struct pass *p, const struct flow_step *s, long n)
{
    size_t k = flow_step_number (p->r->flow, s);
    bool known = flow_width (p->r, s) >= 0;
    struct flow_request q = { .mode = known ? "step" : "submit" };
    char *dependency = NULL, *array = NULL;
    size_t size;
    FILE *o = open_memstream (&dependency, &size);
    long id;

    if (!o)
        return errorf (p->err, "out of memory");
    if (s->on_exit)
        q.jobs = add_all (p, o);
    else
        add_dependencies (p, s, o);
    fclose (o);
    q.dependency = dependency;
    if (known && s->foreach)
        q.array = array = tasks_left (p, s);
    id = flow_submit_once (p->r, s, n, &q, p->err);
    free (dependency);
    free (array);
    if (id < 0)
        return -1;
    p->jobs[k] = id;
    p->fresh[k] = true;
    p->submitted++;
    return 0;
}

static void cancel (const struct pass *p, long id)
{
    struct flow_job j = { .id = id };
    struct flow_queue q = { .list = &j, .n = 1 };

    (void)p;
    flow_cancel (&q, NULL);
}

/* One whose job still waits, for another one that is no longer to come, gets a
 * new one, too.
 */
static int pass_step (struct pass *p, const struct flow_step *s)
{
    size_t k = flow_step_number (p->r->flow, s);
    long last = last_start (p, s);
    long id = p->again ? find_job (p, s, last) : 0;
    bool before = false, ended = true, pending, known;
    bool active = id > 0 && is_active (p, id, &pending);

    for (size_t i = 0; i < s->nlinks; i++) {
        before |= p->fresh[s->links[i].step];
        ended &= p->jobs[s->links[i].step] == 0;
        if (p->deferred[s->links[i].step])
            p->deferred[k] = true;
    }
    known = flow_width (p->r, s) >= 0;
    if (ended && known && !p->deferred[k] && !active && flow_settle_step (p->r, s))
        return 0;
    if (p->deferred[k] || flow_is_done (p->r, s, NULL))
        return 0;
    p->deferred[k] = !known;
    if (active && is_control (p, s, last) && known)
        active = false;
    if (active && !(before && pending)) {
        p->jobs[k] = id;
        return 0;
    }
    if (active)
        cancel (p, id);
    return submit_step (p, s, last + 1);
}

/* Where nothing was run there is nothing to tell. */
static bool nothing_ran (const struct pass *p)
{
    const struct flow *f = p->r->flow;

    for (size_t i = 0; i < f->n; i++) {
        long counts[TASK_OK + 1];
        if (f->steps[i].on_exit)
            continue;
        flow_count (p->r, &f->steps[i], counts);
        if (p->jobs[i] || counts[TASK_OK] || counts[TASK_FAILED] || counts[TASK_RUNNING])
            return false;
    }
    return true;
}

static int pass_exit (struct pass *p, const struct flow_step *s)
{
    long last = last_start (p, s);
    long id = p->again ? find_job (p, s, last) : 0;
    bool pending;

    if (flow_is_done (p->r, s, NULL) && p->submitted == 0)
        return 0;
    if (s->cache && nothing_ran (p)) {
        for (long i = 0; i < flow_width (p->r, s); i++)
            flow_put_skipped (p->r, s, i, p->err);
        return 0;
    }
    if (id > 0 && is_active (p, id, &pending))
        return 0; /* it looks for others when it begins */
    return submit_step (p, s, last + 1);
}

static int pass_all (struct pass *p)
{
    const struct flow *f = p->r->flow;

    if (p->again && flow_queue_read (p->r, &p->q, p->err) < 0)
        return -1;
    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[f->order[i]];
        if ((s->on_exit ? pass_exit (p, s) : pass_step (p, s)) < 0)
            return -1;
    }
    return 0;
}

long flow_submit (const struct flow_run *r, bool again, struct slurmdl_error *err)
{
    size_t n = r->flow->n;
    struct pass p = { .r = r, .again = again, .err = err };
    int rv = -1;

    p.jobs = calloc (n, sizeof (*p.jobs));
    p.fresh = calloc (n, sizeof (*p.fresh));
    p.deferred = calloc (n, sizeof (*p.deferred));
    if (p.jobs && p.fresh && p.deferred)
        rv = pass_all (&p);
    free (p.jobs);
    free (p.fresh);
    free (p.deferred);
    free (p.q.list);
    return rv < 0 ? -1 : p.submitted;
}

/* ---- a step with on_exit ---- */

static bool has (const json_t *list, long id)
{
    size_t i;
    json_t *v;

    json_array_foreach (list, i, v)
        if (json_integer_value (v) == id)
            return true;
    return false;
}

int flow_exit_again (const struct flow_run *r, const struct flow_step *s, long start,
                     struct slurmdl_error *err)
{
    json_t *intent = flow_record (r, s, -1, "intent", start);
    const json_t *list = json_object_get (intent, "jobs");
    size_t n = r->flow->n;
    struct pass p = { .r = r, .err = err };
    bool more = false;
    int rv = 0;

    p.jobs = calloc (n, sizeof (*p.jobs));
    p.fresh = calloc (n, sizeof (*p.fresh));
    for (size_t i = 0; p.jobs && i < n; i++) {
        const struct flow_step *to = &r->flow->steps[i];
        if (to->on_exit)
            continue;
        p.jobs[i] = flow_job_of (r, to, flow_last (r, to, -1, "job"));
        more |= p.jobs[i] > 0 && !has (list, p.jobs[i]);
    }
    if (more && p.fresh)
        rv = submit_step (&p, s, start + 1) < 0 ? -1 : 1;
    json_decref (intent);
    free (p.jobs);
    free (p.fresh);
    return rv;
}
