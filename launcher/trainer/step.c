/* SPDX-License-Identifier: Apache-2.0 */
/* A trial of several ranks: a step of the worker's job, and the command of each rank in it. */
#include "launcher/trainer/trainer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/resources.h"
#include "launcher/heal/heal.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"

/* Seconds for srun to end its step. */
enum { END_WAIT = 15 };

/* This program with one of its own commands, which runs the command that follows. */
static void add_own_command (char ***words, const char *command)
{
    char dl[PATH_MAX];

    own_program (dl);
    strings_add (words, dl);
    strings_add (words, command);
    strings_add (words, "--");
}

void within_command (char ***words)
{
    add_own_command (words, "within");
}

/* In a heterogeneous job, each component starts its own tasks.  In other jobs every task gets the
 * cores of the role that needs most.  If all members need the same, each sees only its own GPUs,
 * except with torch, which picks GPU number LOCAL_RANK among all.
 */
static void role_step_words (const struct trial_attempt *a, char ***words)
{
    const struct experiment *e = a->sweep->exp;
    size_t n;
    struct job_component *list = job_components (e, &n);
    bool het = slurm_components () > 1;
    bool torch = e->plugin->framework && !strcmp (e->plugin->framework, "torch");
    struct slurm_step step = { .tasks = job_members (e->job),
                               .gpus = n == 1 && !torch ? list[0].gpus : 0,
                               .goes_on = true };

    if (het) {
        step.tasks = 0;
        step.components = (long long)n;
    } else if (a->nodes || e->resources->given.nodes) {
        step.nodes = a->nodes ? a->nnodes : e->resources->nodes;
        step.node = a->nodes;
    }
    for (size_t i = 0; i < n && !het; i++)
        if (list[i].cpus > step.cpus)
            step.cpus = list[i].cpus;
    step.no_kill = experiment_survives_nodes (e);
    slurm_step_words (&step, words);
    free (list);
}

/* The number of nodes of the step: those chosen for the attempt, else those that Slurm gave to a
 * job with a minimum, else as in the experiment.
 */
static long long step_nodes (const struct trial_attempt *a)
{
    const struct experiment *e = a->sweep->exp;

    if (a->nodes)
        return a->nnodes;
    return job_min_nodes (e) < e->resources->nodes
               ? environment_number ("SLURM_JOB_NUM_NODES", e->resources->nodes)
               : e->resources->nodes;
}

/* A single rank gets all cores of the job on its node, as if the batch script had started it. */
void step_command (const struct trial_attempt *a, bool proxy, char ***words)
{
    const struct experiment *e = a->sweep->exp;
    const long long nodes = step_nodes (a);
    const struct slurm_step step = { .nodes = nodes,
                                     .tasks = nodes * e->resources->ranks,
                                     .tasks_per_node = e->resources->ranks,
                                     .cpus = e->resources->is_step ? 0 : e->resources->cpus,
                                     .node = a->nodes,
                                     .no_kill = experiment_survives_nodes (e) };

    if (e->job->nroles > 0)
        role_step_words (a, words);
    else
        slurm_step_words (&step, words);
    experiment_add_plugin_options (e, words);
    if (proxy)
        add_own_command (words, "rank");
}

/* SIGTERM makes srun end its step, which a killed srun cannot do. srun forwards SIGUSR2 to the
 * ranks (dl rank, below).
 */
void step_signal (pid_t srun, int signal, double *ended)
{
    if (signal == SIGTERM)
        kill (srun, SIGUSR2);
    else if (*ended == 0) {
        *ended = monotonic ();
        kill (srun, SIGTERM);
    } else if (monotonic () - *ended > END_WAIT)
        kill (srun, SIGKILL);
}

void step_end (pid_t srun, double *ended)
{
    while (waitpid (srun, NULL, WNOHANG) == 0) {
        step_signal (srun, SIGKILL, ended);
        usleep (50000);
    }
}

/* ---- dl rank: one rank ---- */

