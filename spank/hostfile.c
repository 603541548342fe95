/* SPDX-License-Identifier: Apache-2.0 */
/* --distribution=arbitrary: the order of hosts, from srun to its tasks. */
#include "spank/hostfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rank/task.h"
#include "spank/step_facts.h"

/* "n1*4" is four times n1. */
static int add_host (char *list, size_t *used, char *host)
{
    char *star = strchr (host, '*');
    long times = star ? strtol (star + 1, NULL, 10) : 1;

    if (star)
        *star = '\0';
    for (; times > 0; times--) {
        int n = snprintf (list + *used, ORDER_TEXT - *used, "%s%s", *used ? "," : "", host);
        if (n < 0 || *used + (size_t)n >= ORDER_TEXT)
            return -1;
        *used += (size_t)n;
    }
    return 0;
}

/* One or more hosts a line, which # ends. */
static int read_file (const char *path, char *list)
{
    FILE *f = fopen (path, "re");
    char *line = NULL;
    size_t size = 0, used = 0;
    int rv = f ? 0 : -1;

    *list = '\0';
    while (rv == 0 && getline (&line, &size, f) >= 0) {
        char *next = NULL;
        line[strcspn (line, "#\\")] = '\0';
        for (char *h = strtok_r (line, " \t\r\n", &next); h && rv == 0;
             h = strtok_r (NULL, " \t\r\n", &next))
            rv = add_host (list, &used, h);
    }
    free (line);
    if (f)
        fclose (f);
    return used > 0 ? rv : -1;
}

static bool is_arbitrary (void)
{
    const char *chosen = getenv ("SLURM_DISTRIBUTION");
    char text[64];

    if (facts_option ('m', "--distribution", text, sizeof (text)) == 0)
        chosen = text;
    return chosen && !strncmp (chosen, "arbitrary", 9);
}

void hostfile_tell (bool wanted)
{
    const char *path = getenv ("SLURM_HOSTFILE");
    char nodes[8192]; /* srun prefers its own option, a list or a file */
    bool is_list = false;
    char *list;

    unsetenv (ORDER_VARIABLE);
    if (!wanted || (!path && !is_arbitrary ()))
        return;
    if (facts_option ('w', "--nodelist", nodes, sizeof (nodes)) == 0) {
        is_list = !strchr (nodes, '/');
        path = nodes;
    }
    if (is_list) {
        setenv (ORDER_VARIABLE, nodes, 1);
    } else if (path && (list = malloc (ORDER_TEXT))) {
        if (read_file (path, list) == 0)
            setenv (ORDER_VARIABLE, list, 1);
        free (list);
    }
}
