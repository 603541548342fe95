/* SPDX-License-Identifier: Apache-2.0 */
/* Submit the jobs of a flow, which wait for each other by Slurm's dependencies. */
#include "launcher/config/experiment.h"
#include "launcher/flow/run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/worker/worker.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/process_id.h"

enum { OTHERS_WAIT = 60 };

/* The arguments are DL MODE FLOW PIN STEP START.  A step that fails ends the job; only dl itself,
 * killed by a signal, is restarted.
 */
char *flow_job_script (void)
{
    return slurm_script_text (&(struct slurm_script){
        .comment = "job.sh DL MODE FLOW PIN STEP START: a job of a flow (dl flow).",
        .variables = "out=$3/steps\n",
        .log = "$5.$job.log",
        .setup = "",
        .command = "run \"$1\" flow \"$2\" -- \"$3\" \"$4\" \"$5\" \"$6\" "
                   "\"${SLURM_ARRAY_TASK_ID:-0}\"",
        .cases = "    134 | 135 | 136 | 137 | 139) ;;\n"
                 "    *) exit $status ;;\n" });
}

/* ---- what Slurm has ---- */

static const char *flow_id (const struct flow_run *r)
{
    const char *id = json_string_value (json_object_get (r->about, "id"));

    return id ? id : "";
}

static void flow_job_token (char token[160], const struct flow_run *r, const struct flow_step *s,
                            long n)
{
    snprintf (token, 160, "dl-flow %.20s %s %ld", flow_id (r), s->name, n);
}

bool flow_job_is_of (const struct slurm_job *j, const struct flow_run *r, const struct flow_step *s)
{
    char token[160];

    flow_job_token (token, r, s, 0);
    return !strncmp (j->comment, token, strlen (token) - 1);
}

int flow_queue_read (const struct flow_run *r, struct flow_queue *q, struct slurmdl_error *err)
{
    struct slurm_jobs *jobs = &q->jobs;
    char mine[64];
    size_t n = 0;
    int rv;

    *q = (struct flow_queue){ .highest = 0 };
    snprintf (mine, sizeof (mine), "dl-flow %.20s ", flow_id (r));
    rv = slurm_jobs_ask (&(struct slurm_queue){ 0 }, jobs, err) == SLURM_ANSWERED ? 0 : -1;
    for (size_t i = 0; i < jobs->n; i++) {
        q->highest = jobs->list[i].id > q->highest ? jobs->list[i].id : q->highest;
        if (!strncmp (jobs->list[i].comment, mine, strlen (mine)))
            jobs->list[n++] = jobs->list[i];
    }
    jobs->n = n;
    return rv;
}

int flow_cancel (const struct flow_queue *q, struct slurmdl_error *err)
{
    char **jobs = NULL;
    int rv;

    for (size_t i = 0; i < q->jobs.n; i++)
        strings_addf (&jobs, "%ld", q->jobs.list[i].id);
    rv = slurm_cancel (jobs, NULL, err);
    strings_free (jobs);
    return rv;
}

/* ---- one job, once ---- */

struct event flow_start_event (const struct flow_step *s, long n, const char *mode,
                               char host[FLOW_HOST_SIZE])
{
    pid_t pid = getpid ();

    memset (host, 0, FLOW_HOST_SIZE);
    gethostname (host, FLOW_HOST_SIZE - 1);
    return (struct event){
        .op = EVENT_START,
        .step = s->name,
        .start = n,
        .mode = mode,
        .host = host,
        .pid = pid,
        .began = (int64_t)process_start ("/proc", pid),
    };
}

/* Whether the process that announced a start may still submit its job. */
static bool start_is_in_progress (const struct flow_start *start)
{
    return start && flow_process (start->host, start->pid, start->began) != PROCESS_ENDED;
}

static long job_of_start (const struct flow_run *r, const struct flow_step *s, long n)
{
    const struct flow_start *start = flow_start_of (r, s, n);

    return start ? start->job : 0;
}

