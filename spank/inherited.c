/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin set in an outer step: jobs from there are not to have it. */
#include "spank/inherited.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* "A,B,C", of names that a plugin wrote. */
static void unset_all (const char *list)
{
    char name[128];

    while (*list) {
        size_t n = strcspn (list, ",");
        snprintf (name, sizeof (name), "%.*s", (int)n, list);
        if (n > 0 && n < sizeof (name) && !strchr (name, '='))
            unsetenv (name);
        list += n + (list[n] == ',');
    }
}

/* Its folder is the first part of the path. */
static void leave_python (void)
{
    const char *path = getenv ("PYTHONPATH");
    const char *ours = getenv ("DL_DEBUG_PYTHON");
    char rest[PATH_MAX * 4];
    size_t n;

    if (!ours || !*ours)
        ours = DEBUGDIR;
    n = strlen (ours);
    if (!path || strncmp (path, ours, n) || (path[n] && path[n] != ':')
        || strlen (path) >= sizeof (rest))
        return;
    snprintf (rest, sizeof (rest), "%s", path + n + (path[n] == ':'));
    if (*rest)
        setenv ("PYTHONPATH", rest, 1);
    else
        unsetenv ("PYTHONPATH");
}

void inherited_clear (void)
{
    static const char *const marks[] = { "DL_ENV_SET", "DL_BIND_SET", "DL_NCCL_SET",
                                         "DL_DEBUG_SET" };
    static const char *const others[] = { "DL_ENV_STEP", "DL_NCCL_FABRIC", "DL_DEBUG_PATH",
                                          "DL_SECRET", "SLURM_DL_BOARD" };
    bool found = false;

    if (getenv ("DL_DEBUG_SET"))
        leave_python ();
    for (size_t i = 0; i < sizeof (marks) / sizeof (*marks); i++) {
        const char *list = getenv (marks[i]);
        char *copy = list ? strdup (list) : NULL;
        if (!copy)
            continue;
        found = true;
        unset_all (copy);
        free (copy);
        unsetenv (marks[i]);
    }
    for (size_t i = 0; found && i < sizeof (others) / sizeof (*others); i++)
        unsetenv (others[i]);
}

/* Slurm passes options of plugins to the steps of a job in variables. */
void inherited_options_clear (void)
{
    static const char mark[] = "_SLURM_SPANK_OPTION_dl_";
    char name[128];

    for (char **v = environ; getenv ("SLURM_JOB_ID") && *v;) {
        size_t n = strcspn (*v, "=");
        if (n >= sizeof (name) || !memmem (*v, n, mark, strlen (mark))) {
            v++;
            continue;
        }
        snprintf (name, sizeof (name), "%.*s", (int)n, *v);
        unsetenv (name);
    }
}
