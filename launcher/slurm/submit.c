/* SPDX-License-Identifier: Apache-2.0 */
/* Run sbatch and salloc, and interpret the error messages of sbatch. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"

enum { TEXT_MAX = 4096, TEST_WAIT = 60 };

/* If slurmctld already has MaxJobCount jobs, sbatch prints this and retries for two minutes. */
static const char queue_full[] = "queue full";

/* Messages of sbatch if the array is too large or exceeds the user's limits.  Smaller arrays may
 * still be accepted.
 */
static const char *const too_much[] = {
    "Invalid job array specification",
    "MaxSubmitJob",
    "job submit limit",
    "GrpSubmitJob",
    queue_full,
    NULL,
};

/* Last lines of sbatch's output if the same command will always be rejected. */
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

/* Messages of sbatch if an answer may have been lost, so that a job may exist, or if the same
 * command may succeed a little later.
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

/* Slurm expands %j in the folder, too.  If the path or the job's working directory contains a
 * backslash, Slurm removes the backslashes and expands nothing, so that all tasks of an array would
 * write to the same file.
 */
void slurm_add_output (struct command *c, const char *folder, const char *file)
{
    char text[2 * PATH_MAX + 64], *to = text;

    if (strchr (folder, '\\')) {
        command_add (c, "--output", "/dev/null");
        return;
    }
    for (const char *at = folder; *at && to < text + 2 * PATH_MAX; at++) {
        *to++ = *at;
        if (*at == '%')
            *to++ = '%';
    }
    snprintf (to, 64, "/%s", file);
    command_add (c, "--output", text);
}

void slurm_add_requeueable (struct command *c, const char *name, const char *folder,
                            const char *file)
{
    command_add (c, "--requeue", NULL);
    command_add (c, "--open-mode", "append");
    command_add (c, "--job-name", name);
    slurm_add_output (c, folder, file);
}

/* ---- why there is no job ---- */

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

/* Whether there is certainly no job, or sbatch could not be run. */
static bool is_refused (const char *said, int status)
{
    return status == 126 || status == 127
           || (status > 0 && *said
               && (!has_one_of (said, undecided) || has_one_of (said, no_slurm)));
}

static int fail_refused (const char *text, int status, struct slurmdl_error *err)
{
    char said[TEXT_MAX];

    slurm_message (said, sizeof (said), text);
    errno = EPROTO;
    if (has_one_of (said, no_slurm))
        return errorf (err, "sbatch finds no Slurm here: use --local to work on "
                            "this machine, or a host of the cluster");
    if (strstr (said, "'--dl"))
        return errorf (err,
                       "sbatch: %s: the slurm-dl plugin is not loaded here, "
                       "see dl-spank(8); leave out resources.framework, "
                       "check, bind, nccl, monitor and debug",
                       said);
    return errorf (err, "sbatch: %s%s", *said ? said : "it failed without a message",
                   status == 127 ? " (without Slurm use --local)" : "");
}

/* ---- submit ---- */

/* With --parsable, sbatch prints "JOB" or "JOB;CLUSTER", perhaps after warnings. */
static long job_in (const char *said)
{
    const char *line = strrchr (said, '\n');

    return strtol (line ? line + 1 : said, NULL, 10);
}

/* Run sbatch with 'option' before 'options', and free these.  Returns the exit status. */
static int run_sbatch (const char *option, struct command *options, const char *enough, char *said)
{
    struct command c = { .timeout = options->timeout };
    int status;

    command_add (&c, "sbatch", NULL);
    command_add (&c, option, NULL);
    for (int i = 0; i < options->n; i++)
        command_add (&c, options->argv[i], NULL);
    status = command_run (&c, enough, said, TEXT_MAX);
    command_free (&c);
    command_free (options);
    return status;
}

/* Slurm 22.05 does not set SLURM_JOB_END_TIME, so that the script asks once. */
static char *time_left_text (const char *variable)
{
    return variable ? xasprintf ("%s=\n"
                                 "[ \"$SLURM_JOB_END_TIME\" ] || %s=$(squeue --noheader "
                                 "--format=%%L \\\n"
                                 "    --jobs=\"$job\" 2>/dev/null | head -n 1)\n",
                                 variable, variable)
                    : xstrdup ("");
}

