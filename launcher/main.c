/* SPDX-License-Identifier: Apache-2.0 */
/* dl: run deep-learning experiments on Slurm. */
#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/options.h"
#include "launcher/code/code.h"
#include "launcher/debug/debug.h"
#include "launcher/flow/flow.h"
#include "launcher/job/job.h"
#include "launcher/model/model.h"
#include "launcher/monitor/monitor.h"
#include "launcher/node/node.h"
#include "launcher/report/report.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/terminal.h"
#include "launcher/trainer/trainer.h"
#include "launcher/version.h"
#include "runtime/base/nearest_word.h"

/* clang-format off */
static const struct cmd commands[] = {
    { CMD_START, "run", "FILE", "run the experiment in FILE",
      &options_run, 1, 1, cmd_run },
    { CMD_START, "try", "FILE [NAME=VALUE...]", "run one trial of length 1 here and print what it did",
      &options_try, 1, -1, cmd_try },
    { CMD_START, "preview", "FILE", "estimate the cost of the experiment in FILE",
      &options_preview, 1, 1, cmd_preview },
    { CMD_START, "fork", "[EXPERIMENT [TRIAL]]", "run it again, or continue from a trial's checkpoint",
      &options_fork, 0, 2, cmd_fork },
    { CMD_START, "import", "FILE|DIR...", "convert other systems' files to experiments",
      &options_import, 1, -1, cmd_import },
    { CMD_START, "flow", "run|ls|show|graph|resume|stop ...", "run steps that wait for each other, as jobs",
      &options_flow, 1, -1, cmd_flow, false, flow_words },
    { CMD_START, "job", "FILE|PROGRAM [ARGUMENT...]", "run a program, and restart it when it fails",
      &options_job, 1, -1, cmd_job, true },
    { CMD_START, "elastic", "PROGRAM [ARGUMENT...]", "train on nodes that may fail, leave and join",
      &options_elastic, 1, -1, cmd_elastic, true },
    { CMD_START, "shell", "[-- SRUN_OPTION...]", "open a shell in a job or step",
      &options_shell, 0, -1, cmd_shell, true },
    { CMD_START, "notebook", "[-- SBATCH_OPTION...|ls|attach [JOB]|stop [JOB]]", "run Jupyter in a job, and print how to reach it",
      &options_notebook, 0, -1, cmd_notebook, true, notebook_words },
    { CMD_START, "search-server", "", "search on behalf of another program, with lines of JSON",
      &options_search_server, 0, 0, cmd_search_server },
    { CMD_START, "worker", "[EXPERIMENT]", "run a worker of an experiment in this allocation",
      &options_worker, 0, 1, cmd_worker },
    { CMD_LOOK, "ls", "", "list experiments",
      &options_ls, 0, 0, cmd_ls },
    { CMD_LOOK, "watch", "[EXPERIMENT]", "show the progress of an experiment until it ends",
      &options_watch, 0, 1, cmd_watch },
    { CMD_LOOK, "show", "[EXPERIMENT [TRIAL]]", "show an experiment's trials, or one trial",
      &options_show, 0, 2, cmd_show },
    { CMD_LOOK, "best", "[EXPERIMENT]", "print the best trial, its checkpoint and its command",
      &options_best, 0, 1, cmd_best },
    { CMD_LOOK, "failures", "[EXPERIMENT]", "list failures by cause and by parameter value",
      &options_failures, 0, 1, cmd_failures },
    { CMD_LOOK, "goodput", "[EXPERIMENT [TRIAL]]", "show where the time of jobs and trials went",
      &options_goodput, 0, 2, cmd_goodput },
    { CMD_LOOK, "compare", "EXPERIMENT EXPERIMENT...", "compare experiments",
      &options_compare, 2, -1, cmd_compare },
    { CMD_LOOK, "plot", "[EXPERIMENT [WHAT [PARAMETER]]]", "draw curves, history, scatter or parallel",
      &options_plot, 0, 3, cmd_plot, false, plot_words },
    { CMD_LOOK, "logs", "[EXPERIMENT] TRIAL", "print a trial's output",
      &options_logs, 1, 2, cmd_logs },
    { CMD_LOOK, "wait", "[EXPERIMENT]", "wait until an experiment ends or is paused",
      &options_wait, 0, 1, cmd_wait },
    { CMD_LOOK, "report", "[EXPERIMENT...]", "write a page of charts and tables, one HTML file",
      &options_report, 0, -1, cmd_report },
    { CMD_LOOK, "diff", "EXPERIMENT EXPERIMENT|FOLDER", "show how two experiments differ: settings, code, packages",
      &options_sweep, 2, 2, cmd_diff },
    { CMD_LOOK, "tensorboard", "EXPERIMENT...", "show experiments in TensorBoard, even while they run",
      &options_tensorboard, 1, -1, cmd_tensorboard },
    { CMD_LOOK, "monitor", "[DIR|JOB]", "show what the ranks under srun --dl-monitor use",
      &options_monitor, 0, 1, cmd_monitor },
    { CMD_LOOK, "top", "[DIR...]", "show how busy the GPUs of your running jobs are",
      &options_top, 0, -1, cmd_top },
    { CMD_LOOK, "debug", "JOB[.STEP]|DIR", "show where the ranks of a step with --dl-debug are stuck",
      &options_debug, 1, 1, cmd_debug },
    { CMD_STEER, "pause", "[EXPERIMENT]", "pause: trials save a checkpoint, workers stop",
      &options_sweep, 0, 1, cmd_pause },
    { CMD_STEER, "resume", "[EXPERIMENT]", "start workers for an experiment that has work left",
      &options_resume, 0, 1, cmd_resume },
    { CMD_STEER, "stop", "[EXPERIMENT]", "end an experiment: trials save a checkpoint",
      &options_sweep, 0, 1, cmd_stop },
    { CMD_STEER, "kill", "[EXPERIMENT]", "end an experiment at once",
      &options_sweep, 0, 1, cmd_kill },
    { CMD_STEER, "continue", "[EXPERIMENT]", "continue an experiment that has ended",
      &options_continue, 0, 1, cmd_continue },
    { CMD_STEER, "retry", "[EXPERIMENT] [TRIAL...]", "try failed trials again",
      &options_retry, 0, -1, cmd_retry },
    { CMD_STEER, "scale", "N [EXPERIMENT]", "use N workers from now on",
      &options_scale, 1, 2, cmd_scale },
    { CMD_STEER, "exclude", "[EXPERIMENT] HOST", "start no more attempts on a node",
      &options_mark, 1, 2, cmd_exclude },
    { CMD_KEEP, "reproduce", "[EXPERIMENT [TRIAL]]", "train a trial again here and compare its metric",
      &options_reproduce, 0, 2, cmd_reproduce },
    { CMD_KEEP, "export", "[EXPERIMENT]", "export all trials as a table or for other tools",
      &options_export, 0, 1, cmd_export },
    { CMD_KEEP, "ckpt", "ls|verify|extract|diff|export|import FILE...", "inspect, verify and convert checkpoints",
      &options_ckpt, 1, -1, cmd_ckpt, false, ckpt_words },
    { CMD_KEEP, "model", "register|ls|show|promote|note|rm|export ...", "keep checkpoints as versions of models",
      &options_model, 1, 4, cmd_model, false, model_words },
    { CMD_KEEP, "log", "NAME=VALUE...", "log metrics from a script that a trial runs",
      &options_log, 1, -1, cmd_log },
    { CMD_KEEP, "gc", "[EXPERIMENT]", "remove checkpoints that checkpoint_policy does not keep",
      &options_gc, 0, 1, cmd_gc },
    { CMD_KEEP, "label", "EXPERIMENT NAME...", "put labels on an experiment",
      &options_mark, 2, -1, cmd_label },
    { CMD_KEEP, "archive", "[EXPERIMENT]", "hide an experiment that has ended from dl ls",
      &options_mark, 0, 1, cmd_archive },
    { CMD_KEEP, "rm", "EXPERIMENT...", "remove experiments",
      &options_rm, 1, -1, cmd_rm },
    { CMD_CLUSTER, "check", "", "check this node, or all nodes and GPUs of a step",
      &options_check, 0, 0, cmd_check },
    { CMD_CLUSTER, "doctor", "", "check this host's Slurm and print what to change",
      &options_doctor, 0, 0, cmd_doctor },
    { CMD_CLUSTER, "env", "", "print what the plugin sets for each rank of a job",
      &options_env, 0, 0, cmd_env },
    { CMD_HIDDEN, "gather", "LEVEL WHAT", "",
      NULL, 2, 2, cmd_gather },
    { CMD_HIDDEN, "check-rank", "LEVEL WHAT", "",
      NULL, 2, 2, cmd_check_rank },
    { CMD_HIDDEN, "sample", "SECONDS [PROC [SYS]]", "",
      NULL, 1, 3, cmd_sample },
    { CMD_HIDDEN, "watch-ranks", "DIR SECONDS PID [kill]", "",
      NULL, 3, 4, cmd_watch_ranks },
    { CMD_HIDDEN, "requeue", "DIR STATUS", "",
      NULL, 2, 2, cmd_requeue },
    { CMD_HIDDEN, "attend", "leads|serves PID", "",
      NULL, 2, 2, cmd_attend },
    { CMD_HIDDEN, "rank", "COMMAND...", "",
      NULL, 1, -1, cmd_rank },
    { CMD_HIDDEN, "within", "COMMAND...", "",
      NULL, 1, -1, cmd_within },
    { 0 },
};
/* clang-format on */