/* srun forwards SIGUSR2 to all processes of its step, but on SIGTERM it kills them.  So the worker
 * sends SIGUSR2, which the command ignores unless it installs a handler, and dl rank sends the
 * command its SIGTERM.
 *
 * A SIGTERM from Slurm (preemption) reaches the command, too, unless Slurm signals only the tasks.
 * Its exit is no result then: dl rank waits for Slurm to kill and requeue the job.
 */

/* Slurm signals one process after the other: the command may exit before the SIGTERM that caused it
 * arrives here.
 */
enum { LATE_MS = 200, BEAT_MS = 1000, LOOK_SECONDS = 5 };

struct rank_proxy {
    pid_t pid;      /* 0: the program does not run */
    bool ends;      /* the program must not run any more */
    char *statuses; /* after which it restarts alone, "1-127,130-255"; NULL: it does not */
    double delay;   /* before it last restarted alone */
    int signals;
    bool asked;
    bool preempted;
    bool asked_slurm;
    double look;               /* when to look for the next attempt */
    struct heal_rank *watched; /* NULL: the worker does not watch it */
};

static const int rank_signals[] = { SIGTERM, SIGUSR2, SIGCHLD };

/* Whether a worker has begun the next attempt. */
static bool has_successor (void)
{
    const char *dir = environment_text ("DL_ATTEMPT_DIR", "");
    const char *dot = strrchr (dir, '.');
    char next[PATH_MAX];

    if (!dot)
        return false;
    snprintf (next, sizeof (next), "%.*s.%ld", (int)(dot - dir), dir,
              strtol (dot + 1, NULL, 10) + 1);
    return access (next, F_OK) == 0;
}

static void signal_program (const struct rank_proxy *r, int signal)
{
    if (r->pid > 0)
        kill (-r->pid, signal);
}

/* Tell in the attempt's folder, as the worker would (launcher/worker/heal.h). */
static void note_requeue (const char *why)
{
    const char *dir = environment_text ("DL_ATTEMPT_DIR", NULL);
    char path[PATH_MAX];
    FILE *f;

    complain ("rank: %s: the job goes back into the queue", why);
    if (!dir || snprintf (path, sizeof (path), "%s/" HEALING_NAME, dir) >= (int)sizeof (path)
        || !(f = fopen (path, "ae")))
        return;
    fprintf (f, "%lld %s: the job goes back into the queue\n", (long long)time (NULL), why);
    fclose (f);
}

/* If the host of the batch script is lost, Slurm requeues the job, but not a job that was submitted
 * with --no-kill: that would keep its other nodes for ever, without a worker.  If it is this host
 * that was cut off, Slurm does not answer, and if only the link to the worker broke, the worker has
 * had Slurm end this step.
 */
static void requeue_abandoned (struct rank_proxy *r)
{
    struct slurmdl_error err = { "" };
    char job[80];
    char *nodes;

    if (environment_number ("SLURM_LOCALID", 0) != 0 || slurm_components () > 1)
        return;
    slurm_own_job (job);
    nodes = slurm_nodes_of_job (job);
    if (nodes && heal_rank_is_abandoned (r->watched) && !has_successor ()) {
        if (slurm_requeue (job, &err) < 0)
            complain ("rank: %s", err.text);
        else
            note_requeue (heal_rank_is_frozen (r->watched)
                              ? "the worker of the job has sent nothing for 5 minutes"
                              : "the host of the worker does not answer");
    }
    free (nodes);
}

/* If the worker is frozen, no other attempt has begun.  Its srun may live, and would end all ranks
 * as soon as the program of one is killed, so ask Slurm first.
 */
static void end_abandoned (struct rank_proxy *r)
{
    r->ends = true;
    if (!r->watched || !heal_rank_is_frozen (r->watched))
        signal_program (r, SIGKILL);
    if (!r->asked_slurm && r->watched && heal_rank_fd (r->watched) < 0) {
        r->asked_slurm = true;
        requeue_abandoned (r);
    }
    signal_program (r, SIGKILL);
}

