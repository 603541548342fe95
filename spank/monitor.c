/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-monitor: start the monitor of a node, and print its summary at the end. */
#include "spank/hooks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "spank/context.h"
#include "spank/helper.h"

enum { SUMMARY_WITHIN = 10 };

static char step_name[32]; /* in srun: "JOB.STEP", or "" if there is nothing to summarize */

/* If the option is a default, sample into the site's folder and print nothing. */
static void sample_quietly (spank_t sp, const char *const *args)
{
    static const char variable[] = "DL_MONITOR_DIR";
    char users[PATH_LENGTH], ours[PATH_LENGTH];
    bool is_set = variable_text (sp, variable, users, sizeof (users)) == 0;

    if (!is_set && option_folder (ours, sizeof (ours)) < 0)
        return;
    if (!is_set)
        spank_setenv (sp, variable, ours, 1);
    helper_detach (sp, args, NULL);
    if (!is_set)
        spank_unsetenv (sp, variable);
}

void monitor_task (spank_t sp)
{
    const char *args[] = { "sample", option_value (PLUGIN_MONITOR), NULL };
    uint32_t local_rank;

    if (spank_get_item (sp, S_TASK_ID, &local_rank) != ESPANK_SUCCESS || local_rank != 0)
        return;
    if (!option_is_given (PLUGIN_MONITOR)) {
        sample_quietly (sp, args);
        return;
    }
    if (helper_detach (sp, args, NULL) < 0)
        slurm_error ("dl: --dl-monitor: cannot run %s: %s; nothing is sampled", option_command (),
                     helper_why (errno));
}

void monitor_begin (spank_t sp)
{
    uint32_t job, step;

    if (spank_get_item (sp, S_JOB_ID, &job) == ESPANK_SUCCESS
        && spank_get_item (sp, S_JOB_STEPID, &step) == ESPANK_SUCCESS)
        snprintf (step_name, sizeof (step_name), "%u.%u", job, step);
}

void monitor_end (spank_t sp)
{
    const char *args[] = { "monitor", "--summary", step_name, NULL };

    if (*step_name && helper_wait (sp, args, SUMMARY_WITHIN) < 0)
        slurm_error ("dl: --dl-monitor: no summary: %s: %s", option_command (), helper_why (errno));
}