/* Wait for the job of a start as long as the process that announced it may still submit it. */
static long flow_job_to_come (const struct flow_run *r, const struct flow_step *s, long n)
{
    double limit = monotonic () + OTHERS_WAIT;

    while (job_of_start (r, s, n) == 0 && monotonic () < limit
           && start_is_in_progress (flow_start_of (r, s, n))) {
        usleep (100000);
        flow_sync (r, NULL);
    }
    flow_sync (r, NULL);
    return job_of_start (r, s, n);
}

/* Another process announced this start first. */
static long wait_for_others_job (const struct flow_run *r, const struct flow_step *s, long n,
                                 struct slurmdl_error *err)
{
    long id = flow_job_to_come (r, s, n);

    errno = EBUSY;
    return id > 0 ? id
                  : errorf (err,
                            "another dl has not submitted the step '%s': try "
                            "'dl flow resume' later",
                            s->name);
}

static long submit_job_of_step (const struct flow_run *r, const struct flow_step *s, long n,
                                const struct flow_request *q, struct slurmdl_error *err)
{
    struct command c = { 0 };
    char dl[PATH_MAX], script[PATH_MAX + 8], folder[PATH_MAX + 8], output[NAME_MAX + 32];
    char token[160], name[2 * FLOW_NAME_MAX + 2], number[32];
    struct slurmdl_error why = { "" };
    const char *words[] = { script, dl, q->mode, r->dir, r->pin, s->name, number };
    long job;

    own_program (dl);
    flow_job_token (token, r, s, n);
    snprintf (script, sizeof (script), "%s/job.sh", r->dir);
    snprintf (name, sizeof (name), "%s.%s", r->flow->base->name, s->name);
    snprintf (number, sizeof (number), "%ld", n);
    snprintf (folder, sizeof (folder), "%s/steps", r->dir);
    snprintf (output, sizeof (output), "%s.%s.log", s->name, q->array ? "%A_%a" : "%j");
    slurm_add_requeueable (&c, name, folder, output);
    command_add (&c, "--kill-on-invalid-dep", "yes");
    command_add (&c, "--comment", token);
    executor_add_resources (&c, s->exp, 0);
    if (q->dependency && *q->dependency)
        command_add (&c, "--dependency", q->dependency);
    if (q->array)
        command_add (&c, "--array", q->array);
    if (q->begin)
        command_add (&c, "--begin", q->begin);
    command_add (&c, "--", NULL);
    for (size_t i = 0; i < sizeof (words) / sizeof (*words); i++)
        command_add (&c, words[i], NULL);
    job = slurm_submit (&c, NULL, &why);
    return job > 0 ? job : errorf (err, "step '%s': %s", s->name, why.text);
}

static int note_flow_job (const struct flow_run *r, const struct flow_step *s, long n, long id,
                          struct slurmdl_error *err)
{
    char job[32];

    snprintf (job, sizeof (job), "%ld", id);
    return flow_insist (
        r, &(struct event){ .op = EVENT_SUBMIT, .step = s->name, .start = n, .job = job }, err);
}

/* Announce start 'n', unless another process was faster. */
static enum published announce_flow_start (const struct flow_run *r, const struct flow_step *s,
                                           long n, const struct flow_request *q,
                                           struct slurmdl_error *err)
{
    char host[FLOW_HOST_SIZE];
    struct event e = flow_start_event (s, n, q->mode, host);
    enum published rv = PUBLISH_LATE;

    e.jobs = q->jobs;
    while (rv == PUBLISH_LATE && flow_starts (r, s) < n)
        rv = flow_publish (r, e, err);
    return rv;
}

long flow_submit_once (const struct flow_run *r, const struct flow_step *s, long n,
                       const struct flow_request *q, struct slurmdl_error *err)
{
    enum published rv = announce_flow_start (r, s, n, q, err);
    long id;

    if (rv == PUBLISH_FAILED)
        return -1;
    if (rv == PUBLISH_LATE)
        return wait_for_others_job (r, s, n, err);
    if ((id = submit_job_of_step (r, s, n, q, err)) < 0)
        return -1;
    return note_flow_job (r, s, n, id, err) < 0 ? -1 : id;
}

/* ---- all steps ---- */

struct pass {
    const struct flow_run *r;
    bool again;
    struct flow_queue q;
    long *jobs;     /* of each step: the job that others wait for, or 0 */
    bool *fresh;    /* submitted by this pass */
    bool *deferred; /* its tasks, or those of a step before it, are unknown yet */
    long submitted;
    struct slurmdl_error *err;
};

