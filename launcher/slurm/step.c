/* SPDX-License-Identifier: Apache-2.0 */
/* Run srun, or build its command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/environment.h"
#include "runtime/base/step_id.h"
#include "runtime/rank/layout.h"

bool slurm_printed (const char *line)
{
    size_t n = strlen ("slurmstepd");

    return !strncmp (line, "srun: ", 6)
           || (!strncmp (line, "slurmstepd", n) && (line[n] == ':' || line[n] == '-'));
}

bool slurm_complained (const char *line)
{
    return (!strncmp (line, "srun: error: ", 13) || !strncmp (line, "srun: fatal: ", 13))
           && strncmp (line + 13, "dl: ", 4) && !strstr (line, ": task");
}

bool slurm_refused_step (const char *line)
{
    static const char *const words[] = { "srun: fatal: ", "srun: error: Unable to create step",
                                         "srun: error: Unable to confirm allocation",
                                         "srun: error: Task launch for ",
                                         "srun: error: Application launch failed" };

    for (size_t i = 0; i < sizeof (words) / sizeof (*words); i++)
        if (!strncmp (line, words[i], strlen (words[i])))
            return true;
    return false;
}

char *slurm_last_line (char *text)
{
    char *found = NULL;
    char *save = NULL;

    for (char *line = strtok_r (text, "\r\n", &save); line; line = strtok_r (NULL, "\r\n", &save))
        if (line[strspn (line, " \t")] && !slurm_printed (line))
            found = line;
    return found && !strncmp (found, "dl: ", 4) ? found + 4 : found;
}

long slurm_components (void)
{
    long n = environment_number ("SLURM_HET_SIZE", 1);

    return n > 1 ? n : 1;
}

const char *slurm_component_nodes (long component)
{
    char name[64] = "SLURM_JOB_NODELIST";

    if (slurm_components () > 1)
        snprintf (name, sizeof (name), "SLURM_JOB_NODELIST_HET_GROUP_%ld", component);
    return environment_text (name, NULL);
}

static int is_same_node (void *node, const char *name)
{
    return !strcmp (node, name);
}

long slurm_allocated_cpus (void)
{
    const char *list = environment_text ("SLURM_JOB_CPUS_PER_NODE", "");
    long nodes = environment_number ("SLURM_JOB_NUM_NODES", 0), sum = 0;

    for (long i = 0; i < nodes; i++) {
        long cpus = layout_tasks_of_node (list, i);
        if (cpus < 1)
            return 0;
        sum += cpus;
    }
    return sum;
}

bool slurm_lists_node (const char *list, const char *node)
{
    return layout_each_host (list, is_same_node, (void *)node) == 1;
}

bool slurm_in_allocation (void)
{
    return environment_text ("SLURM_JOB_ID", NULL) && !*step_id ();
}

long slurm_component_of (const char *node)
{
    for (long i = 0; i < slurm_components (); i++) {
        const char *list = slurm_component_nodes (i);
        if (list && slurm_lists_node (list, node))
            return i;
    }
    return -1;
}

void slurm_step_words (const struct slurm_step *s, char ***words)
{
    strings_add (words, "srun");
    if (!s->of_script)
        strings_add (words, "--overlap");
    if (s->no_kill)
        strings_add (words, "--no-kill");
    strings_add (words, "--input=none");
    if (!s->of_script)
        strings_add (words, "--export=ALL");
    strings_addf (words, "--kill-on-bad-exit=%d", !s->goes_on);
    if (s->goes_on)
        strings_add (words, "--wait=0");
    if (s->nodes > 0)
        strings_addf (words, "--nodes=%lld", s->nodes);
    if (s->node)
        strings_addf (words, "--nodelist=%s", s->node);
    if (s->components > 1)
        strings_addf (words, "--het-group=0-%lld", s->components - 1);
    if (s->tasks > 0)
        strings_addf (words, "--ntasks=%lld", s->tasks);
    if (s->tasks_per_node > 0)
        strings_addf (words, "--ntasks-per-node=%lld", s->tasks_per_node);
    if (s->gpus > 0)
        strings_addf (words, "--gpus-per-task=%lld", s->gpus);
    if (s->cpus > 0)
        strings_addf (words, "--cpus-per-task=%lld", s->cpus);
}

char *slurm_step_text (const struct slurm_step *s)
{
    char **words = NULL;
    char *text = NULL;

    slurm_step_words (s, &words);
    for (size_t i = 0; words[i]; i++) {
        char *longer = xasprintf ("%s%s%s", text ? text : "", text ? " " : "", words[i]);
        free (text);
        text = longer;
    }
    strings_free (words);
    return text;
}

long slurm_queued_job (const char *said)
{
    static const char before[] = "srun: job ";
    const char *at = strstr (said, before);

    return at && strstr (at, " queued and waiting") ? atol (at + strlen (before)) : 0;
}

void slurm_node_step_words (char *const *options, long long nodes, char ***words)
{
    strings_add (words, "srun");
    strings_add_all (words, options);
    if (nodes > 0)
        strings_addf (words, "--nodes=%lld", nodes);
    strings_add (words, "--ntasks-per-node=1");
    strings_add (words, "--kill-on-bad-exit=0");
    strings_add (words, "--mpi=none");
    if (getenv ("SLURM_JOB_ID"))
        strings_add (words, "--overlap");
}

int slurm_run_on (const char *node, const char *program, const char *argument, unsigned seconds,
                  char *text, size_t size)
{
    struct command c = { .timeout = seconds, .keeps_job = true };
    int status;

    command_add (&c, "srun", NULL);
    if (slurm_components () > 1)
        command_number (&c, "--het-group", slurm_component_of (node));
    command_add (&c, "--overlap", NULL);
    command_add (&c, "--nodes=1", NULL);
    command_add (&c, "--ntasks=1", NULL);
    command_add (&c, "--input=none", NULL);
    command_add (&c, "--mpi=none", NULL);
    command_add (&c, "--nodelist", node);
    command_add (&c, program, NULL);
    command_add (&c, argument, NULL);
    status = command_run (&c, NULL, text, size);
    command_free (&c);
    return status;
}

void slurm_terminal_words (char ***words)
{
    strings_add (words, "srun");
    strings_add (words, "--pty");
}

int slurm_srun_output (const char *option, char *text, size_t size)
{
    struct command c = { .timeout = 20, .keeps_job = true };
    int status;

    command_add (&c, "srun", NULL);
    command_add (&c, option, NULL);
    status = command_run (&c, NULL, text, size);
    command_free (&c);
    return status;
}

int slurm_try (const char *option, const char *program, char *text, size_t size)
{
    struct command c = { .timeout = 60 };
    int status;

    command_add (&c, "srun", NULL);
    command_add (&c, "--ntasks=1", NULL);
    command_add (&c, "--immediate=30", NULL);
    command_add (&c, option, NULL);
    command_add (&c, program, NULL);
    status = command_run (&c, NULL, text, size);
    command_free (&c);
    return status;
}
