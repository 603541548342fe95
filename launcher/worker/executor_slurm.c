/* SPDX-License-Identifier: Apache-2.0 */
/* Start workers as job arrays of Slurm, and explain why none of them has begun. */
#include "launcher/config/experiment.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/resources.h"
#include "launcher/worker/worker.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "launcher/config/job_settings.h"
#include "launcher/config/log_policy.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/user.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/rank/plugin_options.h"
#include "runtime/storage/inside.h"

/* ---- why no worker has begun ---- */

enum { OUTPUT_TAIL = 16384 };

/* linux/magic.h does not define these two. */
enum { XFS_MAGIC = 0x58465342, ZFS_MAGIC = 0x2fc12fc1 };

/* ext2 and ext3 share ext4's number. */
static const struct {
    uint32_t magic;
    const char *name;
} local_file_systems[] = {
    { EXT4_SUPER_MAGIC, "ext4" },
    { XFS_MAGIC, "xfs" },
    { BTRFS_SUPER_MAGIC, "btrfs" },
    { ZFS_MAGIC, "zfs" },
    { TMPFS_MAGIC, "tmpfs" },
    { RAMFS_MAGIC, "ramfs" },
    { OVERLAYFS_SUPER_MAGIC, "overlay" },
};

const char *unseen_file_system (const char *dir)
{
    struct statfs fs;

    if (statfs (dir, &fs) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof (local_file_systems) / sizeof (*local_file_systems); i++)
        if ((uint32_t)fs.f_type == local_file_systems[i].magic)
            return local_file_systems[i].name;
    return NULL;
}

/* Whether 'name' is the output of one of the jobs, or of a task of such an array. */
static bool is_array_output (const char *name, const char *jobs)
{
    size_t length = strlen (name);

    if (length < 4 || strcmp (name + length - 4, ".log") || !word_fits (name))
        return false;
    for (size_t n; *jobs; jobs += n + (jobs[n] == ',')) {
        n = strcspn (jobs, ",");
        if (!strncmp (name, jobs, n) && strchr ("_.", name[n]))
            return true;
    }
    return false;
}

/* Find the output file that was written last.  slurmd creates a task's file before it starts the
 * task.  Returns -1 if there is none.
 */