/* The newest start.  In a new run, other starts can only come from a job that submits the rest of
 * the flow meanwhile, and count as ours.
 */
static long newest_start (const struct pass *p, const struct flow_step *s)
{
    return p->again ? flow_starts (p->r, s) : 0;
}

/* The job of the newest start.  If its submitter died before it could record the job, find it in
 * the queue by the token in its comment.
 */
static long find_step_job (struct pass *p, const struct flow_step *s, long n)
{
    long id = job_of_start (p->r, s, n);
    char token[160];

    flow_job_token (token, p->r, s, n);
    for (size_t i = 0; id == 0 && n > 0 && i < p->q.jobs.n; i++)
        if (!strcmp (p->q.jobs.list[i].comment, token)) {
            id = p->q.jobs.list[i].id;
            note_flow_job (p->r, s, n, id, NULL);
        }
    return id > 0 || n == 0 ? id : flow_job_to_come (p->r, s, n);
}

/* Whether Slurm still has the job, and whether all of its tasks are pending.  A job newer than our
 * copy of the queue was submitted after we asked, so ask again.
 */
static bool job_is_active (struct pass *p, long id, bool *pending)
{
    bool active = false;

    *pending = true;
    if (id > p->q.highest && id > 0) {
        slurm_jobs_free (&p->q.jobs);
        if (flow_queue_read (p->r, &p->q, p->err) < 0)
            return false;
    }
    for (size_t i = 0; i < p->q.jobs.n; i++)
        if (p->q.jobs.list[i].id == id) {
            active = true;
            *pending &= !strcmp (p->q.jobs.list[i].state, "PENDING");
        }
    return active;
}

static bool job_submits_rest (const struct pass *p, const struct flow_step *s, long n)
{
    const struct flow_start *start = flow_start_of (p->r, s, n);

    return start && start->mode && !strcmp (start->mode, "submit");
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
            /* an array of the remaining tasks lacks some of the numbers that aftercorr needs */
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

/* Depend on all other jobs, "afterany:12:13"; returns them as "12 13", which the caller frees. */
static char *add_all_dependencies (const struct pass *p, FILE *o)
{
    char *text = NULL;
    size_t size;
    FILE *list = xopen_memstream (&text, &size);

    for (size_t i = 0; i < p->r->flow->n; i++)
        if (!p->r->flow->steps[i].on_exit && p->jobs[i]) {
            fprintf (list, "%s%ld", ftell (o) > 0 ? " " : "", p->jobs[i]);
            fprintf (o, "%s:%ld", ftell (o) > 0 ? "" : "afterany", p->jobs[i]);
        }
    xclose_memstream (list);
    return text;
}

/* The tasks without a result: "0-4,7". */
static char *tasks_without_result (const struct pass *p, const struct flow_step *s)
{
    long width = flow_width (p->r, s);
    char *text = NULL;
    size_t size;
    FILE *o = xopen_memstream (&text, &size);
    long from = -1;

    for (long i = 0; i <= width; i++) {
        bool left = i < width && flow_task_state (p->r, s, i) < TASK_SKIPPED;
        if (left && from < 0)
            from = i;
        if (left || from < 0)
            continue;
        fprintf (o, "%s%ld", ftell (o) > 0 ? "," : "", from);
        if (i - 1 > from)
            fprintf (o, "-%ld", i - 1);
        from = -1;
    }
    xclose_memstream (o);
    return text;
}

static int submit_pass_step (struct pass *p, const struct flow_step *s, long n)
{
    size_t k = flow_step_number (p->r->flow, s);
    bool known = flow_width (p->r, s) >= 0;
    struct flow_request q = { .mode = known ? "step" : "submit" };
    char *dependency = NULL, *array = NULL, *jobs = NULL;
    size_t size;
    FILE *o = xopen_memstream (&dependency, &size);
    long id;

    if (s->on_exit)
        q.jobs = jobs = add_all_dependencies (p, o);
    else
        add_dependencies (p, s, o);
    xclose_memstream (o);
    q.dependency = dependency;
    if (known && s->foreach)
        q.array = array = tasks_without_result (p, s);
    id = flow_submit_once (p->r, s, n, &q, p->err);
    free (dependency);
    free (array);
    free (jobs);
    if (id < 0)
        return -1;
    p->jobs[k] = id;
    p->fresh[k] = true;
    p->submitted++;
    return 0;
}

static void cancel_one_job (long id)
{
    char job[32];

    snprintf (job, sizeof (job), "%ld", id);
    slurm_cancel ((char *[]){ job, NULL }, NULL, NULL);
}

/* A step gets a new job, too, if its pending job depends on one that this pass replaces. */
static int pass_plain_step (struct pass *p, const struct flow_step *s)
{
    size_t k = flow_step_number (p->r->flow, s);
    long last = newest_start (p, s);
    long id = p->again ? find_step_job (p, s, last) : 0;
    bool before = false, ended = true, pending, known;
    bool active = id > 0 && job_is_active (p, id, &pending);

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
    if (active && job_submits_rest (p, s, last) && known)
        active = false;
    if (active && !(before && pending)) {
        p->jobs[k] = id;
        return 0;
    }
    if (active)
        cancel_one_job (id);
    return submit_pass_step (p, s, last + 1);
}

/* An exit handler has nothing to do if nothing ran. */
static bool nothing_was_run (const struct pass *p)
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

static int pass_exit_step (struct pass *p, const struct flow_step *s)
{
    long last = newest_start (p, s);
    long id = p->again ? find_step_job (p, s, last) : 0;
    bool pending;

    if (flow_is_done (p->r, s, NULL) && p->submitted == 0)
        return 0;
    if (s->cache && nothing_was_run (p)) {
        for (long i = 0; i < flow_width (p->r, s); i++)
            flow_put_skipped (p->r, s, i, p->err);
        return 0;
    }
    if (id > 0 && job_is_active (p, id, &pending))
        return 0; /* when it begins, it checks whether it must wait for newer jobs */
    return submit_pass_step (p, s, last + 1);
}

static int pass_all_steps (struct pass *p)
{
    const struct flow *f = p->r->flow;

    if (p->again && flow_queue_read (p->r, &p->q, p->err) < 0)
        return -1;
    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[f->order[i]];
        if ((s->on_exit ? pass_exit_step (p, s) : pass_plain_step (p, s)) < 0)
            return -1;
    }
    return 0;
}

