/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a flow: what Slurm has of them, and one more. */
#include "launcher/flow/jobs.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/worker/executor_slurm.h"
#include "runtime/base/array.h"
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

static const char *id_of (const struct flow_run *r)
{
    const char *id = json_string_value (json_object_get (r->about, "id"));

    return id ? id : "";
}

void flow_job_token (char token[160], const struct flow_run *r, const struct flow_step *s, long n)
{
    snprintf (token, 160, "dl-flow %.20s %s %ld", id_of (r), s->name, n);
}

int flow_queue_read (const struct flow_run *r, struct flow_queue *q, struct slurmdl_error *err)
{
    struct slurm_jobs jobs;
    char mine[64];
    int rv;

    *q = (struct flow_queue){ 0 };
    snprintf (mine, sizeof (mine), "dl-flow %.20s ", id_of (r));
    rv = slurm_jobs_ask (&(struct slurm_queue){ 0 }, &jobs, err) == SLURM_ANSWERED ? 0 : -1;
    for (size_t i = 0; i < jobs.n && rv == 0; i++) {
        const struct slurm_job *j = &jobs.list[i];
        struct flow_job *list;
        q->highest = j->id > q->highest ? j->id : q->highest;
        if (strncmp (j->comment, mine, strlen (mine)))
            continue;
        if (!(list = array_grow (q->list, q->n, sizeof (*list)))) {
            rv = errorf (err, "out of memory");
            break;
        }
        q->list = list;
        list[q->n] = (struct flow_job){ .id = j->id, .pending = !strcmp (j->state, "PENDING") };
        snprintf (list[q->n++].token, sizeof (list->token), "%s", j->comment);
    }
    slurm_jobs_free (&jobs);
    return rv;
}

int flow_cancel (const struct flow_queue *q, struct slurmdl_error *err)
{
    char **jobs = NULL;
    int rv = 0;

    for (size_t i = 0; i < q->n && rv == 0; i++)
        rv = strings_addf (&jobs, "%ld", q->list[i].id);
    rv = rv < 0 ? errorf (err, "out of memory") : slurm_cancel (jobs, NULL, err);
    strings_free (jobs);
    return rv;
}

/* ---- one job, once ---- */

long flow_job_of (const struct flow_run *r, const struct flow_step *s, long n)
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

int flow_intent_runs (const json_t *intent)
{
    const char *on = json_string_value (json_object_get (intent, "host"));
    json_int_t pid = json_integer_value (json_object_get (intent, "pid"));
    json_int_t began = json_integer_value (json_object_get (intent, "began"));
    char host[HOST_NAME_MAX + 1] = "";

    gethostname (host, sizeof (host) - 1);
    if (pid <= 0 || !on)
        return 0;
    if (strcmp (on, host))
        return -1;
    if (began > 0)
        return !process_has_ended ("/proc", pid, (uint64_t)began);
    return kill ((pid_t)pid, 0) == 0 || errno == EPERM;
}

/* Whether who has said that he submits it may still be at it. */
static bool may_submit (const struct flow_run *r, const struct flow_step *s, long n)
{
    json_t *intent = flow_record (r, s, -1, "intent", n);
    bool may = flow_intent_runs (intent) != 0;

    json_decref (intent);
    return may;
}

long flow_job_to_come (const struct flow_run *r, const struct flow_step *s, long n)
{
    double limit = monotonic () + OTHERS_WAIT;
    long id;

    while ((id = flow_job_of (r, s, n)) == 0 && monotonic () < limit && may_submit (r, s, n))
        usleep (100000);
    return id > 0 ? id : flow_job_of (r, s, n);
}

/* Somebody else was faster to say that he submits it. */
static long wait_for_job (const struct flow_run *r, const struct flow_step *s, long n,
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

static long submit_step (const struct flow_run *r, const struct flow_step *s, long n,
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
    snprintf (name, sizeof (name), "%s.%s", r->flow->base.name, s->name);
    snprintf (number, sizeof (number), "%ld", n);
    snprintf (folder, sizeof (folder), "%s/steps", r->dir);
    snprintf (output, sizeof (output), "%s.%s.log", s->name, q->array ? "%A_%a" : "%j");
    command_add (&c, "--requeue", NULL);
    command_add (&c, "--open-mode", "append");
    command_add (&c, "--kill-on-invalid-dep", "yes");
    command_add (&c, "--job-name", name);
    command_add (&c, "--comment", token);
    slurm_add_output (&c, folder, output);
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
    job = slurm_submit (&c, NULL, &why);
    return job > 0 ? job : errorf (err, "step '%s': %s", s->name, why.text);
}

int flow_note_job (const struct flow_run *r, const struct flow_step *s, long n, long id,
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
        return wait_for_job (r, s, n, err);
    if ((id = submit_step (r, s, n, q, err)) < 0)
        return -1;
    return flow_note_job (r, s, n, id, err) < 0 ? -1 : id;
}
