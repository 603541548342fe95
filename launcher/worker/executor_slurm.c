/* SPDX-License-Identifier: Apache-2.0 */
/* The executor that starts workers as job arrays. */
#include "launcher/worker/executor_slurm.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/queries.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/user.h"
#include "launcher/worker/batch_script.h"
#include "launcher/worker/no_worker.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

enum { ASK_FIRST = 5, ASK_EVERY = 30, SUBMITS_MAX = 64 };

/* Below, SIGUSR2 by Slurm would take too much of an allocation: it comes up
 * to a minute early, and the worker watches the clock itself.
 */
enum { SIGNAL_FROM = 600 };

/* ---- sbatch ---- */

long slurm_tasks (const struct experiment *e, long workers)
{
    return (workers + (long)e->lanes - 1) / (long)e->lanes;
}

/* Bytes of an array task whose trials need more than the experiment says; 0:
 * they do not.
 */
static int64_t larger_memory (const struct sweep *s)
{
    return s->memory > s->exp->memory_bytes ? s->memory * s->exp->lanes : 0;
}

/* "16G" of each trial, or 'larger' bytes of all, if not 0. */
static void add_memory (struct command *c, const struct experiment *e, int64_t larger)
{
    char text[64];
    char *unit;
    long long n;

    if (larger > 0) {
        slurm_bytes_text (text, sizeof (text), larger);
        command_add (c, "--mem", text);
        return;
    }
    if (!e->memory)
        return;
    n = strtoll (e->memory, &unit, 10);
    snprintf (text, sizeof (text), "%lld%s", n * (long long)e->lanes, unit);
    command_add (c, "--mem", e->lanes > 1 ? text : e->memory);
}

static void add_plugin_option (enum plugin_option_id id, const char *key, const char *value,
                               void *c)
{
    char name[32];

    (void)key;
    snprintf (name, sizeof (name), "--%s", plugin_options[id].name);
    command_add (c, name, value);
}

void slurm_add_resources (struct command *c, const struct experiment *e, int64_t larger)
{
    command_number (c, "--nodes", e->nodes);
    command_number (c, "--ntasks", e->lanes * e->nodes * e->ranks);
    command_number (c, "--ntasks-per-node", e->lanes * e->ranks);
    command_number (c, "--cpus-per-task", e->cpus);
    if (e->node_gpus)
        command_number (c, "--gpus-per-node", e->node_gpus * e->lanes);
    add_memory (c, e, larger);
    if (e->partition)
        command_add (c, "--partition", e->partition);
    if (e->account)
        command_add (c, "--account", e->account);
    if (e->qos)
        command_add (c, "--qos", e->qos);
    if (e->time)
        command_add (c, "--time", e->time);
    experiment_each_plugin_option (e, add_plugin_option, c);
    for (char **a = e->sbatch_args; a && *a; a++)
        command_add (c, *a, NULL);
}

/* "n1,n2": machines on which nothing is to begin. */
void slurm_excluded (const struct sweep *s, char *buf, size_t size)
{
    size_t n = 0;

    *buf = '\0';
    for (size_t i = 0; i < s->nhosts; i++) {
        size_t len = strlen (s->hosts[i].name);
        if (!s->hosts[i].why || n + len + 2 > size)
            continue;
        n += (size_t)snprintf (buf + n, size - n, "%s%s", n ? "," : "", s->hosts[i].name);
    }
}

/* 'folder' is for the output: slurmd follows the links in it. */
static void add_options (struct command *c, const struct executor *x, const char *folder,
                         long tasks, bool hosts)
{
    const struct sweep *s = x->sweep;
    char text[PATH_MAX + 32];
    double limit = slurm_seconds (s->exp->time);

    command_add (c, "--requeue", NULL);
    command_add (c, "--open-mode", "append");
    if (limit == 0 || limit >= SIGNAL_FROM)
        command_add (c, "--signal", "USR2@60");
    command_add (c, "--job-name", s->exp->name);
    snprintf (text, sizeof (text), "1-%ld", tasks);
    command_add (c, "--array", text);
    slurm_add_output (c, folder, "%A_%a.log");
    slurm_add_resources (c, s->exp, larger_memory (s));
    slurm_excluded (s, text, sizeof (text));
    if (hosts && *text)
        command_add (c, "--exclude", text);
}

/* Returns the job, -1 with 'why' and 'err'. */
static long submit_array (const struct executor *x, const char *folder, long tasks,
                          struct slurm_refusal *why, struct slurmdl_error *err)
{
    char script[PATH_MAX + 8];
    long job = -1;

    snprintf (script, sizeof (script), "%s/job.sh", folder);
    *why = (struct slurm_refusal){ .unknown_node = true };
    /* the experiment may have run on another cluster, too */
    for (int hosts = 1; hosts >= 0 && job < 0 && why->unknown_node; hosts--) {
        struct command c = { 0 };
        add_options (&c, x, folder, tasks, hosts);
        command_add (&c, "--", NULL);
        command_add (&c, script, NULL);
        job = slurm_submit (&c, why, err);
    }
    return job;
}

/* It works already: no failure of this stops it. */
static void note_array (struct executor *x, long id, long tasks)
{
    char job[32];
    struct slurmdl_error why = { "" };
    struct event e = { .op = EVENT_SUBMIT,
                       .by = user_name (),
                       .job = job,
                       .first = 1,
                       .last = tasks,
                       .memory = larger_memory (x->sweep) };
    size_t n = strlen (x->job);

    snprintf (job, sizeof (job), "%ld", id);
    snprintf (x->job + n, sizeof (x->job) - n, "%s%s", n ? "," : "", job);
    trust_record_job (x->sweep, job);
    if (sweep_insist (x->sweep, e, NULL, NULL, &why) < 0)
        complain ("array %s is not in the log: %s", job, why.text);
}

