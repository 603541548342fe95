/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel and requeue jobs by scancel and scontrol. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"

enum { AT_ONCE = 200, CANCEL_WAIT = 60, TEXT_MAX = 16384 };

void slurm_message (char *out, size_t size, const char *text)
{
    static const char *const names[] = { "sbatch: ", "scancel: ", "squeue: ", "slurm_load_jobs ",
                                         "error: " };
    size_t used = 0;

    *out = '\0';
    while (*text && used < size) {
        size_t n;
        for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
            if (!strncmp (text, names[i], strlen (names[i])))
                text += strlen (names[i]);
        n = strcspn (text, "\n");
        used +=
            (size_t)snprintf (out + used, size - used, "%s%.*s", used ? "; " : "", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

/* Find the first line that reports more than that a job has ended.  Returns NULL if there is none.
 */
static const char *complaint_of (char *text)
{
    char *save = NULL;

    for (char *line = strtok_r (text, "\n", &save); line; line = strtok_r (NULL, "\n", &save))
        if (!strstr (line, "Invalid job id") && !strstr (line, "already"))
            return line;
    return NULL;
}

static int cancel_some (char *const *jobs, size_t n, const char *option, struct slurmdl_error *err)
{
    struct command c = { .timeout = CANCEL_WAIT };
    char text[TEXT_MAX], said[512];
    const char *why;
    int status;

    command_add (&c, "scancel", NULL);
    if (option)
        command_add (&c, option, NULL);
    command_add (&c, "--", NULL);
    for (size_t i = 0; i < n; i++)
        command_add (&c, jobs[i], NULL);
    status = command_run (&c, NULL, text, sizeof (text));
    command_free (&c);
    why = complaint_of (text);
    if (status == 0 || (status > 0 && status != 127 && !why))
        return 0;
    errno = EPROTO;
    if (status == 127)
        return errorf (err, "cannot find scancel");
    slurm_message (said, sizeof (said), why ?: "it does not answer");
    return errorf (err, "scancel: %s", said);
}

int slurm_cancel (char *const *jobs, const char *option, struct slurmdl_error *err)
{
    size_t n = 0;
    int rv = 0;

    while (jobs && jobs[n])
        n++;
    for (size_t i = 0; i < n; i += AT_ONCE)
        rv |= cancel_some (jobs + i, n - i < AT_ONCE ? n - i : AT_ONCE, option, err);
    return rv;
}

/* The name of the step in a component of the job.  Returns false if the job has no such component.
 */
static bool step_name (const char *step, long component, char *buf, size_t size)
{
    char name[64] = "SLURM_JOB_ID";
    const char *job;

    if (slurm_components () > 1)
        snprintf (name, sizeof (name), "SLURM_JOB_ID_HET_GROUP_%ld", component);
    if ((job = getenv (name)))
        snprintf (buf, size, "%.32s.%.32s", job, step);
    return job;
}

int slurm_cancel_step (const char *step, const char *option, struct slurmdl_error *err)
{
    char text[96];
    char *const steps[] = { text, NULL };
    int rv = 0;

    for (long i = 0; i < slurm_components (); i++)
        if (step_name (step, i, text, sizeof (text)))
            rv |= slurm_cancel (steps, option, err);
    return rv;
}

/* The shell ends at once, so that nobody has to wait for scancel. */
int slurm_begin_to_cancel_step (const char *step)
{
    char **words = NULL;
    char text[96];
    pid_t pid;

    strings_add (&words, "sh");
    strings_add (&words, "-c");
    strings_add (&words, "scancel --quiet -- \"$@\" &");
    strings_add (&words, "sh");
    for (long i = 0; i < slurm_components (); i++)
        if (step_name (step, i, text, sizeof (text)))
            strings_add (&words, text);
    pid = subprocess_spawn (&(struct spawn){ .argv = words, .io = { -1, 2, 2 } });
    strings_free (words);
    if (pid < 0)
        return -1;
    subprocess_wait (pid);
    return 0;
}

static int run_scontrol (const char *verb, const char *job, const char *change,
                         struct slurmdl_error *err)
{
    struct command c = { 0 };
    char text[TEXT_MAX], said[512];
    int status;

    command_add (&c, "scontrol", NULL);
    command_add (&c, verb, NULL);
    command_add (&c, job, NULL);
    if (change)
        command_add (&c, change, NULL);
    status = command_run (&c, NULL, text, sizeof (text));
    command_free (&c);
    slurm_message (said, sizeof (said), *text ? text : "it does not answer");
    errno = EPROTO;
    return status == 0 ? 0 : errorf (err, "scontrol %s %s: %s", verb, job, said);
}

int slurm_requeue (const char *job, struct slurmdl_error *err)
{
    return run_scontrol ("requeue", job, NULL, err);
}

int slurm_avoid (const char *job, const char *nodes, struct slurmdl_error *err)
{
    char name[96];
    char change[PATH_MAX + 32];

    snprintf (name, sizeof (name), "JobId=%s", job);
    snprintf (change, sizeof (change), "ExcNodeList=%s", nodes);
    return run_scontrol ("update", name, change, err);
}