/* A worker that is killed while its step starts may leave ranks that have never reached it.  They
 * must not train beside the next attempt.
 */
static bool is_replaced (struct rank_proxy *r)
{
    if ((r->watched && heal_rank_fd (r->watched) >= 0) || monotonic () < r->look)
        return false;
    r->look = monotonic () + LOOK_SECONDS;
    return has_successor ();
}

/* Whether "1-127,130-255" has the number. */
static bool range_has (const char *list, long n)
{
    for (char *end; *list; list = end + (*end == ',')) {
        long first = strtol (list, &end, 10),
             last = *end == '-' ? strtol (end + 1, &end, 10) : first;
        if (end == list || (n >= first && n <= last))
            return end != list;
    }
    return false;
}

/* Find out whether this rank restarts alone: "4-4:1-127,130-255" (job_settings.h). */
static void find_own_statuses (struct rank_proxy *r)
{
    const char *text = environment_text (ALONE_VARIABLE, "");
    const char *colon = strchr (text, ':');
    char ranks[64];

    if (colon && snprintf (ranks, sizeof (ranks), "%.*s", (int)(colon - text), text) < 64
        && range_has (ranks, (long)environment_number ("SLURM_PROCID", -1)))
        r->statuses = xstrdup (colon + 1);
    unsetenv (ALONE_VARIABLE);
}

static void watch_rank_signals (struct rank_proxy *r)
{
    sigset_t set;

    sigemptyset (&set);
    for (size_t i = 0; i < sizeof (rank_signals) / sizeof (*rank_signals); i++)
        sigaddset (&set, rank_signals[i]);
    sigprocmask (SIG_BLOCK, &set, NULL);
    r->signals = signalfd (-1, &set, SFD_CLOEXEC);
}

/* proctrack/cgroup sends signals other than SIGKILL only to the processes that Slurm itself
 * started. The freezer's cgroup (version 1) is its own; version 2 has one for all.
 */
static bool slurm_signals_only_tasks (void)
{
    FILE *f = fopen ("/proc/self/cgroup", "re");
    char line[PATH_MAX];
    bool has = false;

    while (f && !has && fgets (line, sizeof (line), f))
        has = (strstr (line, ":freezer:") || !strncmp (line, "0::", 3)) && strstr (line, "/step_");
    if (f)
        fclose (f);
    return has;
}

static void ignore_request (const void *arg)
{
    (void)arg;
    signal (SIGUSR2, SIG_IGN);
}

static void on_rank_signal (struct rank_proxy *r)
{
    struct signalfd_siginfo info;

    if (read (r->signals, &info, sizeof (info)) != sizeof (info))
        return;
    if (info.ssi_signo == SIGTERM && !r->preempted) {
        r->preempted = true;
        if (!r->asked && slurm_signals_only_tasks ())
            signal_program (r, SIGTERM);
    }
    if (info.ssi_signo == SIGUSR2 && !r->asked) {
        r->asked = true;
        if (!r->preempted)
            signal_program (r, SIGTERM);
    }
}

/* Wait for a signal or for a message of the worker.  When Slurm ends the step, the program may save
 * even if the worker has ended already: Slurm kills it when its time is over.
 */
static void wait_and_serve (struct rank_proxy *r)
{
    struct pollfd p[2] = {
        { .fd = r->signals, .events = POLLIN },
        { .fd = r->watched ? heal_rank_fd (r->watched) : -1, .events = POLLIN },
    };

    if (poll (p, 2, r->watched ? BEAT_MS : LOOK_SECONDS * 1000) > 0 && p[0].revents)
        on_rank_signal (r);
    if ((r->watched && !heal_rank_serve (r->watched) && !r->preempted) || is_replaced (r))
        end_abandoned (r);
}