/* Submit 'tasks' in as few arrays as Slurm allows.  Returns how many it took,
 * -1 if none.
 */
static long submit (struct executor *x, const char *folder, long tasks, struct slurmdl_error *err)
{
    struct slurm_refusal why;
    long size = tasks;
    long done = 0;

    for (int i = 0; i < SUBMITS_MAX && done < tasks; i++) {
        long job;
        if (size > tasks - done)
            size = tasks - done;
        if ((job = submit_array (x, folder, size, &why, err)) > 0) {
            note_array (x, job, size);
            done += size;
            continue;
        }
        x->refused = done == 0 && why.no_job;
        x->never = i == 0 && why.for_good;
        if (!why.too_much || size == 1)
            break;
        size /= 2;
    }
    return done ? done : -1;
}

static int start (struct executor *x, struct slurmdl_error *err)
{
    const struct experiment *e = x->sweep->exp;
    struct slurmdl_error why = { "" };
    char folder[PATH_MAX];
    long tasks = slurm_tasks (e, x->workers);
    long taken;

    if (trust_folder (x->sweep, folder, sizeof (folder), err) < 0
        || script_write (x, folder, err) < 0)
        return -1;
    if ((taken = submit (x, folder, tasks, &why)) < 0)
        return errorf (err, "%s", why.text);
    x->granted = taken < tasks ? taken * (long)e->lanes : x->workers;
    if (taken < tasks)
        complain ("%ld of %ld workers: %.*s", x->granted, x->workers, (int)strcspn (why.text, ";"),
                  why.text);
    x->asked = monotonic () - ASK_EVERY + ASK_FIRST;
    return 0;
}

/* ---- cancel ---- */

int executor_cancel (const struct sweep *s, const char *option, struct slurmdl_error *err)
{
    char **jobs = NULL;
    int rv = 0;

    for (size_t i = s->nsubmits; i > 0 && rv == 0; i--)
        if (trust_has_job (s, s->submits[i - 1].job))
            rv = strings_add (&jobs, s->submits[i - 1].job);
    rv = rv < 0 ? errorf (err, "out of memory") : slurm_cancel (jobs, option, err);
    strings_free (jobs);
    return rv;
}

/* ---- what the user waits for ---- */

static void describe (struct executor *x, const struct slurm_job *j)
{
    bool waits = *j->reason && strcmp (j->reason, "None");
    char words[PATH_MAX + 320] = "";

    /* one that cannot begin is started again a few times */
    if (x->sweep->ntrials == 0)
        last_words_text (x->sweep, x->job, words, sizeof (words));
    snprintf (x->note, sizeof (x->note), "job %.100s: %s%s%s%s%s", x->job, j->state,
              waits ? " " : "", waits ? j->reason : "", *words ? "; its workers say: " : "", words);
}

/* Those that `dl scale` and the workers themselves have submitted since. */
static void follow_arrays (struct executor *x)
{
    for (; x->nsubmits < x->sweep->nsubmits; x->nsubmits++) {
        const char *job = x->sweep->submits[x->nsubmits].job;
        size_t n = strlen (x->job);
        const char *at = strstr (x->job, job);
        if (!at || (at > x->job && at[-1] != ',') || isdigit (at[strlen (job)]))
            snprintf (x->job + n, sizeof (x->job) - n, "%s%s", n ? "," : "", job);
    }
}

/* Slurm has no task of the arrays any more; it remembers them for minutes. */
static void explain_end (struct executor *x)
{
    char text[sizeof (x->note)];
    struct slurm_jobs jobs;

    slurm_jobs_ask (&(struct slurm_queue){ .jobs = x->job, .ended = true }, &jobs, NULL);
    unseen_text (x->sweep, x->job, jobs.n > 0 ? jobs.list[0].state : "", text, sizeof (text));
    if (*text)
        snprintf (x->note, sizeof (x->note), "%s", text);
    slurm_jobs_free (&jobs);
}

/* Only the one who watches asks Slurm, and seldom; workers never do. */
static int tick (struct executor *x)
{
    struct slurm_jobs jobs;
    enum slurm_answer answer;
    bool gone;

    if (monotonic () - x->asked < ASK_EVERY)
        return 1;
    x->asked = monotonic ();
    follow_arrays (x);
    answer = slurm_jobs_ask (&(struct slurm_queue){ .jobs = x->job }, &jobs, NULL);
    gone = answer == SLURM_NO_SUCH_JOB || (answer == SLURM_ANSWERED && jobs.n == 0);
    if (jobs.n > 0)
        describe (x, &jobs.list[0]);
    slurm_jobs_free (&jobs);
    if (gone && x->sweep->state == SWEEP_RUNNING)
        explain_end (x);
    return !gone;
}

static void leave (struct executor *x)
{
    const char *name = x->sweep->word;

    printf ("job %s goes on; 'dl watch %s' shows it, 'dl stop %s' ends it\n", x->job, name, name);
}

static void close_slurm (struct executor *x)
{
    (void)x; /* the job is Slurm's */
}

const struct executor_ops executor_slurm = {
    "slurm", start, tick, leave, close_slurm,
};
