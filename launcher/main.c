/* SPDX-License-Identifier: Apache-2.0 */
/* dl: run deep-learning experiments on Slurm. */
#include <errno.h>
#include <hdf5.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "launcher/ckpt/ckpt.h"
#include "launcher/cmd/commands.h"
#include "launcher/cmd/options.h"
#include "launcher/debug/debug.h"
#include "launcher/debug/watch.h"
#include "launcher/doctor/doctor.h"
#include "launcher/elastic/command.h"
#include "launcher/env/command.h"
#include "launcher/monitor/monitor.h"
#include "launcher/monitor/sample.h"
#include "launcher/nodecheck/command.h"
#include "launcher/searchserver/server.h"
#include "launcher/trainer/step.h"
#include "runtime/base/word.h"

/* clang-format off */
static const struct cmd commands[] = {
    { "run",    "FILE",                 "run the experiment that FILE describes",            CMD_RUN,    1, 1,  cmd_run },
    { "preview", "FILE",                "say what the experiment that FILE describes will cost", CMD_PREVIEW, 1, 1, cmd_preview },
    { "ls",     "",                     "list experiments",                                  CMD_LS,     0, 0,  cmd_ls },
    { "show",   "[EXPERIMENT [TRIAL]]", "show an experiment's trials, or one trial",         CMD_SHOW,   0, 2,  cmd_show },
    { "logs",   "[EXPERIMENT] TRIAL",   "print a trial's output",                            CMD_LOGS,   1, 2,  cmd_logs },
    { "wait",   "[EXPERIMENT]",         "wait until an experiment has ended or was paused",  CMD_WAIT,   0, 1,  cmd_wait },
    { "pause",  "[EXPERIMENT]",         "pause: trials save a checkpoint, workers end",      CMD_PAUSE,  0, 1,  cmd_pause },
    { "resume", "[EXPERIMENT]",         "start workers for an experiment that has work left", CMD_RESUME, 0, 1, cmd_resume },
    { "gc",     "[EXPERIMENT]",         "remove checkpoints that checkpoint_policy does not keep", CMD_GC, 0, 1, cmd_gc },
    { "export", "[EXPERIMENT]",         "write a table of all trials",                       CMD_EXPORT, 0, 1,  cmd_export },
    { "stop",   "[EXPERIMENT]",         "end an experiment: trials save a checkpoint",       CMD_STOP,   0, 1,  cmd_stop },
    { "kill",   "[EXPERIMENT]",         "end an experiment at once",                         CMD_KILL,   0, 1,  cmd_kill },
    { "continue", "[EXPERIMENT]",       "go on with an experiment that has ended",           CMD_CONTINUE, 0, 1, cmd_continue },
    { "retry",  "[EXPERIMENT] [TRIAL...]", "try failed trials again",                        CMD_RETRY,  0, -1, cmd_retry },
    { "fork",   "[EXPERIMENT [TRIAL]]", "run it again, or train on from a trial's checkpoint", CMD_FORK, 0, 2,  cmd_fork },
    { "archive", "[EXPERIMENT]",        "hide an experiment that has ended from dl ls",      CMD_ARCHIVE, 0, 1, cmd_archive },
    { "label",  "EXPERIMENT NAME...",   "put labels on an experiment",                       CMD_LABEL,  2, -1, cmd_label },
    { "exclude", "[EXPERIMENT] HOST",   "begin nothing more on a machine",                   CMD_EXCLUDE, 1, 2, cmd_exclude },
    { "rm",     "EXPERIMENT...",        "remove experiments",                                CMD_RM,     1, -1, cmd_rm },
    { "log",    "NAME=VALUE...",        "log metrics from a script that a trial runs",       CMD_LOG,    1, -1, cmd_log },
    { "search-server", "",              "search for any program, over lines of JSON",        CMD_SEARCH, 0, 0,  cmd_search_server },
    { "scale",  "N [EXPERIMENT]",       "work with N workers from now on",                   CMD_SCALE,  1, 2,  cmd_scale },
    { "worker", "[EXPERIMENT]",         "work at an experiment in this allocation",          CMD_WORKER, 0, 1,  cmd_worker },
    { "elastic", "PROGRAM [ARGUMENT...]", "train on nodes that may fail, come and go", CMD_ELASTIC, 1, -1, cmd_elastic },
    { "horovod", "PROGRAM [ARGUMENT...]", "start a rank of Horovod's, under srun --dl=horovod", CMD_HOROVOD, 1, -1, cmd_horovod },
    { "check",  "",                     "check this node, or in a step all its nodes and GPUs", CMD_CHECK, 0, 0, cmd_check },
    { "gather", "LEVEL WHAT",           "",                                                  0,          2, 2,  cmd_gather },
    { "check-rank", "LEVEL WHAT",       "",                                                  0,          2, 2,  cmd_check_rank },
    { "env",    "[FILE]",               "say what the plugin gives each rank of a job, or has given this one", CMD_ENV, 0, 1, cmd_env },
    { "doctor", "",                     "check this host's Slurm and say what to change",    CMD_DOCTOR, 0, 0,  cmd_doctor },
    { "monitor", "[DIR|JOB]",           "what the ranks under srun --dl-monitor use",        CMD_MONITOR, 0, 1, cmd_monitor },
    { "sample", "SECONDS [PROC [SYS]]", "",                                                  0,          1, 3,  cmd_sample },
    { "debug",  "JOB[.STEP]|DIR",       "say where the ranks of a step with --dl-debug are", CMD_DEBUG, 1, 1,  cmd_debug },
    { "watch",  "DIR SECONDS PID [kill]", "",                                                0,          3, 4,  cmd_watch },
    { "ckpt",   "ls|verify|extract|diff|export|import FILE...", "look into checkpoints, verify them, take them elsewhere", CMD_CKPT, 1, -1, cmd_ckpt, ckpt_words },
    { "again",  "DIR STATUS",           "",                                                  0,          2, 2,  cmd_again },
    { "rank",   "COMMAND...",           "",                                                  0,          1, -1, cmd_rank },
    { 0 },
};
/* clang-format on */