/* What users of other programs may type instead, and the command to suggest. */
static const char *const other_commands[][2] = {
    { "status", "show' or 'ls" },
    { "info", "show" },
    { "results", "show" },
    { "list", "ls" },
    { "queue", "ls" },
    { "history", "ls" },
    { "delete", "rm" },
    { "remove", "rm" },
    { "cancel", "stop' or 'kill" },
    { "abort", "kill" },
    { "submit", "run" },
    { "start", "run" },
    { "launch", "run" },
    { "create", "run" },
    { "dashboard", "report' or 'watch" },
    { "ui", "report' or 'watch" },
    { "agent", "worker" },
    { "sync", "export" },
    { "tag", "label" },
    { "rerun", "fork' or 'reproduce" },
    { NULL, NULL },
};

static int unknown_command (const char *name)
{
    const char *words[sizeof (commands) / sizeof (*commands)] = { 0 };
    const char *meant;
    size_t n = 0;

    for (const struct cmd *c = commands; c->name; c++)
        if (c->group != CMD_HIDDEN)
            words[n++] = c->name;
    meant = other_word (name, other_commands) ?: nearest_word (name, words);
    complain ("unknown command '%s'%s%s%s", name,
              DID_YOU_MEAN (meant, "'", "'", "; see dl --help"));
    return EXIT_USAGE;
}