static int newest_output (const char *folder, const char *jobs, char *name, size_t size)
{
    struct timespec newest = { 0 };
    DIR *d = opendir (folder);
    int rv = -1;

    for (struct dirent *e; d && (e = readdir (d));) {
        struct stat st;
        if (!is_array_output (e->d_name, jobs)
            || fstatat (dirfd (d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0
            || st.st_mtim.tv_sec < newest.tv_sec
            || (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec < newest.tv_nsec))
            continue;
        newest = st.st_mtim;
        snprintf (name, size, "%s", e->d_name);
        rv = 0;
    }
    if (d)
        closedir (d);
    return rv;
}

void last_words_text (const struct sweep *s, const char *jobs, char *buf, size_t size)
{
    char folder[PATH_MAX], name[NAME_MAX + 1], path[2 * PATH_MAX];
    char text[OUTPUT_TAIL + 1];
    char *line;

    *buf = '\0';
    if (trust_folder (s, folder, sizeof (folder), NULL) < 0
        || newest_output (folder, jobs, name, sizeof (name)) < 0)
        return;
    snprintf (path, sizeof (path), "%s/%s", folder, name);
    text[file_tail (inside_open_any (path, O_RDONLY, 0, NULL), text, OUTPUT_TAIL)] = '\0';
    if (!(line = slurm_last_line (text)))
        return;
    snprintf (buf, size, "%.300s", line);
    policy_text (buf);
    snprintf (buf + strlen (buf), size - strlen (buf), "; see %s", path);
}

void unseen_text (const struct sweep *s, const char *jobs, const char *state, char *buf,
                  size_t size)
{
    const char *type = unseen_file_system (s->dir);
    char folder[PATH_MAX], name[NAME_MAX + 1];

    last_words_text (s, jobs, buf, size);
    if (*buf || trust_folder (s, folder, sizeof (folder), NULL) < 0
        || newest_output (folder, jobs, name, sizeof (name)) == 0)
        return;
    if (!strncmp (state, "CANCELLED", 9))
        snprintf (buf, size, "job %.100s was cancelled before it started", jobs);
    else
        snprintf (buf, size,
                  "job %.100s%s%.20s%s has left no output in %.300s: its nodes "
                  "do not see that folder%s%s%s%s",
                  jobs, *state ? " (" : "", state, *state ? ")" : "", folder, type ? " (" : "",
                  type ? type : "", type ? ", this machine's own)" : "",
                  *state ? "" : ", or it was cancelled before it started");
}

/* ---- the batch script ---- */

/* Run a worker as a step, because Slurm 22.05 signals only steps on preemption.  If trials are
 * steps themselves, do not, because Slurm would end the trial's srun together with the worker's
 * step (step.c).
 *
 * A worker exits with 75 if its time is up, 76 if its node is excluded, 77 if it needs a job with
 * more memory, 79 if a check kept it from starting, and 11 if a fault paused its experiment.
 */
static const char setup_text[] = "DL_TIME_ASKED=$(date +%s)\n"
                                 "DL_FRESH=1\n"
                                 "export DL_PIN DL_TIME_LEFT DL_TIME_ASKED DL_FRESH\n"
                                 "unset DL_LAST_STATUS\n";
static const char cases_text[] =
    "    0 | 2 | 3 | 5 | 11) exit $status ;;\n"
    "    75 | 76 | 77 | 79) exec \"$dl\" requeue -- \"$dir\" $status ;;\n"
    "    *) export DL_FRESH=0 DL_LAST_STATUS=$status ;;\n";

/* One worker that dies must not take the other workers of the step with it. */
static char *worker_command (const struct experiment *e)
{
    char *step = experiment_has_ranks (e)
                     ? NULL
                     : slurm_step_text (&(struct slurm_step){ .nodes = 1,
                                                              .tasks = e->resources->lanes,
                                                              .cpus = e->resources->cpus,
                                                              .goes_on = true,
                                                              .of_script = true });
    char *command =
        xasprintf ("%s%s\"$dl\" worker -- \"$dir\"", step ?: "run", step ? " \\\n        " : " ");

    free (step);
    return command;
}

/* Write the script of the array tasks, job.sh, into a folder. */
static int script_write (const struct executor *x, const char *folder, struct slurmdl_error *err)
{
    char path[PATH_MAX + 8];
    char *dl = shell_word (x->dl);
    char *dir = shell_word (x->sweep->dir);
    char *out = shell_word (folder);
    char *variables = xasprintf ("dl=%s\ndir=%s\nout=%s\nDL_PIN=%s\n", dl, dir, out, x->sweep->pin);
    char *command = worker_command (x->sweep->exp);
    char *content;
    int rv;

    snprintf (path, sizeof (path), "%s/job.sh", folder);
    content = slurm_script_text (&(struct slurm_script){
        .comment = "Workers of an experiment; dl writes this file whenever it submits it.",
        .variables = variables,
        .log = "$job.log",
        .time_left = "DL_TIME_LEFT",
        .setup = setup_text,
        .command = command,
        .cases = cases_text });
    free (dl);
    free (dir);
    free (out);
    free (variables);
    free (command);
    /* replace it by rename(2), because another dl may be submitting it */
    rv = publish_replace (path, content, strlen (content), err);
    free (content);
    return rv;
}

enum { ASK_FIRST = 5, ASK_EVERY = 30, SUBMITS_MAX = 64 };

/* In shorter allocations, SIGUSR2 would cost too much of the time, because Slurm may send it up
 * to a minute early.  There the worker watches the clock itself.
 */
enum { SIGNAL_FROM = 600 };

/* ---- sbatch ---- */

long executor_tasks (const struct experiment *e, long workers)
{
    return (workers + (long)e->resources->lanes - 1) / (long)e->resources->lanes;
}

/* Bytes for an array task whose trials turned out to need more than the experiment requests, else
 * 0. */
static int64_t larger_memory (const struct sweep *s)
{
    return s->memory > s->exp->resources->memory_bytes ? s->memory * s->exp->resources->lanes : 0;
}

/* "16G" for each trial, or 'larger' bytes for all of them if that is not 0. */
static void add_sbatch_memory (struct command *c, const struct experiment *e, int64_t larger)
{
    char text[64];
    char *unit;
    long long n;

    if (larger > 0) {
        slurm_bytes_text (text, sizeof (text), larger);
        command_add (c, "--mem", text);
        return;
    }
    if (!e->resources->memory)
        return;
    n = strtoll (e->resources->memory, &unit, 10);
    snprintf (text, sizeof (text), "%lld%s", n * (long long)e->resources->lanes, unit);
    command_add (c, "--mem", e->resources->lanes > 1 ? text : e->resources->memory);
}

static void add_sbatch_plugin_option (enum plugin_option_id id, const char *key, const char *value,
                                      void *c)
{
    char name[32];

    (void)key;
    snprintf (name, sizeof (name), "--%s", plugin_options[id].name);
    command_add (c, name, value);
}

static void add_component (struct command *c, const struct job_component *k)
{
    char text[64];

    command_number (c, "--ntasks", k->members);
    command_number (c, "--cpus-per-task", k->cpus);
    if (k->gpus > 0)
        command_number (c, "--gpus-per-task", k->gpus);
    if (k->cpu_memory > 0) {
        slurm_bytes_text (text, sizeof (text), k->cpu_memory);
        command_add (c, "--mem-per-cpu", text);
    }
}

/* 'k' is the component of a job with roles, or NULL. */
static void add_resources (struct command *c, const struct experiment *e,
                           const struct job_component *k, int64_t larger)
{
    const struct resources *r = e->resources;
    int64_t nodes = experiment_job_nodes (e);
    char range[64];

    if (experiment_survives_nodes (e))
        command_add (c, "--no-kill", NULL);
    if (job_min_nodes (e) < r->nodes) {
        /* with --ntasks-per-node Slurm would give the least number of nodes */
        snprintf (range, sizeof (range), "%lld-%lld", (long long)job_min_nodes (e),
                  (long long)nodes);
        command_add (c, "--nodes", range);
        command_number (c, "--cpus-per-task", r->cpus * r->ranks);
    } else {
        if (!k || r->given.nodes)
            command_number (c, "--nodes", nodes);
        if (k)
            add_component (c, k);
        else {
            command_number (c, "--ntasks", r->lanes * nodes * r->ranks);
            command_number (c, "--ntasks-per-node", r->lanes * r->ranks);
            command_number (c, "--cpus-per-task", r->cpus);
        }
    }
    if (e->resources->node_gpus)
        command_number (c, "--gpus-per-node", e->resources->node_gpus * e->resources->lanes);
    add_sbatch_memory (c, e, larger);
    if (e->resources->partition)
        command_add (c, "--partition", e->resources->partition);
    if (e->resources->account)
        command_add (c, "--account", e->resources->account);
    if (e->resources->qos)
        command_add (c, "--qos", e->resources->qos);
    if (e->resources->time)
        command_add (c, "--time", e->resources->time);
    experiment_each_plugin_option (e, add_sbatch_plugin_option, c);
    for (char **a = e->resources->sbatch_args; a && *a; a++)
        command_add (c, *a, NULL);
}

/* Each component of a heterogeneous job has its own options. */
static void each_component (struct command *c, const struct experiment *e, int64_t larger,
                            void (*add) (struct command *c, const void *arg), const void *arg)
{
    size_t n;
    struct job_component *list = job_components (e, &n);

    for (size_t i = 0; i < (n ?: 1); i++) {
        if (i > 0)
            command_add (c, ":", NULL);
        if (add)
            add (c, arg);
        add_resources (c, e, list ? &list[i] : NULL, larger);
    }
    free (list);
}

void executor_add_resources (struct command *c, const struct experiment *e, int64_t larger)
{
    each_component (c, e, larger, NULL, NULL);
}

void executor_excluded (const struct sweep *s, char *buf, size_t size)
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

/* Slurm has no arrays of heterogeneous jobs. */
static bool is_array (const struct experiment *e)
{
    size_t n;

    free (job_components (e, &n));
    return n < 2;
}

struct array_options {
    const struct sweep *sweep;
    const char *folder; /* for the output; slurmd follows symbolic links in it */
    long tasks;
    bool hosts;
};

static void add_array_options (struct command *c, const void *arg)
{
    const struct array_options *a = arg;
    const struct sweep *s = a->sweep;
    char text[PATH_MAX + 32];
    double limit = slurm_seconds (s->exp->resources->time);

    slurm_add_requeueable (c, s->exp->name, a->folder, is_array (s->exp) ? "%A_%a.log" : "%j.log");
    if (limit == 0 || limit >= SIGNAL_FROM)
        command_add (c, "--signal", "USR2@60");
    snprintf (text, sizeof (text), "1-%ld", a->tasks);
    if (is_array (s->exp))
        command_add (c, "--array", text);
    executor_excluded (s, text, sizeof (text));
    if (a->hosts && *text)
        command_add (c, "--exclude", text);
}

/* Return the job's ID, or -1 with 'why' and 'err'. */
static long submit_array (const struct executor *x, const char *folder, long tasks,
                          struct slurm_refusal *why, struct slurmdl_error *err)
{
    char script[PATH_MAX + 8];
    long job = -1;

    snprintf (script, sizeof (script), "%s/job.sh", folder);
    *why = (struct slurm_refusal){ .unknown_node = true };
    /* the excluded nodes may be another cluster's, where the experiment ran before */
    for (int hosts = 1; hosts >= 0 && job < 0 && why->unknown_node; hosts--) {
        const struct array_options options = { x->sweep, folder, tasks, hosts };
        struct command c = { 0 };
        each_component (&c, x->sweep->exp, larger_memory (x->sweep), add_array_options, &options);
        command_add (&c, "--", NULL);
        command_add (&c, script, NULL);
        job = slurm_submit (&c, why, err);
    }
    return job;
}

/* The array already runs, so go on even if its event cannot be logged. */
static void note_array (struct executor *x, long id, long tasks)
{
    char job[32];
    struct slurmdl_error why = { "" };
    struct event e = { .op = EVENT_SUBMIT,
                       .by = user_name (),
                       .job = job,
                       .first = is_array (x->sweep->exp),
                       .last = is_array (x->sweep->exp) ? tasks : 0,
                       .memory = larger_memory (x->sweep) };
    size_t n = strlen (x->job);

    snprintf (job, sizeof (job), "%ld", id);
    snprintf (x->job + n, sizeof (x->job) - n, "%s%s", n ? "," : "", job);
    trust_record_job (x->sweep, job);
    if (sweep_insist (x->sweep, e, NULL, NULL, &why) < 0)
        complain ("array %s is not in the log: %s", job, why.text);
}

/* Submit 'tasks' in as few arrays as Slurm allows.  Returns how many tasks it accepted, or -1 if
 * none. */
static long submit_tasks (struct executor *x, const char *folder, long tasks,
                          struct slurmdl_error *err)
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

/* Members that need more cores than a node or the partition has would wait forever. */
static int check_member_cores (struct executor *x, struct slurmdl_error *err)
{
    static const char *const overcommit[] = { "--overcommit", "-O", NULL };
    const struct experiment *e = x->sweep->exp;
    const char *name = e->resources->partition;
    const char *where = name ? "partition " : "the default partition";
    int64_t cores = 0, each = 0;
    size_t n;
    struct job_component *list = job_components (e, &n);
    long most;

    for (size_t i = 0; i < n; i++) {
        cores += list[i].members * list[i].cpus;
        each = list[i].cpus > each ? list[i].cpus : each;
    }
    free (list);
    if (n == 0 || experiment_has_option (e, overcommit))
        return 0;
    x->refused = x->never = true;
    if ((most = slurm_partition_largest (name)) > 0 && each > most)
        return errorf (
            err,
            "job.roles: a member with %lld cores fits on no node of %s%.64s: the largest has %ld",
            (long long)each, where, name ?: "", most);
    if ((most = slurm_partition_cpus (name)) > 0 && cores > most)
        return errorf (err, "job.roles: the members need %lld cores, more than the %ld of %s%.64s",
                       (long long)cores, most, where, name ?: "");
    x->refused = x->never = false;
    return 0;
}

/* A job that requests more nodes than its partition has would wait forever. */
static int check_partition (struct executor *x, struct slurmdl_error *err)
{
    static const char *const partition[] = { "--partition", "-p", NULL };
    const struct experiment *e = x->sweep->exp;
    const struct resources *r = e->resources;
    int64_t least = r->spares ? experiment_job_nodes (e) : job_min_nodes (e);
    char spares[64] = "";
    long most;

    if (experiment_has_option (e, partition))
        return 0;
    if (least <= 1 || (most = slurm_partition_nodes (r->partition)) <= 0 || least <= most)
        return check_member_cores (x, err);
    x->refused = x->never = true;
    if (r->spares)
        snprintf (spares, sizeof (spares), " and %lld spare%s", (long long)r->spares,
                  r->spares == 1 ? "" : "s");
    return errorf (
        err, "resources.%s: %lld node%s%s are more than the %ld that a job of %s%.64s can have",
        r->spares ? "spares" : "nodes_per_trial", (long long)(least - r->spares),
        least - r->spares == 1 ? "" : "s", spares, most,
        r->partition ? "partition " : "the default partition", r->partition ? r->partition : "");
}

static int start_slurm (struct executor *x, struct slurmdl_error *err)
{
    const struct experiment *e = x->sweep->exp;
    struct slurmdl_error why = { "" };
    char folder[PATH_MAX];
    long tasks = executor_tasks (e, x->workers);
    long taken;

    if (trust_folder (x->sweep, folder, sizeof (folder), err) < 0
        || script_write (x, folder, err) < 0)
        return -1;
    if (check_partition (x, err) < 0)
        return -1;
    if ((taken = submit_tasks (x, folder, tasks, &why)) < 0)
        return errorf (err, "%s", why.text);
    x->granted = taken < tasks ? taken * (long)e->resources->lanes : x->workers;
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
    int rv;

    for (size_t i = s->nsubmits; i > 0; i--)
        if (trust_has_job (s, s->submits[i - 1].job))
            strings_add (&jobs, s->submits[i - 1].job);
    rv = slurm_cancel (jobs, option, err);
    strings_free (jobs);
    return rv;
}

/* ---- status of the job ---- */

static void describe_job (struct executor *x, const struct slurm_job *j)
{
    bool waits = *j->reason && strcmp (j->reason, "None");
    bool in_vain =
        !strcmp (j->reason, "PartitionConfig") || !strcmp (j->reason, "PartitionNodeLimit");
    char words[PATH_MAX + 320] = "";

    /* the batch script restarts a worker that cannot begin a few times */
    if (x->sweep->ntrials == 0)
        last_words_text (x->sweep, x->job, words, sizeof (words));
    snprintf (x->note, sizeof (x->note), "job %.100s: %s%s%s%s%s%s", x->job, j->state,
              waits ? " " : "", waits ? j->reason : "",
              in_vain ? ": the partition does not have what the job requests now" : "",
              *words ? "; its workers say: " : "", words);
}

/* Add the arrays that `dl scale` and workers have submitted since. */
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

/* Explain why no task of the arrays is left.  Slurm remembers ended jobs for some minutes. */
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

/* Only a dl that follows the experiment polls Slurm, and rarely.  Workers never do. */
static bool tick_slurm (struct executor *x)
{
    struct slurm_jobs jobs;
    enum slurm_answer answer;
    bool gone;

    if (monotonic () - x->asked < ASK_EVERY)
        return true;
    x->asked = monotonic ();
    follow_arrays (x);
    answer = slurm_jobs_ask (&(struct slurm_queue){ .jobs = x->job }, &jobs, NULL);
    gone = answer == SLURM_NO_SUCH_JOB || (answer == SLURM_ANSWERED && jobs.n == 0);
    if (jobs.n > 0)
        describe_job (x, &jobs.list[0]);
    slurm_jobs_free (&jobs);
    if (gone && x->sweep->state == SWEEP_RUNNING)
        explain_end (x);
    return !gone;
}

static void leave_slurm (struct executor *x)
{
    const char *name = x->sweep->word;

    printf ("job %s continues; 'dl watch %s' shows it, 'dl stop %s' ends it\n", x->job, name, name);
}

static void close_slurm (struct executor *x)
{
    (void)x; /* the jobs continue */
}

const struct executor_ops executor_slurm = {
    "slurm", start_slurm, tick_slurm, leave_slurm, close_slurm,
};

/* ---- the choice of the executor ---- */

void executor_open (struct executor *x, struct sweep *sweep, bool local, long workers)
{
    *x = (struct executor){
        .ops = local ? &executor_local : &executor_slurm,
        .sweep = sweep,
        .workers = workers ? workers : trust_workers (sweep),
        .nsubmits = sweep->nsubmits,
    };
    own_program (x->dl);
}
