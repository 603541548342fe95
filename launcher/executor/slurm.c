/* SPDX-License-Identifier: Apache-2.0 */
/* The executor that starts workers as job arrays. */
#include "launcher/executor/slurm.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/queries.h"
#include "launcher/executor/batch_script.h"
#include "launcher/executor/unseen.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/say.h"
#include "launcher/sys/slurm_memory.h"
#include "launcher/sys/slurm_output.h"
#include "launcher/sys/slurm_time.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/user.h"
#include "launcher/trust/trust.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

enum { ASK_FIRST = 5, ASK_EVERY = 30, TEXT_MAX = 4096, SUBMITS_MAX = 64 };

/* Below, SIGUSR2 by Slurm would take too much of an allocation: it comes up
 * to a minute early, and the worker watches the clock itself.
 */
enum { SIGNAL_FROM = 600 };

/* sbatch waits for two minutes when the controller has MaxJobCount jobs. */
static const char queue_full[] = "queue full";

/* What sbatch says when the array is too large, or more than the user may
 * submit; the rest may come in smaller ones.
 */
static const char *const too_much[] = {
    "Invalid job array specification",
    "MaxSubmitJob",
    "job submit limit",
    "GrpSubmitJob",
    queue_full,
    NULL,
};

/* What sbatch says last where the same command would never make a job. */
static const char *const for_good[] = {
    "Try \"sbatch --help\"",
    "error: Invalid --",
    "Could not establish a configuration source",
    "Invalid partition name",
    "Invalid account or account/partition",
    "Invalid qos",
    "Invalid feature",
    "Invalid license",
    "Invalid generic resource",
    "Invalid Trackable RESource",
    "Requested reservation is invalid",
    "Requested time limit is invalid",
    "Requested node configuration is not available",
    "Memory required by task is not available",
    "Memory specification can not be satisfied",
    "CPU count per node can not be satisfied",
    "CPU count specification invalid",
    "Node count specification invalid",
    "More processors requested than permitted",
    "User's group not permitted to use this partition",
    NULL,
};

/* What sbatch says where an answer may have been lost, so that there may be a
 * job, or where the same command may make one a little later.
 */
static const char *const undecided[] = {
    "ommunication",
    "essage",
    "Protocol",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "contact slurm controller",
    "Connection ",
    "No route to host",
    "Broken pipe",
    "standby",
    "temporarily",
    "try again",
    queue_full,
    NULL,
};

