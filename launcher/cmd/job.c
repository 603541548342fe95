/* SPDX-License-Identifier: Apache-2.0 */
/* dl job: run a program, and restart it when it fails. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/start.h"
#include "launcher/config/edit.h"
#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/resources.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/user.h"
#include "launcher/worker/worker.h"
#include "runtime/base/environment.h"
#include "runtime/storage/inside.h"

/* ---- the experiment ---- */

static bool ends_with (const char *text, const char *end)
{
    size_t n = strlen (text), m = strlen (end);

    return n > m && !strcmp (text + n - m, end);
}

/* Whether the argument is a file that describes a job. */
static bool is_file (const char *word)
{
    return ends_with (word, ".conf") || ends_with (word, ".yaml") || ends_with (word, ".yml");
}

/* Name the job "train" for "python3 -u dir/train.py", or else after the program. */
static void name_job (char *const *argv, char *name, size_t size)
{
    const char *word = argv[0];
    char *dot;

    for (int i = 1; argv[i]; i++)
        if (*argv[i] != '-') {
            word = ends_with (argv[i], ".py") || ends_with (argv[i], ".sh") ? argv[i] : word;
            break;
        }
    snprintf (name, size, "%.60s", strrchr (word, '/') ? strrchr (word, '/') + 1 : word);
    if ((dot = strrchr (name, '.')) && dot > name)
        *dot = '\0';
    for (char *c = name; *c; c++)
        if (!strchr ("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", *c))
            *c = '_';
    if (!*name || *name == '-')
        snprintf (name, size, "job");
}

/* Read a variable that Slurm sets in batch scripts and under salloc. */
static long allocation_number (const char *name)
{
    return (long)environment_number (name, 0);
}

/* Return the number of nodes from the options or else from the allocation without its
 * spares, or 0.
 */
static long job_nodes (const struct job_options *opt, long spares)
{
    long nodes = slurm_in_allocation () ? allocation_number ("SLURM_JOB_NUM_NODES") : 0;

    return opt->nodes ? (long)opt->nodes : nodes > spares ? nodes - spares : nodes;
}

/* Slurm sets SLURM_NTASKS_PER_NODE only if the user gave it. */
static long job_ranks (const struct job_options *opt, long nodes)
{
    long tasks = allocation_number ("SLURM_NTASKS");

    if (opt->ranks || !slurm_in_allocation ())
        return (long)opt->ranks;
    if (allocation_number ("SLURM_NTASKS_PER_NODE") > 0)
        return allocation_number ("SLURM_NTASKS_PER_NODE");
    return nodes > 0 && tasks > nodes && tasks % nodes == 0 ? tasks / nodes : 0;
}

/* Express the options as --set arguments.  The user's own --set come last, so they
 * override the options.
 */
static char **sets_of (const struct job_options *opt)
{
    char **sets = NULL;

    if (opt->nodes)
        strings_addf (&sets, "resources.nodes_per_trial=%ld", (long)opt->nodes);
    if (opt->ranks)
        strings_addf (&sets, "resources.ranks_per_node=%ld", (long)opt->ranks);
    if (opt->framework)
        strings_addf (&sets, "resources.framework=\"%s\"", opt->framework);
    if (opt->name)
        strings_addf (&sets, "name=\"%s\"", opt->name);
    for (char **set = opt->start.sets; set && *set; set++)
        strings_add (&sets, *set);
    return sets;
}

static void set_config_number (config_t *cf, const char *key, long value)
{
    config_setting_t *s;
    config_t one;

    if (value <= 0)
        return;
    config_init (&one);
    s = config_setting_add (config_root_setting (&one), "value", CONFIG_TYPE_INT);
    config_setting_set_int (s, (int)value);
    edit_put (cf, key, s);
    config_destroy (&one);
}

struct job_line {
    char *const *words;
    const struct job_options *opt;
    long spares;
};

/* Use the nodes of the allocation.  Roles define their own number of processes and
 * resources, so leave them alone.
 */
static void put_allocation (config_t *cf, const struct job_line *job, bool file)
{
    const struct job_options *opt = job->opt;
    bool roles = config_lookup (cf, "job.roles");
    long nodes = job_nodes (opt, job->spares);

    for (char **set = opt->start.sets; set && *set; set++)
        roles |= !strncmp (*set, "job.roles", 9) || !strncmp (*set, "job=", 4);
    if (!slurm_in_allocation () || roles)
        return;
    set_config_number (cf, "resources.nodes_per_trial", nodes);
    set_config_number (cf, "resources.ranks_per_node", file ? 0 : job_ranks (opt, nodes));
    set_config_number (cf, "resources.cpus_per_trial", allocation_number ("SLURM_CPUS_PER_TASK"));
}