static int unknown_command (const char *name)
{
    const char *words[32] = { 0 };
    const char *meant;
    int n = 0;

    for (const struct cmd *c = commands; c->name && n < 31; c++)
        words[n++] = c->name;
    meant = nearest_word (name, words);
    complain ("unknown command '%s'%s%s%s",
              name,
              meant ? "; did you mean '" : "; see dl --help",
              meant ? meant : "",
              meant ? "'?" : "");
    return EXIT_USAGE;
}

/* A full disk under stdout must not pass for success, also where it was full
 * before the last of it.
 */
static int check_output (void)
{
    bool failed = ferror (stdout);

    errno = 0;
    if (fflush (stdout) == 0 && !failed)
        return EXIT_OK;
    complain ("cannot write standard output%s%s",
              errno ? ": " : "",
              errno ? strerror (errno) : "");
    return EXIT_IO;
}

static int run_command (const struct cmd *cmd, int argc, char **argv)
{
    struct settings st;
    int rv = EXIT_USAGE;

    switch (settings_parse (cmd, argc, argv, &st)) {
    case 0:
        rv = cmd->run (&st);
        break;
    case 1:
        help_cmd (cmd);
        rv = EXIT_OK;
        break;
    }
    settings_free (&st);
    return rv == EXIT_OK ? check_output () : rv;
}

int main (int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";

    setlocale (LC_CTYPE, "");
    /* it crashes where a file could not be closed, on a full disk say */
    H5dont_atexit ();
    if (!strcmp (name, "--help") || !strcmp (name, "help")) {
        help_all (commands);
        return argc > 1 ? EXIT_OK : EXIT_USAGE;
    }
    if (!strcmp (name, "--version")) {
        puts ("dl " PACKAGE_VERSION);
        return EXIT_OK;
    }
    if (!strcmp (name, "--complete")) {
        complete (commands, argc - 2, argv + 2);
        return EXIT_OK;
    }
    for (const struct cmd *c = commands; c->name; c++)
        if (!strcmp (c->name, name))
            return run_command (c, argc - 1, argv + 1);
    return unknown_command (name);
}