static const char *const no_slurm[] = {
    "Could not establish a configuration source",
    "DNS SRV lookup failed",
    NULL,
};

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
static void make_sbatch (struct command *c, const struct executor *x, const char *folder,
                         long tasks, bool hosts)
{
    const struct sweep *s = x->sweep;
    char text[PATH_MAX + 32];
    double limit = slurm_seconds (s->exp->time);

    command_add (c, "sbatch", NULL);
    command_add (c, "--parsable", NULL);
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

static bool has_one_of (const char *said, const char *const *list)
{
    for (; *list; list++)
        if (strstr (said, *list))
            return true;
    return false;
}

static bool is_for_good (const char *said, int status)
{
    const char *last = strrchr (said, '\n');

    return status > 0 && has_one_of (last ? last : said, for_good);
}

/* There is no job, or no sbatch could be run. */
static bool is_refused (const char *said, int status)
{
    return status == 126 || status == 127
           || (status > 0 && *said
               && (!has_one_of (said, undecided) || has_one_of (said, no_slurm)));
}

/* Its exit status; 'said' is the job, or what is wrong. */
static int sbatch (struct executor *x, const char *folder, long tasks, bool hosts, char *said)
{
    struct command c = { 0 };
    char script[PATH_MAX + 8];
    int status;

    make_sbatch (&c, x, folder, tasks, hosts);
    snprintf (script, sizeof (script), "%s/job.sh", folder);
    command_add (&c, "--", NULL);
    command_add (&c, script, NULL);
    status = command_run (&c, queue_full, said, TEXT_MAX);
    command_free (&c);
    /* the experiment may have run elsewhere, too */
    if (status > 0 && hosts && strstr (said, "nvalid node name"))
        return sbatch (x, folder, tasks, false, said);
    return status;
}

/* With --parsable: "JOB" or "JOB;CLUSTER", perhaps after warnings. */
static const char *job_in (char *said)
{
    char *line = strrchr (said, '\n');

    line = line ? line + 1 : said;
    line[strspn (line, "0123456789")] = '\0';
    return line;
}

/* It works already: no failure of this stops it. */
static void note_array (struct executor *x, const char *job, long tasks)
{
    struct slurmdl_error why = { "" };
    struct event e = { .op = EVENT_SUBMIT,
                       .by = user_name (),
                       .job = job,
                       .first = 1,
                       .last = tasks,
                       .memory = larger_memory (x->sweep) };
    size_t n = strlen (x->job);

    snprintf (x->job + n, sizeof (x->job) - n, "%s%s", n ? "," : "", job);
    trust_record_job (x->sweep, job);
    if (sweep_insist (x->sweep, e, NULL, NULL, &why) < 0)
        complain ("array %s is not in the log: %s", job, why.text);
}

int slurm_refused (const char *text, int status, struct slurmdl_error *err)
{
    char said[TEXT_MAX];

    command_said (said, sizeof (said), text);
    errno = EPROTO;
    if (has_one_of (said, no_slurm))
        return errorf (err, "sbatch finds no Slurm here: use --local to work on "
                            "this machine, or a host of the cluster");
    if (strstr (said, "'--dl"))
        return errorf (err,
                       "sbatch: %s: the plugin of slurm-dl is not in use here, "
                       "see dl-spank(8); leave out resources.framework, "
                       "check, bind, nccl, monitor and debug",
                       said);
    return errorf (err, "sbatch: %s%s", *said ? said : "it failed without a message",
                   status == 127 ? " (without Slurm use --local)" : "");
}

/* Submit 'tasks' in as few arrays as Slurm allows.  Returns how many it took,
 * -1 if none.
 */
static long submit (struct executor *x, const char *folder, long tasks, struct slurmdl_error *err)
{
    char said[TEXT_MAX];
    long size = tasks;
    long done = 0;
    int status;

    for (int i = 0; i < SUBMITS_MAX && done < tasks; i++) {
        if (size > tasks - done)
            size = tasks - done;
        status = sbatch (x, folder, size, true, said);
        if (status == 0 && *job_in (said)) {
            note_array (x, job_in (said), size);
            done += size;
            continue;
        }
        slurm_refused (said, status, err);
        x->refused = done == 0 && is_refused (said, status);
        x->never = i == 0 && is_for_good (said, status);
        if (!has_one_of (said, too_much) || size == 1)
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

/* ---- what the user waits for ---- */

static void describe (struct executor *x, const char *out)
{
    char words[PATH_MAX + 320] = "";

    /* one that cannot begin is started again a few times */
    if (x->sweep->ntrials == 0)
        last_words_text (x->sweep, x->job, words, sizeof (words));
    snprintf (x->note, sizeof (x->note), "job %.100s: %.*s%s%s", x->job, (int)strcspn (out, "\n"),
              out, *words ? "; its workers say: " : "", words);
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
    struct command c = { 0 };
    char out[TEXT_MAX], text[sizeof (x->note)];
    int status;

    command_add (&c, "squeue", NULL);
    command_add (&c, "--noheader", NULL);
    command_add (&c, "--states", "all");
    command_add (&c, "--format", "%T");
    command_add (&c, "--jobs", x->job);
    status = command_run (&c, NULL, out, sizeof (out));
    command_free (&c);
    out[status == 0 ? strcspn (out, " \n") : 0] = '\0';
    unseen_text (x->sweep, x->job, out, text, sizeof (text));
    if (*text)
        snprintf (x->note, sizeof (x->note), "%s", text);
}

/* Only the one who watches asks Slurm, and seldom; workers never do. */
static int tick (struct executor *x)
{
    struct command c = { 0 };
    char out[TEXT_MAX];
    int status;

    if (monotonic () - x->asked < ASK_EVERY)
        return 1;
    x->asked = monotonic ();
    follow_arrays (x);
    command_add (&c, "squeue", NULL);
    command_add (&c, "--noheader", NULL);
    command_add (&c, "--Format", "State:20,Reason:40");
    command_add (&c, "--jobs", x->job);
    status = command_run (&c, NULL, out, sizeof (out));
    command_free (&c);
    if (status == 0 && *out)
        describe (x, out);
    if ((status != 0 || *out) && !strstr (out, "Invalid job id"))
        return 1;
    if (x->sweep->state == SWEEP_RUNNING)
        explain_end (x);
    return 0;
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
