/* SPDX-License-Identifier: Apache-2.0 */
/* The environment that srun prepares for a step: clear what an outer step left, and
 * set the secret and the order of hosts.
 */
#include "spank/hooks.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/rank/task.h"
#include "spank/context.h"
#include "spank/defaults.h"

/* Unset the variables in a list "A,B,C" that the plugin wrote. */
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

/* Remove our folder, the first component of PYTHONPATH. */
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

/* Slurm passes plugin options to the steps of a job in variables. */
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

enum { BYTES = SECRET_TEXT / 2 };

static const char secret_variable[] = "DL_SECRET";

int secret_random (char text[SECRET_TEXT])
{
    unsigned char secret[BYTES];

    if (getrandom (secret, sizeof (secret), 0) != sizeof (secret))
        return -1;
    for (int i = 0; i < BYTES; i++)
        snprintf (text + 2 * (size_t)i, 3, "%02x", secret[i]);
    explicit_bzero (secret, sizeof (secret));
    return 0;
}

static void set_secret (void)
{
    char text[SECRET_TEXT];

    if (secret_random (text) < 0) {
        unsetenv (secret_variable);
        plugin_complain ("no secret for this step: %s", strerror (errno));
        return;
    }
    setenv (secret_variable, text, 1);
    explicit_bzero (text, sizeof (text));
}

/* srun calls this for each component of a heterogeneous job. */
void plugin_secret (bool wanted)
{
    static pid_t made;

    if (made == getpid ())
        return;
    if (wanted) {
        set_secret ();
        made = getpid ();
    } else if (getenv ("SLURM_STEP_ID") && *getenv ("SLURM_STEP_ID"))
        unsetenv (secret_variable);
}

/* "n1*4" means n1 four times. */
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

/* One or more hosts per line; # starts a comment. */
static int read_host_list (const char *path, char *list)
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
        if (read_host_list (path, list) == 0)
            setenv (ORDER_VARIABLE, list, 1);
        free (list);
    }
}
