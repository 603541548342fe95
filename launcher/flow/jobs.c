/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a flow, which wait for each other by dependencies. */
#include "launcher/config/experiment.h"
#include "launcher/flow/run.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/worker/executor.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/process_id.h"

enum { OTHERS_WAIT = 60 };

/* A task whose own process was killed is started again: what ran is counted in
 * the flow's folder.
 */
const char flow_job_script[] = "#!/bin/sh\n"
                               "# job.sh DL MODE FLOW PIN STEP START: a job of a flow (dl flow).\n"
                               "unset SLURM_CPU_BIND SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_LIST "
                               "SLURM_CPU_BIND_VERBOSE\n"
                               "job=$SLURM_JOB_ID\n"
                               "[ -z \"$SLURM_ARRAY_TASK_ID\" ] || "
                               "job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\n"
                               "case $3 in *\\\\*) exec >>\"$3/steps/$5.$job.log\" 2>&1 ;; esac\n"
                               "tries=0\n"
                               "while [ $tries -lt 20 ]; do\n"
                               "    \"$1\" flow \"$2\" -- \"$3\" \"$4\" \"$5\" \"$6\" "
                               "\"${SLURM_ARRAY_TASK_ID:-0}\"\n"
                               "    status=$?\n"
                               "    case $status in\n"
                               "    134 | 135 | 136 | 137 | 139) ;;\n"
                               "    *) exit $status ;;\n"
                               "    esac\n"
                               "    tries=$((tries + 1))\n"
                               "    sleep 1\n"
                               "done\n"
                               "exit $status\n";

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

int flow_queue_read (const struct flow_run *r, struct flow_queue *q, struct slurmdl_error *err)
{
    struct slurm_jobs jobs;
    char mine[64];
    int rv;

    *q = (struct flow_queue){ 0 };
    snprintf (mine, sizeof (mine), "dl-flow %.20s ", flow_id (r));
    rv = slurm_jobs_ask (&(struct slurm_queue){ 0 }, &jobs, err) == SLURM_ANSWERED ? 0 : -1;
    for (size_t i = 0; i < jobs.n && rv == 0; i++) {
        const struct slurm_job *j = &jobs.list[i];
        q->highest = j->id > q->highest ? j->id : q->highest;
        if (strncmp (j->comment, mine, strlen (mine)))
            continue;
        XGROW (q->list, q->n);
        q->list[q->n] = (struct flow_job){ .id = j->id, .pending = !strcmp (j->state, "PENDING") };
        snprintf (q->list[q->n++].token, sizeof (q->list->token), "%s", j->comment);
    }
    slurm_jobs_free (&jobs);
    return rv;
}

int flow_cancel (const struct flow_queue *q, struct slurmdl_error *err)
{
    char **jobs = NULL;
    int rv;

    for (size_t i = 0; i < q->n; i++)
        strings_addf (&jobs, "%ld", q->list[i].id);
    rv = slurm_cancel (jobs, NULL, err);
    strings_free (jobs);
    return rv;
}

/* ---- one job, once ---- */

static long flow_job_of (const struct flow_run *r, const struct flow_step *s, long n)
{
    json_t *record = n > 0 ? flow_record (r, s, -1, "job", n) : NULL;
    long id = (long)json_integer_value (json_object_get (record, "job"));

    json_decref (record);
    return id;
}

json_t *flow_intent (const char *mode)
{
    char host[HOST_NAME_MAX + 1] = "";
    pid_t pid = getpid ();

    gethostname (host, sizeof (host) - 1);
    return json_pack ("{s:s, s:s, s:I, s:I}", "mode", mode, "host", host, "pid", (json_int_t)pid,
                      "began", (json_int_t)process_start ("/proc", pid));
}

enum flow_process flow_intent_process (const json_t *intent)
{
    const char *on = json_string_value (json_object_get (intent, "host"));
    json_int_t pid = json_integer_value (json_object_get (intent, "pid"));
    json_int_t began = json_integer_value (json_object_get (intent, "began"));
    char host[HOST_NAME_MAX + 1] = "";

    gethostname (host, sizeof (host) - 1);
    if (pid <= 0 || !on)
        return PROCESS_ENDED;
    if (strcmp (on, host))
        return PROCESS_ELSEWHERE;
    if (began > 0 ? process_has_ended ("/proc", pid, (uint64_t)began)
                  : kill ((pid_t)pid, 0) < 0 && errno != EPERM)
        return PROCESS_ENDED;
    return PROCESS_RUNS;
}

/* Whether who has said that he submits it may still be at it. */
static bool other_may_submit (const struct flow_run *r, const struct flow_step *s, long n)
{
    json_t *intent = flow_record (r, s, -1, "intent", n);
    bool may = flow_intent_process (intent) != PROCESS_ENDED;

    json_decref (intent);
    return may;
}