static void await_late_sigterm (struct rank_proxy *r)
{
    struct pollfd p = { .fd = r->signals, .events = POLLIN };

    while (!r->preempted && poll (&p, 1, LATE_MS) == 1)
        on_rank_signal (r);
}

/* If a rank fails, srun --kill-on-bad-exit kills the others.  Report success for a rank that was
 * asked to end, so that the others can finish saving their checkpoints.
 */
static int rank_exit_status (const struct rank_proxy *r, int status)
{
    if (r->preempted && !r->asked) {
        sleep (PREEMPT_WAIT);
        return EXIT_PARKED;
    }
    if (r->asked)
        return EXIT_OK;
    return shell_status (status);
}

/* Publish the rank's exit status for the worker, which decides what follows. */
static void leave_end (int status)
{
    const char *dir = getenv ("DL_JOB_ENDS");
    const char *rank = getenv ("SLURM_PROCID");
    const char *node = getenv ("SLURMD_NODENAME");
    char path[PATH_MAX], text[128];

    if (!dir || !*dir || !rank)
        return;
    mkdir (dir, 0755);
    snprintf (path, sizeof (path), "%.4000s/%.20s", dir, rank);
    snprintf (text, sizeof (text), "%d %.64s\n", status, node ?: "-");
    if (publish_if_absent (path, text, strlen (text), NULL) < 0)
        complain ("rank: %s: %s", path, strerror (errno));
}

/* Wait as long as Kubernetes does before it starts a pod's container again. */
enum { DELAY_FIRST = 10, DELAY_MOST = 300, DELAY_RESET = 600 };

static bool is_to_end (const struct rank_proxy *r)
{
    return r->asked || r->preempted || r->ends;
}

/* Wait before the program restarts alone.  Returns whether it does. */
static bool await_restart (struct rank_proxy *r, int status, double ran)
{
    double until;

    if (!r->statuses || r->asked || r->ends || !range_has (r->statuses, shell_status (status)))
        return false;
    await_late_sigterm (r);
    r->delay = ran >= DELAY_RESET || r->delay <= 0 ? DELAY_FIRST : 2 * r->delay;
    if (r->delay > DELAY_MOST)
        r->delay = DELAY_MOST;
    if (!is_to_end (r))
        complain ("rank %s on %s: exit status %d: it restarts alone in %.0f s",
                  environment_text ("SLURM_PROCID", "?"), environment_text ("SLURMD_NODENAME", "?"),
                  shell_status (status), r->delay);
    until = monotonic () + r->delay;
    while (!is_to_end (r) && monotonic () < until)
        wait_and_serve (r);
    return !is_to_end (r);
}

/* Run the program until it has ended for good.  Returns -1 if it cannot be started. */
static int run_program (struct rank_proxy *r, const struct spawn *command, int *status)
{
    double begun;

    do {
        begun = monotonic ();
        if ((r->pid = subprocess_spawn (command)) < 0)
            return -1;
        while (waitpid (r->pid, status, WNOHANG) == 0)
            wait_and_serve (r);
        r->pid = 0;
    } while (await_restart (r, *status, monotonic () - begun));
    return 0;
}

int cmd_rank (const struct command_line *line)
{
    const struct spawn command = { .argv = line->args,
                                   .io = { 0, 1, 2 },
                                   .new_group = true,
                                   .death_signal = SIGKILL,
                                   .prepare = ignore_request };
    struct rank_proxy r = { .signals = -1, .watched = heal_rank_create () };
    int status;

    find_own_statuses (&r);
    watch_rank_signals (&r);
    if (r.signals < 0 || run_program (&r, &command, &status) < 0) {
        complain ("rank: %s", strerror (errno));
        return EXIT_FAILED;
    }
    if (r.watched)
        heal_rank_over (r.watched, r.asked ? 0 : status);
    if (!r.asked)
        await_late_sigterm (&r);
    if (!r.asked && !r.preempted)
        leave_end (shell_status (status));
    return rank_exit_status (&r, status);
}