/* Fill in what the file of a job would contain for this program. */
static void put_program (config_t *cf, const void *arg)
{
    const struct job_line *job = arg;
    config_setting_t *root = config_root_setting (cf);
    config_setting_t *list;
    char name[64];

    name_job (job->words, name, sizeof (name));
    config_setting_set_string (config_setting_add (root, "name", CONFIG_TYPE_STRING), name);
    list = config_setting_add (root, "entrypoint", CONFIG_TYPE_LIST);
    for (char *const *word = job->words; *word; word++)
        config_setting_set_string (config_setting_add (list, NULL, CONFIG_TYPE_STRING), *word);
    config_setting_set_string (config_setting_add (root, "working_folder", CONFIG_TYPE_STRING),
                               "trial");
    config_setting_add (root, "job", CONFIG_TYPE_GROUP);
    put_allocation (cf, job, false);
}

/* Treat a file without the group "job" as a job, too. */
static void put_job_group (config_t *cf, const void *arg)
{
    const struct job_line *job = arg;

    if (!config_lookup (cf, "job"))
        config_setting_add (config_root_setting (cf), "job", CONFIG_TYPE_GROUP);
    put_allocation (cf, job, true);
}

static int read_with_spares (const struct command_line *line, long spares, struct experiment **e)
{
    const struct job_options *opt = line->options;
    char *here = realpath (".", NULL);
    const bool file = is_file (line->args[0]);
    char **sets = sets_of (opt);
    const struct job_line job = { line->args, opt, spares };
    struct edit edit = { .file = file ? NULL : "",
                         .dir = file ? NULL : here,
                         .f = file ? put_job_group : put_program,
                         .arg = &job,
                         .sets = sets };
    int rv = read_experiment (file ? line->args[0] : "dl job", &edit, e);

    if (rv == 0 && !slurm_in_allocation ())
        rv = gpus_to_nodes (e, line->args[0], &edit, &opt->start);
    strings_free (sets);
    free (here);
    return rv;
}

/* Check that the existing allocation has enough nodes. */
static int check_job_spares (const struct experiment *e)
{
    long nodes = allocation_number ("SLURM_JOB_NUM_NODES");

    if (!slurm_in_allocation () || nodes == 0
        || e->resources->nodes + e->resources->spares <= nodes)
        return 0;
    complain (
        "job: %lld node%s and %lld spare%s (resources.spares) are more than the %ld of job %s",
        (long long)e->resources->nodes, e->resources->nodes == 1 ? "" : "s",
        (long long)e->resources->spares, e->resources->spares == 1 ? "" : "s", nodes,
        getenv ("SLURM_JOB_ID"));
    return EXIT_USAGE;
}

static int read_job_file (const struct command_line *line, struct experiment **e)
{
    int rv;

    if (is_file (line->args[0]) && line->args[1]) {
        complain ("job: '%s' follows the file '%s'; options come before it", line->args[1],
                  line->args[0]);
        return EXIT_USAGE;
    }
    if (is_file (line->args[0]) && refuse_experiment (line, line->args[0]))
        return EXIT_USAGE;
    if ((rv = read_with_spares (line, 0, e)) == 0 && slurm_in_allocation ()
        && (*e)->resources->spares > 0) {
        long spares = (long)(*e)->resources->spares;
        experiment_destroy (*e);
        rv = read_with_spares (line, spares, e);
    }
    if (rv == 0 && (rv = check_job_spares (*e)))
        experiment_destroy (*e);
    return rv;
}

/* ---- inside an allocation ---- */

/* The experiment that this job created before Slurm requeued it. */
struct earlier_job {
    const struct experiment *exp;
    char found[PATH_MAX];
    bool is_open;
};

static bool is_of_job (const struct sweep *s, const char *job)
{
    for (size_t i = 0; i < s->nsubmits; i++)
        if (!strcmp (s->submits[i].job, job))
            return true;
    return false;
}

/* Prefer the first one that has not ended; otherwise keep the last. */
static int look_at_earlier (const char *dir, void *arg)
{
    struct earlier_job *e = arg;
    struct slurmdl_error err = { "" };
    struct problems p;
    struct sweep *s;

    if (e->is_open)
        return 0;
    problems_open (&p);
    s = sweep_open (dir, &p, &err);
    if (s && s->owner == geteuid () && is_of_job (s, getenv ("SLURM_JOB_ID")) && e->exp->text
        && s->frozen && !strcmp (s->frozen, e->exp->text)) {
        snprintf (e->found, sizeof (e->found), "%s", dir);
        e->is_open = !sweep_has_ended (s);
    }
    sweep_close (s);
    problems_close (&p);
    free (p.text);
    return 0;
}

static bool find_earlier (const struct experiment *e, const struct command_line *line,
                          char dir[PATH_MAX])
{
    struct earlier_job found = { .exp = e };

    if (allocation_number ("SLURM_RESTART_COUNT") <= 0)
        return false;
    each_experiment (line->dir, look_at_earlier, &found);
    snprintf (dir, PATH_MAX, "%s", found.found);
    return *dir;
}

