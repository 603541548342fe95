/* SPDX-License-Identifier: Apache-2.0 */
/* dl elastic: start the ranks of a program, and restart those that end early. */
#include "launcher/job/job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/comm/elastic/elastic.h"

/* ---- ranks of this node ---- */

/* Write "NUMBER.TRY", the name of a unit for its ranks and for this command. */
static void unit_name (const struct elastic *e, long i, char *buf, size_t size)
{
    snprintf (buf, size, "%ld.%ld", i, e->units[i].tries);
}

static void put_number (const char *name, long value)
{
    char text[32];

    snprintf (text, sizeof (text), "%ld", value);
    setenv (name, text, 1);
}

static void set_environment (const struct elastic *e, long i)
{
    char name[32];

    unit_name (e, i, name, sizeof (name));
    setenv ("DL_ELASTIC_DIR", e->dir, 1);
    setenv ("DL_ELASTIC_UNIT", name, 1);
    put_number ("DL_ELASTIC_MIN", e->min * e->ranks);
    put_number ("DL_ELASTIC_MAX", e->max * e->ranks);
    put_number ("DL_ELASTIC_START", e->wanted * e->ranks);
}

/* The srun command for one node.  When one rank ends, srun ends all ranks of the node.  The loss of
 * other nodes does not end it.
 */
static char **step_words (const struct elastic *e, long i)
{
    const struct slurm_step step = { .nodes = 1,
                                     .tasks = e->ranks,
                                     .tasks_per_node = e->ranks,
                                     .cpus = environment_number ("SLURM_CPUS_PER_TASK", 0),
                                     .node = e->units[i].node,
                                     .no_kill = true };
    char **list = NULL;

    slurm_step_words (&step, &list);
    strings_add_all (&list, e->opt->srun_options);
    for (int k = 0; k < e->line->nargs; k++)
        strings_add (&list, e->line->args[k]);
    return list;
}

struct unit_start {
    const struct elastic *e;
    long i;
};

static void prepare (const void *arg)
{
    const struct unit_start *u = arg;

    if (!u->e->local)
        variables_drop (variable_is_of_step);
    set_environment (u->e, u->i);
}

/* Units have process groups of their own, so that signals of the terminal reach only dl, which then
 * ends the units in order.
 */
static int unit_start (struct elastic *e, long i, struct slurmdl_error *err)
{
    struct elastic_unit *u = &e->units[i];
    char **words = e->local ? e->line->args : step_words (e, i);

    u->tries++;
    u->begun = monotonic ();
    u->asked = 0;
    u->pid = subprocess_spawn (&(struct spawn){ .argv = words,
                                                .io = { 0, 1, 2 },
                                                .new_group = true,
                                                .death_signal = e->local ? SIGKILL : SIGTERM,
                                                .prepare = prepare,
                                                .arg = &(struct unit_start){ e, i } });
    if (!e->local)
        strings_free (words);
    if (u->pid > 0)
        return 0;
    u->pid = 0;
    return errorf (err, "cannot start a process: %s", strerror (errno));
}

/* ---- units ---- */

/* LONG_RUN: seconds after which earlier failures of a unit are forgotten.  LOOK_MS: how often to
 * look for a request of dl scale.  TERM_WAIT: seconds from SIGTERM to SIGKILL.
 */
enum { LONG_RUN = 300, LOOK_MS = 1000, TERM_WAIT = 15 };

static const int elastic_signals[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP };

/* ---- counting units ---- */

static long units_running (const struct elastic *e)
{
    long n = 0;

    for (long i = 0; i < e->n; i++)
        n += e->units[i].pid != 0;
    return n;
}

static bool may_run (const struct elastic *e, const struct elastic_unit *u)
{
    return u->fails <= e->opt->restarts;
}

/* Number of units that run, or may run again. */
static long units_possible (const struct elastic *e)
{
    long n = 0;

    for (long i = 0; i < e->n; i++)
        n += e->units[i].pid != 0 || may_run (e, &e->units[i]);
    return n;
}

static const char *unit_place (const struct elastic *e, long i, char *buf, size_t n)
{
    if (!e->local)
        return e->units[i].node;
    snprintf (buf, n, "place %ld", i + 1);
    return buf;
}

static void report_unit (const struct elastic *e, long i, const char *what, double in)
{
    char name[32];

    printf ("%s: %s", unit_place (e, i, name, sizeof (name)), what);
    if (in > 0)
        printf ("; restarting in %.0f s", in);
    printf (" (%ld of %ld run)\n", units_running (e), e->wanted + e->spares);
    fflush (stdout);
}

/* ---- the end of a unit ---- */

static void end_text (char *buf, size_t size, int status)
{
    if (WIFSIGNALED (status))
        snprintf (buf, size, "ended by signal %d", WTERMSIG (status));
    else
        snprintf (buf, size, "ended with status %d", WEXITSTATUS (status));
}

/* srun exits with 0 even if its node was lost.  So the last report of its ranks, and the number of
 * units that should run, decide whether the unit has succeeded.
 */