static long flow_job_to_come (const struct flow_run *r, const struct flow_step *s, long n)
{
    double limit = monotonic () + OTHERS_WAIT;
    long id;

    while ((id = flow_job_of (r, s, n)) == 0 && monotonic () < limit && other_may_submit (r, s, n))
        usleep (100000);
    return id > 0 ? id : flow_job_of (r, s, n);
}

/* Somebody else was faster to say that he submits it. */
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
    command_add (&c, "--requeue", NULL);
    command_add (&c, "--open-mode", "append");
    command_add (&c, "--kill-on-invalid-dep", "yes");
    command_add (&c, "--job-name", name);
    command_add (&c, "--comment", token);
    slurm_add_output (&c, folder, output);
    slurm_add_resources (&c, s->exp, 0);
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

static int flow_note_job (const struct flow_run *r, const struct flow_step *s, long n, long id,
                          struct slurmdl_error *err)
{
    return flow_put (r, s, -1, "job", n, json_pack ("{s:I}", "job", (json_int_t)id), err);
}

long flow_submit_once (const struct flow_run *r, const struct flow_step *s, long n,
                       const struct flow_request *q, struct slurmdl_error *err)
{
    json_t *intent = flow_intent (q->mode);
    int rv;
    long id;

    json_object_set_new (intent, "time", json_integer ((json_int_t)time (NULL)));
    if (q->jobs)
        json_object_set_new (intent, "jobs", q->jobs);
    if ((rv = flow_put (r, s, -1, "intent", n, intent, err)) < 0)
        return -1;
    if (rv == 1)
        return wait_for_others_job (r, s, n, err);
    if ((id = submit_job_of_step (r, s, n, q, err)) < 0)
        return -1;
    return flow_note_job (r, s, n, id, err) < 0 ? -1 : id;
}

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
static long newest_start (const struct pass *p, const struct flow_step *s)
{
    return p->again ? flow_last (p->r, s, -1, "intent") : 0;
}

/* The job of the newest start; one that was submitted, and whose number nobody
 * could note any more, Slurm knows by its token.
 */
static long find_step_job (struct pass *p, const struct flow_step *s, long n)
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
static bool job_is_active (struct pass *p, long id, bool *pending)
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

static bool job_submits_rest (const struct pass *p, const struct flow_step *s, long n)
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
static json_t *add_all_dependencies (const struct pass *p, FILE *o)
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
static char *tasks_without_result (const struct pass *p, const struct flow_step *s)
{
    long width = flow_width (p->r, s);
    char *text = NULL;
    size_t size;
    FILE *o = xopen_memstream (&text, &size);
    long from = -1;

    for (long i = 0; i <= width; i++) {
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
    xclose_memstream (o);
    return text;
}

static int submit_pass_step (struct pass *p, const struct flow_step *s, long n)
{
    size_t k = flow_step_number (p->r->flow, s);
    bool known = flow_width (p->r, s) >= 0;
    struct flow_request q = { .mode = known ? "step" : "submit" };
    char *dependency = NULL, *array = NULL;
    size_t size;
    FILE *o = xopen_memstream (&dependency, &size);
    long id;

    if (s->on_exit)
        q.jobs = add_all_dependencies (p, o);
    else
        add_dependencies (p, s, o);
    xclose_memstream (o);
    q.dependency = dependency;
    if (known && s->foreach)
        q.array = array = tasks_without_result (p, s);
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

static void cancel_one_job (const struct pass *p, long id)
{
    struct flow_job j = { .id = id };
    struct flow_queue q = { .list = &j, .n = 1 };

    (void)p;
    flow_cancel (&q, NULL);
}

/* One whose job still waits, for another one that is no longer to come, gets a
 * new one, too.
 */
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
        cancel_one_job (p, id);
    return submit_pass_step (p, s, last + 1);
}

/* Where nothing was run there is nothing to tell. */
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
        return 0; /* it looks for others when it begins */
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
    free (p.q.list);
    return rv < 0 ? -1 : p.submitted;
}

/* ---- a step with on_exit ---- */

static bool has_job (const json_t *list, long id)
{
    size_t i;
    json_t *v;

    json_array_foreach (list, i, v)
        if (json_integer_value (v) == id)
            return true;
    return false;
}

int flow_exit_again (const struct flow_run *r, const struct flow_step *s, long start, bool *again,
                     struct slurmdl_error *err)
{
    json_t *intent = flow_record (r, s, -1, "intent", start);
    const json_t *list = json_object_get (intent, "jobs");
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
        p.jobs[i] = flow_job_of (r, to, flow_last (r, to, -1, "job"));
        *again |= p.jobs[i] > 0 && !has_job (list, p.jobs[i]);
    }
    if (*again)
        rv = submit_pass_step (&p, s, start + 1);
    json_decref (intent);
    free (p.jobs);
    free (p.fresh);
    return rv;
}
