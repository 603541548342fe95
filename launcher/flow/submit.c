/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs for the steps of a flow, which wait for each other by dependencies. */
#include "launcher/flow/submit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/executor/slurm.h"
#include "launcher/flow/step.h"
#include "launcher/sys/array.h"
#include "launcher/sys/say.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"

enum { QUEUE_TEXT = 8 << 20, OTHERS_WAIT = 60, TEXT_MAX = 4096 };

/* A task whose own process was killed is started again: what ran is counted in
 * the flow's folder.
 */
const char flow_job_script[] =
    "#!/bin/sh\n"
    "# job.sh DL MODE FLOW PIN STEP START: a job of a flow (dl flow).\n"
    "unset SLURM_CPU_BIND SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_LIST "
    "SLURM_CPU_BIND_VERBOSE\n"
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

static const char *id_of (const struct flow_run *r)
{
    const char *id = json_string_value (json_object_get (r->about, "id"));

    return id ? id : "";
}

static void token_of (char token[160],
                      const struct flow_run *r,
                      const struct flow_step *s,
                      long n)
{
    snprintf (token, 160, "dl-flow %.20s %s %ld", id_of (r), s->name, n);
}

static void add_line (struct flow_queue *q, const char *line, const char *mine)
{
    struct flow_job j = { .id = strtol (line, NULL, 10) };
    const char *state = strchr (line, '|');
    const char *token = state ? strchr (state + 1, '|') : NULL;
    struct flow_job *list;

    q->highest = j.id > q->highest ? j.id : q->highest;
    if (!token || strncmp (token + 1, mine, strlen (mine))
        || !(list = array_grow (q->list, q->n, sizeof (*list))))
        return;
    j.pending = !strncmp (state + 1, "PENDING", 7);
    snprintf (j.token, sizeof (j.token), "%s", token + 1);
    q->list = list;
    list[q->n++] = j;
}

int flow_queue_read (const struct flow_run *r,
                     struct flow_queue *q,
                     struct slurmdl_error *err)
{
    struct command c = { 0 };
    char *text = malloc (QUEUE_TEXT);
    char *save = NULL;
    char mine[64];
    int status = -1;

    *q = (struct flow_queue){ 0 };
    snprintf (mine, sizeof (mine), "dl-flow %.20s ", id_of (r));
    command_add (&c, "squeue", NULL);
    command_add (&c, "--me", NULL);
    command_add (&c, "--noheader", NULL);
    command_add (&c, "--format", "%F|%T|%k");
    if (text)
        status = command_run (&c, NULL, text, QUEUE_TEXT);
    command_free (&c);
    errno = EPROTO;
    if (status != 0)
        errorf (err,
                "squeue: %.160s%s",
                text ? text : "",
                status == 127 ? " (without Slurm use --local)" : "");
    for (char *line = status == 0 ? strtok_r (text, "\n", &save) : NULL; line;
         line = strtok_r (NULL, "\n", &save))
        add_line (q, line, mine);
    free (text);
    return status == 0 ? 0 : -1;
}

int flow_cancel (const struct flow_queue *q, struct slurmdl_error *err)
{
    char text[TEXT_MAX];
    int status = 0;

    for (size_t i = 0; i < q->n;) {
        struct command c = { .timeout = 60 };
        command_add (&c, "scancel", NULL);
        for (int k = 0; k < 200 && i < q->n; k++, i++) {
            snprintf (text, sizeof (text), "%ld", q->list[i].id);
            c.argv[c.n++] = c.owned[c.nowned++] = strdup (text);
        }
        status |= command_run (&c, NULL, text, sizeof (text));
        command_free (&c);
    }
    errno = EPROTO;
    return status == 0 ? 0 : errorf (err, "scancel: %.200s", text);
}

/* ---- one job, once ---- */

static long job_of (const struct flow_run *r, const struct flow_step *s, long n)
{
    json_t *record = n > 0 ? flow_record (r, s, -1, "job", n) : NULL;
    long id = (long)json_integer_value (json_object_get (record, "job"));

    json_decref (record);
    return id;
}

/* Somebody else was faster to say that he submits it. */
static long wait_for_job (const struct flow_run *r,
                          const struct flow_step *s,
                          long n,
                          struct slurmdl_error *err)
{
    for (int i = 0; i < OTHERS_WAIT * 10; i++) {
        long id = job_of (r, s, n);
        if (id > 0)
            return id;
        usleep (100000);
    }
    errno = EBUSY;
    return errorf (err,
                   "another dl submits the step '%s' since a minute: try 'dl "
                   "flow resume' later",
                   s->name);
}

static void output_path (char *buf,
                         const struct flow_run *r,
                         const char *name,
                         bool is_array)
{
    char *to = buf;

    /* % begins a variable of Slurm's */
    for (const char *at = r->dir; *at; at++) {
        *to++ = *at;
        if (*at == '%')
            *to++ = '%';
    }
    sprintf (to, "/steps/%s.%s.log", name, is_array ? "%A_%a" : "%j");
}

static long sbatch (const struct flow_run *r,
                    const struct flow_step *s,
                    long n,
                    const struct flow_request *q,
                    struct slurmdl_error *err)
{
    struct command c = { 0 };
    char dl[PATH_MAX], script[PATH_MAX + 8], output[2 * PATH_MAX + 128];
    char token[160], name[2 * FLOW_NAME_MAX + 2], number[32];
    char said[TEXT_MAX];
    ssize_t len = readlink ("/proc/self/exe", dl, sizeof (dl) - 1);
    const char *words[] = {
        script, dl, q->mode, r->dir, r->pin, s->name, number
    };
    const char *line;
    int status;