static void on_end (struct elastic *e, long i, int status)
{
    struct elastic_unit *u = &e->units[i];
    bool well = WIFEXITED (status) && WEXITSTATUS (status) == 0;
    double ran = monotonic () - u->begun;
    char name[32], text[128];
    double in;

    unit_name (e, i, name, sizeof (name));
    u->pid = 0;
    membership_put_ended (e->folder.path, name);
    if (e->signal || e->never)
        return;
    if (well && membership_has_done (e->folder.path, name))
        e->done = true;
    if (e->done)
        return;
    if (well && units_running (e) >= e->wanted) {
        report_unit (e, i, "left", 0);
        return;
    }
    end_text (text, sizeof (text), status);
    if (WIFEXITED (status) && WEXITSTATUS (status) == SLURMDL_EXIT_NEVER) {
        e->never = true;
        report_unit (e, i, text, 0);
        return;
    }
    u->fails = ran > LONG_RUN ? 1 : u->fails + 1;
    in = may_run (e, u) ? 1 << (u->fails < 6 ? u->fails - 1 : 5) : 0;
    u->next = monotonic () + in;
    if (in <= 0)
        snprintf (text + strlen (text), sizeof (text) - strlen (text),
                  "; not restarted after %ld failures in a row", u->fails);
    report_unit (e, i, text, in);
}

static void reap (struct elastic *e)
{
    int status;
    pid_t pid;

    while ((pid = waitpid (-1, &status, WNOHANG)) > 0)
        for (long i = 0; i < e->n; i++)
            if (e->units[i].pid == pid)
                on_end (e, i, status);
}

/* ---- starting and ending units ---- */

static void look_at_target (struct elastic *e)
{
    long units = membership_target (e->folder.path) / e->ranks;

    if (units == e->wanted || units < e->min || units > e->max)
        return;
    e->wanted = units;
    printf ("%ld nodes requested\n", units);
    fflush (stdout);
}

/* Choose the unit with the fewest failures among those that may start now.  -1: none. */
static long next_unit (const struct elastic *e)
{
    double now = monotonic ();
    long best = -1;

    for (long i = 0; i < e->n; i++) {
        const struct elastic_unit *u = &e->units[i];
        if (u->pid == 0 && may_run (e, u) && now >= u->next
            && (best < 0 || u->fails < e->units[best].fails))
            best = i;
    }
    return best;
}

static void start_units (struct elastic *e)
{
    struct slurmdl_error err = { "" };
    long i;

    while (!e->done && !e->signal && !e->never && units_running (e) < e->wanted + e->spares
           && (i = next_unit (e)) >= 0)
        if (unit_start (e, i, &err) < 0) {
            complain ("%s", err.text);
            e->units[i].next = monotonic () + 1;
            return;
        }
}

static void ask_to_end (struct elastic *e)
{
    for (long i = 0; i < e->n; i++) {
        struct elastic_unit *u = &e->units[i];
        double asked = u->asked;
        if (!u->pid)
            continue;
        if (asked == 0)
            u->asked = monotonic ();
        /* send SIGTERM first, because a killed srun cannot end its step */
        if (asked == 0)
            kill (e->local ? -u->pid : u->pid, SIGTERM);
        else if (monotonic () - asked > TERM_WAIT)
            kill (e->local ? -u->pid : u->pid, SIGKILL);
    }
}

static void on_signal (struct elastic *e, int signals)
{
    struct signalfd_siginfo info;

    while (read (signals, &info, sizeof (info)) == sizeof (info))
        if (info.ssi_signo != SIGCHLD)
            e->signal = (int)info.ssi_signo;
}

/* Returns an exit status, or -1 to continue. */
static int exit_status_now (struct elastic *e)
{
    bool hopeless = !e->done && units_possible (e) < e->min;

    if (units_running (e) > 0) {
        if (hopeless || e->never || e->signal)
            ask_to_end (e);
        return -1;
    }
    if (e->signal)
        return EXIT_STOPPED;
    if (e->done)
        return EXIT_OK;
    if (e->never)
        return EXIT_FAILED;
    if (hopeless) {
        complain ("fewer than --min=%ld nodes are left; the others failed more than --restarts=%ld "
                  "times in a row",
                  e->min, (long)e->opt->restarts);
        return EXIT_NO_WORKERS;
    }
    return -1;
}

static int loop (struct elastic *e, int signals)
{
    struct pollfd p = { .fd = signals, .events = POLLIN };
    int rv;

    for (;;) {
        start_units (e);
        if ((rv = exit_status_now (e)) >= 0)
            return rv;
        poll (&p, 1, LOOK_MS);
        on_signal (e, signals);
        /* read the target first: units may have ended because it was lowered */
        look_at_target (e);
        reap (e);
    }
}

int cmd_elastic (const struct command_line *line)
{
    const struct elastic_options *opt = line->options;
    struct elastic e = { .line = line, .opt = opt, .local = opt->local, .folder = { .fd = -1 } };
    struct slurmdl_error err = { "" };
    sigset_t set;
    int signals = -1;
    int rv = EXIT_FAILED;

    sigemptyset (&set);
    for (size_t i = 0; i < sizeof (elastic_signals) / sizeof (*elastic_signals); i++)
        sigaddset (&set, elastic_signals[i]);
    sigprocmask (SIG_BLOCK, &set, NULL);
    if (elastic_plan (&e, &err) < 0)
        rv = fail (&err);
    else if ((signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
        complain ("elastic: %s", strerror (errno));
    else {
        printf ("%s: %ld of %ld nodes, and %ld spare\n", e.dir, e.wanted, e.n, e.spares);
        fflush (stdout);
        rv = loop (&e, signals);
        if (rv == EXIT_OK) /* nobody needs its files any more */
            elastic_remove (&e);
        else
            elastic_end (&e);
    }
    if (signals >= 0)
        close (signals);
    free (e.units);
    return rv;
}