/* Record the job, so that it finds the experiment after a requeue and dl show can name
 * it.
 */
static int note_job (struct sweep *s, struct slurmdl_error *err)
{
    struct event e = { .op = EVENT_SUBMIT,
                       .by = user_name (),
                       .job = getenv ("SLURM_JOB_ID"),
                       .first = 0,
                       .last = 0 };

    return sweep_insist (s, e, NULL, NULL, err);
}

static volatile pid_t worker;

static void forward_to_worker (int sig)
{
    int e = errno;

    if (worker > 0)
        kill (worker, sig);
    errno = e;
}

/* Forward the signals that ask this process to stop.  The worker expects that Slurm may
 * send the same signal to both processes.
 */
static void pass_signals (void)
{
    struct sigaction action = { .sa_handler = forward_to_worker };

    sigaction (SIGTERM, &action, NULL);
    sigaction (SIGUSR2, &action, NULL);
    signal (SIGINT, SIG_IGN);
}

static pid_t start_worker (const struct sweep *s, int last)
{
    char dl[PATH_MAX], status[16];
    char *argv[] = { dl, "worker", "--trust", "--", s->dir, NULL };
    const struct spawn command = { .argv = argv, .io = { -1, 1, 2 }, .death_signal = SIGTERM };

    own_program (dl);
    setenv ("DL_PIN", s->pin, 1);
    setenv ("DL_FRESH", last < 0 ? "1" : "0", 1);
    snprintf (status, sizeof (status), "%d", last);
    if (last >= 0)
        setenv ("DL_LAST_STATUS", status, 1);
    return subprocess_spawn (&command);
}

/* The output of the attempts. */
struct output {
    const char *dir;
    long attempt; /* whose log is open, or will be next */
    int fd;
};

static void print_new (struct output *o)
{
    char buf[65536];
    ssize_t n;

    while (o->fd >= 0 && (n = read (o->fd, buf, sizeof (buf))) > 0)
        fwrite (buf, 1, (size_t)n, stdout);
    fflush (stdout);
}

/* Print the logs of all attempts in order. */
static void print_logs (struct output *o)
{
    char path[PATH_MAX];
    int next;

    for (;;) {
        print_new (o);
        snprintf (path, sizeof (path), "%s/trials/0001/a.%ld/log", o->dir, o->attempt + 1);
        if ((next = inside_open (path, O_RDONLY, 0, NULL)) < 0)
            return;
        print_new (o);
        if (o->fd >= 0)
            close (o->fd);
        o->fd = next;
        o->attempt++;
    }
}

enum { TRIES = 20, LOOK_MS = 300 };

/* Return the worker's exit status. */
static int wait_for_worker (pid_t pid, struct output *o)
{
    int status;

    while (waitpid (pid, &status, WNOHANG) == 0) {
        print_logs (o);
        poll (NULL, 0, LOOK_MS);
    }
    print_logs (o);
    return shell_status (status);
}

/* Whether the worker is done.  After any other status, such as being killed, it is
 * restarted.
 */
static bool is_final (int status)
{
    static const int final[] = { EXIT_OK,     EXIT_USAGE, EXIT_DAMAGED,  EXIT_FAULT,
                                 EXIT_PARKED, EXIT_SMALL, EXIT_EXCLUDED, EXIT_BAD_NODE };

    for (size_t i = 0; i < sizeof (final) / sizeof (*final); i++)
        if (status == final[i])
            return true;
    return false;
}

/* If the job was requeued, earlier attempts have been printed already. */
static int run_worker (const struct sweep *s)
{
    struct output o = { .dir = s->dir, .fd = -1 };
    int status = -1;

    if (s->ntrials > 0)
        o.attempt = trial_attempts (s, sweep_trial (s, 1));
    pass_signals ();
    for (int i = 0; i < TRIES && !is_final (status); i++) {
        if ((worker = start_worker (s, status)) < 0) {
            complain ("worker: %s", strerror (errno));
            return EXIT_IO;
        }
        status = wait_for_worker (worker, &o);
        worker = 0;
    }
    if (o.fd >= 0)
        close (o.fd);
    return status;
}

/* The allocation is lost.  Requeue a batch job, which ends this process, and avoid the
 * excluded nodes.  If the worker asks for nothing, this run of the job is over: Slurm may already
 * have started the next one.
 */
static void requeue_or_complain (const struct sweep *s, int status)
{
    const char *batch = getenv ("ENVIRONMENT");
    char hosts[PATH_MAX];

    if (status != EXIT_OK && batch && !strcmp (batch, "BATCH")) {
        complain ("%s continues when Slurm restarts job %s", s->word, getenv ("SLURM_JOB_ID"));
        executor_excluded (s, hosts, sizeof (hosts));
        if (allocation_requeue (hosts) == 0)
            return;
    }
    complain ("%s has not ended; run 'dl resume %s' to continue", s->word, s->word);
}

