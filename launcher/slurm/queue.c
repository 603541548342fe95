/* SPDX-License-Identifier: Apache-2.0 */
/* Run squeue, and parse its output. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

/* Room for the output about a few jobs, and about all jobs of a user. */
enum { FEW_TEXT = 64 << 10, ALL_TEXT = 64 << 20 };

/* The folder comes last because it may contain any character, even '|'. */
static const char format[] = "%F|%K|%T|%r|%L|%k|%Z";

static char *next_field (char **line)
{
    char *field = strsep (line, "|");

    return field ?: (char *)"";
}

static void read_job (struct slurm_job *j, char *line)
{
    const char *task;
    char *end;

    *j = (struct slurm_job){ .id = strtol (next_field (&line), NULL, 10) };
    task = next_field (&line);
    j->task = strtol (task, &end, 10);
    if (end == task) /* "N/A": not an array task */
        j->task = -1;
    snprintf (j->state, sizeof (j->state), "%s", next_field (&line));
    snprintf (j->reason, sizeof (j->reason), "%s", next_field (&line));
    j->seconds_left = slurm_seconds (next_field (&line));
    snprintf (j->comment, sizeof (j->comment), "%s", next_field (&line));
    j->folder = line ?: "";
}

static void read_jobs (struct slurm_jobs *jobs)
{
    char *rest = jobs->text;
    char *line;

    while ((line = strsep (&rest, "\n"))) {
        if (!*line)
            continue;
        XGROW (jobs->list, jobs->n);
        read_job (&jobs->list[jobs->n], line);
        jobs->n += jobs->list[jobs->n].id > 0; /* ignore other lines, such as warnings */
    }
}

static enum slurm_answer answer_of (int status, const char *said)
{
    if (status == 0)
        return SLURM_ANSWERED;
    if (strstr (said, "Invalid job id"))
        return SLURM_NO_SUCH_JOB;
    return strstr (said, "contact slurm controller") ? SLURM_UNREACHABLE : SLURM_FAILED;
}

static int run_squeue (const struct slurm_queue *q, char *text, size_t size)
{
    struct command c = { .timeout = q->seconds };
    int status;

    command_add (&c, "squeue", NULL);
    command_add (&c, "--noheader", NULL);
    if (q->each_task)
        command_add (&c, "--array", NULL);
    if (q->ended)
        command_add (&c, "--states", "all");
    command_add (&c, "--format", format);
    if (q->jobs)
        command_add (&c, "--jobs", q->jobs);
    else
        command_add (&c, "--me", NULL);
    status = command_run (&c, NULL, text, size);
    command_free (&c);
    return status;
}

enum slurm_answer slurm_jobs_ask (const struct slurm_queue *q, struct slurm_jobs *jobs,
                                  struct slurmdl_error *err)
{
    size_t size = q->jobs && !q->each_task ? FEW_TEXT : ALL_TEXT;
    enum slurm_answer answer;
    const double start = monotonic ();
    char said[512] = "it does not answer";
    int status;

    *jobs = (struct slurm_jobs){ .text = xmalloc (size) };
    status = run_squeue (q, jobs->text, size);
    answer = answer_of (status, jobs->text);
    /* on a host that is cut off, squeue tries for longer before it complains */
    if (answer == SLURM_FAILED && q->seconds > 0 && monotonic () - start >= q->seconds)
        answer = SLURM_UNREACHABLE;
    if (answer == SLURM_ANSWERED) {
        read_jobs (jobs);
        return answer;
    }
    if (*jobs->text)
        slurm_message (said, sizeof (said), jobs->text);
    *jobs->text = '\0';
    errorf (err, "squeue: %s%s", said, status == 127 ? " (without Slurm use --local)" : "");
    errno = EPROTO;
    return answer;
}

void slurm_jobs_free (struct slurm_jobs *jobs)
{
    free (jobs->list);
    free (jobs->text);
    *jobs = (struct slurm_jobs){ NULL };
}

int slurm_job_text (long job, char *buf, size_t size)
{
    struct slurmdl_error why = { "" };
    struct slurm_jobs jobs;
    char id[32];
    enum slurm_answer answer;
    int rv = 0;

    snprintf (id, sizeof (id), "%ld", job);
    answer = slurm_jobs_ask (&(struct slurm_queue){ .jobs = id, .seconds = 60 }, &jobs, &why);
    if (jobs.n > 0)
        snprintf (buf, size, "%s %s", jobs.list[0].state, jobs.list[0].reason);
    else if (answer == SLURM_ANSWERED || answer == SLURM_NO_SUCH_JOB)
        rv = -1;
    else
        snprintf (buf, size, "UNKNOWN %s", why.text);
    slurm_jobs_free (&jobs);
    return rv;
}