/* Do not report success if standard output could not be written, even if the disk was
 * full only while earlier lines were written.  Nor lose the answer of a command that found a
 * problem (EXIT_FAILED).
 */
static int check_output (int rv)
{
    bool failed = ferror (stdout);

    errno = 0;
    if ((rv != EXIT_OK && rv != EXIT_FAILED) || (fflush (stdout) == 0 && !failed))
        return rv;
    complain ("cannot write standard output%s%s", errno ? ": " : "", errno ? strerror (errno) : "");
    return EXIT_IO;
}

static int run_command (const struct cmd *cmd, int argc, char **argv)
{
    struct command_line line;
    int rv = EXIT_USAGE;

    switch (command_line_parse (cmd, argc, argv, &line)) {
    case LINE_PARSED:
        rv = cmd->run (&line);
        break;
    case LINE_HELP:
        help_cmd (cmd);
        rv = EXIT_OK;
        break;
    case LINE_INVALID:
        break;
    }
    command_line_free (cmd, &line);
    return check_output (rv);
}

int main (int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";

    setlocale (LC_CTYPE, "");
    json_set_alloc_funcs (xmalloc, free);
    terminal_guard ();
    /* never create world-writable files */
    umask (umask (077) | S_IWOTH);
    if (!strcmp (name, "--help") || !strcmp (name, "-h") || !strcmp (name, "help")) {
        help_all (commands);
        return check_output (argc > 1 ? EXIT_OK : EXIT_USAGE);
    }
    if (!strcmp (name, "--version")) {
        puts ("dl " DL_VERSION);
        return check_output (EXIT_OK);
    }
    if (!strcmp (name, "--complete") || !strcmp (name, "--complete-help")) {
        complete (commands, argc - 2, argv + 2, !strcmp (name, "--complete-help"));
        return EXIT_OK;
    }
    for (const struct cmd *c = commands; c->name; c++)
        if (!strcmp (c->name, name))
            return run_command (c, argc - 1, argv + 1);
    return unknown_command (name);
}