/* scancel sends SIGTERM to the steps and, with proctrack/cgroup, to the script, but not to its
 * commands.  If the script died, Slurm would kill them at once, although they have KillWait to end.
 */
static const char run_text[] = "trap : TERM\n"
                               "run () { # run a command, and pass SIGTERM on to it\n"
                               "    \"$@\" &\n"
                               "    child=$!\n"
                               "    trap 'kill -TERM $child 2>/dev/null' TERM\n"
                               "    wait $child\n"
                               "    status=$?\n"
                               "    while kill -0 $child 2>/dev/null; do\n"
                               "        wait $child\n"
                               "        status=$?\n"
                               "    done\n"
                               "    return $status\n"
                               "}\n";

/* The tasks of the job bind their CPUs themselves, not as the shell that called sbatch did. */
char *slurm_script_text (const struct slurm_script *s)
{
    char *time_left = time_left_text (s->time_left);
    char *text = xasprintf ("#!/bin/sh\n"
                            "# %s\n"
                            "%sjob=${SLURM_ARRAY_JOB_ID-$SLURM_JOB_ID}"
                            "${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}\n"
                            "case $out in *\\\\*) exec >>\"$out/%s\" 2>&1 ;; esac\n"
                            "unset SLURM_CPU_BIND SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_LIST "
                            "SLURM_CPU_BIND_VERBOSE\n"
                            "%s%s%stries=0\n"
                            "while [ $tries -lt 20 ]; do\n"
                            "    %s\n"
                            "    status=$?\n"
                            "    case $status in\n"
                            "%s    esac\n"
                            "    tries=$((tries + 1))\n"
                            "    sleep 2\n"
                            "done\n"
                            "exit $status\n",
                            s->comment, s->variables, s->log, run_text, time_left, s->setup,
                            s->command, s->cases);

    free (time_left);
    return text;
}

long slurm_submit (struct command *options, struct slurm_refusal *why, struct slurmdl_error *err)
{
    char said[TEXT_MAX];
    int status = run_sbatch ("--parsable", options, queue_full, said);
    long job;

    if (status == 0 && (job = job_in (said)) > 0)
        return job;
    if (why)
        *why = (struct slurm_refusal){
            .no_job = is_refused (said, status),
            .for_good = is_for_good (said, status),
            .too_much = has_one_of (said, too_much),
            .unknown_node = status > 0 && strstr (said, "nvalid node name"),
        };
    return fail_refused (said, status, err);
}

void slurm_allocate (struct command *options)
{
    struct command c = { 0 };

    command_add (&c, "salloc", NULL);
    for (int i = 0; i < options->n; i++)
        command_add (&c, options->argv[i], NULL);
    c.argv[c.n] = NULL;
    execvp ("salloc", (char *const *)c.argv);
    errno = exec_error ("salloc", errno);
}

/* ---- predict the start ---- */

/* Copy the word after 'before'.  Returns -1 if there is none. */
static int word_behind (const char *said, const char *before, char *buf, size_t size)
{
    const char *at = strstr (said, before);

    if (!at)
        return -1;
    at += strlen (before);
    snprintf (buf, size, "%.*s", (int)strcspn (at, " \n"), at);
    return 0;
}

/* Parse "... to start at 2026-01-31T12:00:00 using ... in partition main". */
static void read_start (struct slurm_start *start, const char *said)
{
    struct tm tm = { .tm_isdst = -1 };

    *start = (struct slurm_start){ 0 };
    word_behind (said, " in partition ", start->partition, sizeof (start->partition));
    if (word_behind (said, "to start at ", start->time, sizeof (start->time)) == 0
        && strptime (start->time, "%Y-%m-%dT%H:%M:%S", &tm))
        start->seconds = fmax (difftime (mktime (&tm), time (NULL)), 0);
}

int slurm_test (struct command *options, struct slurm_start *start, struct slurmdl_error *err)
{
    char said[TEXT_MAX];
    int status;

    options->timeout = TEST_WAIT;
    command_add (options, "--wrap", "true");
    if ((status = run_sbatch ("--test-only", options, NULL, said)) != 0)
        return fail_refused (said, status, err);
    read_start (start, said);
    return 0;
}