    dl[len > 0 ? len : 0] = '\0';
    token_of (token, r, s, n);
    snprintf (script, sizeof (script), "%s/job.sh", r->dir);
    snprintf (name, sizeof (name), "%s.%s", r->flow->base.name, s->name);
    snprintf (number, sizeof (number), "%ld", n);
    output_path (output, r, s->name, q->array != NULL);
    command_add (&c, "sbatch", NULL);
    command_add (&c, "--parsable", NULL);
    command_add (&c, "--requeue", NULL);
    command_add (&c, "--open-mode", "append");
    command_add (&c, "--kill-on-invalid-dep", "yes");
    command_add (&c, "--job-name", name);
    command_add (&c, "--comment", token);
    command_add (&c, "--output", output);
    slurm_add_resources (&c, &s->exp, 0);
    if (q->dependency && *q->dependency)
        command_add (&c, "--dependency", q->dependency);
    if (q->array)
        command_add (&c, "--array", q->array);
    if (q->begin)
        command_add (&c, "--begin", q->begin);
    command_add (&c, "--", NULL);
    for (size_t i = 0; i < sizeof (words) / sizeof (*words); i++)
        command_add (&c, words[i], NULL);
    status = command_run (&c, NULL, said, sizeof (said));
    command_free (&c);
    line = strrchr (said, '\n') ? strrchr (said, '\n') + 1 : said;
    errno = EPROTO;
    if (status == 0 && strtol (line, NULL, 10) > 0)
        return strtol (line, NULL, 10);
    return errorf (err,
                   "step '%s': sbatch: %.160s%s",
                   s->name,
                   *said ? said : "it failed without a message",
                   status == 127 ? " (without Slurm use --local)" : "");
}

static int note_job (const struct flow_run *r,
                     const struct flow_step *s,
                     long n,
                     long id,
                     struct slurmdl_error *err)
{
    return flow_put (
        r, s, -1, "job", n, json_pack ("{s:I}", "job", (json_int_t)id), err);
}

long flow_submit_once (const struct flow_run *r,
                       const struct flow_step *s,
                       long n,
                       const struct flow_request *q,
                       struct slurmdl_error *err)
{
    json_t *intent = json_pack ("{s:s, s:I, s:I, s:o*}",
                                "mode",
                                q->mode,
                                "pid",
                                (json_int_t)getpid (),
                                "time",
                                (json_int_t)time (NULL),
                                "jobs",
                                q->jobs);
    int rv = flow_put (r, s, -1, "intent", n, intent, err);
    long id;

    if (rv < 0)
        return -1;
    if (rv == 1)
        return wait_for_job (r, s, n, err);
    if ((id = sbatch (r, s, n, q, err)) < 0)
        return -1;
    return note_job (r, s, n, id, err) < 0 ? -1 : id;
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

/* The job of the newest start; one that was submitted, and whose number nobody
 * could note any more, Slurm knows by its token.
 */
static long find_job (struct pass *p, const struct flow_step *s, long n)
{
    long id = job_of (p->r, s, n);
    char token[160];

    token_of (token, p->r, s, n);
    for (size_t i = 0; id == 0 && n > 0 && i < p->q.n; i++)
        if (!strcmp (p->q.list[i].token, token)) {
            id = p->q.list[i].id;
            note_job (p->r, s, n, id, NULL);
        }
    return id;
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
static void
add_dependencies (const struct pass *p, const struct flow_step *s, FILE *o)
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
        bool left =
            i < width && flow_task_state (p->r, s, i, NULL) < TASK_SKIPPED;
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
    long last = flow_last (p->r, s, -1, "intent");
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
    if (ended && known && !p->deferred[k] && !active
        && flow_settle_step (p->r, s))
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
        if (p->jobs[i] || counts[TASK_OK] || counts[TASK_FAILED]
            || counts[TASK_RUNNING])
            return false;
    }
    return true;
}

static int pass_exit (struct pass *p, const struct flow_step *s)
{
    long last = flow_last (p->r, s, -1, "intent");
    long id = p->again ? find_job (p, s, last) : 0;
    bool pending;

    if (flow_is_done (p->r, s, NULL) && p->submitted == 0)
        return 0;
    if (s->cache && nothing_ran (p)) {
        for (long i = 0; i < flow_width (p->r, s); i++)
            flow_put (p->r,
                      s,
                      i,
                      "done",
                      0,
                      json_pack ("{s:s, s:s}",
                                 "status",
                                 task_states[TASK_SKIPPED],
                                 "why",
                                 "nothing was run"),
                      p->err);
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

long flow_submit (const struct flow_run *r,
                  bool again,
                  struct slurmdl_error *err)
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

    json_array_foreach (list, i, v) if (json_integer_value (v)
                                        == id) return true;
    return false;
}

int flow_exit_again (const struct flow_run *r,
                     const struct flow_step *s,
                     long start,
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
        p.jobs[i] = job_of (r, to, flow_last (r, to, -1, "job"));
        more |= p.jobs[i] > 0 && !has (list, p.jobs[i]);
    }
    if (more && p.fresh)
        rv = submit_step (&p, s, start + 1) < 0 ? -1 : 1;
    json_decref (intent);
    free (p.jobs);
    free (p.fresh);
    return rv;
}