long flow_submit (const struct flow_run *r, bool again, struct slurmdl_error *err)
{
    size_t n = r->flow->n;
    struct pass p = { .r = r, .again = again, .err = err };
    int rv;

    p.jobs = xcalloc (n, sizeof (*p.jobs));
    p.fresh = xcalloc (n, sizeof (*p.fresh));
    p.deferred = xcalloc (n, sizeof (*p.deferred));
    rv = pass_all_steps (&p);
    free (p.jobs);
    free (p.fresh);
    free (p.deferred);
    slurm_jobs_free (&p.q.jobs);
    return rv < 0 ? -1 : p.submitted;
}

/* ---- a step with on_exit ---- */

static bool waits_for_job (const struct flow_start *start, long id)
{
    const char *text = start && start->jobs ? start->jobs : "";
    char *end;

    for (long job; (job = strtol (text, &end, 10)), end > text; text = end)
        if (job == id)
            return true;
    return false;
}

int flow_exit_again (const struct flow_run *r, const struct flow_step *s, long start, bool *again,
                     struct slurmdl_error *err)
{
    size_t n = r->flow->n;
    struct pass p = { .r = r, .err = err };
    int rv = 0;

    *again = false;
    p.jobs = xcalloc (n, sizeof (*p.jobs));
    p.fresh = xcalloc (n, sizeof (*p.fresh));
    for (size_t i = 0; i < n; i++) {
        const struct flow_step *to = &r->flow->steps[i];
        if (to->on_exit)
            continue;
        p.jobs[i] = flow_job (r, to);
        *again |= p.jobs[i] > 0 && !waits_for_job (flow_start_of (r, s, start), p.jobs[i]);
    }
    if (*again)
        rv = submit_pass_step (&p, s, start + 1);
    free (p.jobs);
    free (p.fresh);
    return rv;
}