static int print_job_end (struct sweep *s)
{
    const struct conditions *c = job_conditions (s);
    const struct condition_entry *now = &c->list[c->last];

    fprintf (stderr, "dl: job %s: %s: %s%s%s; see 'dl show %s'\n", s->word,
             condition_names[c->last], condition_reason_word (now->reason) ?: "",
             now->message ? ": " : "", now->message ? now->message : "", s->word);
    return follow_status (s);
}

static int run_here (struct sweep *s)
{
    struct slurmdl_error err = { "" };
    int status;

    if (note_job (s, &err) < 0)
        return fail_on (s, &err);
    fprintf (stderr, "dl: job %s on %s\n", s->dir,
             environment_text ("SLURM_JOB_NODELIST", "the nodes of its components"));
    status = run_worker (s);
    if (sweep_sync (s, &err) < 0)
        return fail_on (s, &err);
    if (sweep_has_ended (s) || s->state == SWEEP_PAUSED)
        return print_job_end (s);
    requeue_or_complain (s, status);
    return status ?: EXIT_STOPPED;
}

/* Whether the surrounding heterogeneous job has as many components as the roles need.
 */
static bool fits_here (const struct experiment *e)
{
    long here = slurm_components ();
    size_t n;

    free (job_components (e, &n));
    if (here < 2 || here == (long)n)
        return true;
    complain (
        "job: this Slurm job has %ld components, but the roles need %zu: one for each group of "
        "adjacent roles with the same resources",
        here, n ?: 1);
    return false;
}

/* Whether the surrounding job has a core for all members; otherwise srun would fail. */
static bool job_has_cores (const struct experiment *e)
{
    long here = slurm_allocated_cpus ();
    int64_t each = 0;
    size_t n;
    struct job_component *list = job_components (e, &n);

    for (size_t i = 0; i < n; i++)
        each = list[i].cpus > each ? list[i].cpus : each;
    free (list);
    if (n == 0 || here == 0 || slurm_components () > 1 || getenv ("SLURM_OVERCOMMIT")
        || each * job_members (e->job) <= here)
        return true;
    complain (
        "job: %lld member%s (job.roles) with %lld core%s each are more than the %ld core%s of "
        "job %s",
        (long long)job_members (e->job), job_members (e->job) == 1 ? "" : "s", (long long)each,
        each == 1 ? "" : "s", here, here == 1 ? "" : "s", getenv ("SLURM_JOB_ID"));
    return false;
}

/* Whether the surrounding job has GPUs for the roles.  salloc --gres sets no variable where it was
 * called, only on the nodes of the job: ask Slurm there.
 */
static bool job_has_gpus (const struct experiment *e)
{
    if (job_most_gpus (e->job) == 0 || slurm_components () > 1)
        return true;
    for (char **v = environ; *v; v++) {
        const char *gpu = strstr (*v, "GPU");
        if ((!strncmp (*v, "SLURM_", 6) && gpu && gpu < strchr (*v, '='))
            || !strncmp (*v, "CUDA_VISIBLE_DEVICES=", 21))
            return true;
    }
    if (!getenv ("SLURMD_NODENAME") && !slurm_job_lacks_gpus (getenv ("SLURM_JOB_ID")))
        return true;
    complain ("job: the roles need %lld GPU%s, but job %s has none", (long long)job_gpus (e->job),
              job_gpus (e->job) == 1 ? "" : "s", getenv ("SLURM_JOB_ID"));
    return false;
}

static int job_here (struct experiment *e, const struct command_line *line)
{
    const struct job_options *opt = line->options;
    char dir[PATH_MAX];
    struct sweep *s;
    int rv;

    if (!find_earlier (e, line, dir))
        return make_new_and (e, line, &opt->start, run_here);
    experiment_destroy (e);
    if ((rv = open_to_run (line, true, dir, &s)))
        return rv;
    rv = sweep_has_ended (s) ? print_job_end (s) : run_here (s);
    sweep_close (s);
    return rv;
}

int cmd_job (const struct command_line *line)
{
    const struct job_options *opt = line->options;
    struct experiment *e;
    int rv = read_job_file (line, &e);

    if (rv)
        return rv;
    if (opt->start.local || e->job->is_suspended || !slurm_in_allocation ())
        return run_new (e, line, &opt->start);
    if (!fits_here (e) || !job_has_cores (e) || !job_has_gpus (e)) {
        experiment_destroy (e);
        return EXIT_USAGE;
    }
    return opt->start.dry_run ? run_new (e, line, &opt->start) : job_here (e, line);
}
