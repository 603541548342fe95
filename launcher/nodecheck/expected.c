/* SPDX-License-Identifier: Apache-2.0 */
/* How many GPUs this process, or this node, should have. */
#include "launcher/nodecheck/expected.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "launcher/sys/subprocess.h"
#include "runtime/base/environment.h"
#include "runtime/base/word.h"
#include "runtime/rank/layout.h"

enum { LINE = 8192 };

const char *gpus_visible (void)
{
    const char *list = getenv ("CUDA_VISIBLE_DEVICES");

    return list && strcmp (list, "NoDevFiles") ? list : NULL;
}

long gpus_given (void)
{
    static const char *const lists[] = { "SLURM_STEP_GPUS", "SLURM_JOB_GPUS" };
    const char *list = gpus_visible ();
    long n = (long)environment_number ("SLURM_GPUS_ON_NODE", 0);

    if (list && *list)
        return strcmp (list, "-1") ? words_count (list) : 0;
    for (size_t i = 0; i < 2 && n == 0; i++)
        if ((list = getenv (lists[i])))
            n = words_count (list);
    return n;
}

/* ---- words of Slurm's configuration ---- */

/* The value of "KEY=" in a line, cut at the next blank; NULL: it has none. */
static const char *value_of (const char *line, const char *key, char *buf)
{
    size_t n = strlen (key);

    for (const char *at = line; *at; at += strspn (at, " \t")) {
        if (!strncasecmp (at, key, n) && at[n] == '=') {
            snprintf (buf,
                      LINE,
                      "%.*s",
                      (int)strcspn (at + n + 1, " \t\r\n"),
                      at + n + 1);
            return buf;
        }
        at += strcspn (at, " \t");
    }
    return NULL;
}

/* "gpu:a100:4(S:0-1),gpu:2,shard:8" has 6. */
static long gpus_of (const char *gres)
{
    long sum = 0;

    while (*gres) {
        size_t n = strcspn (gres, ",(");
        if (!strncmp (gres, "gpu", 3) && (gres[3] == ':' || n == 3)) {
            const char *last = memrchr (gres, ':', n);
            long count = last ? strtol (last + 1, NULL, 10) : 1;
            sum += count > 0 ? count : 1;
        }
        gres += n;
        if (*gres == '(')
            gres += strcspn (gres, ")") + 1;
        gres += *gres == ',';
    }
    return sum;
}

static int is_node (void *arg, const char *name)
{
    return !strcmp (arg, name);
}

static bool names_node (const char *list, char *node)
{
    return layout_each_host (list, is_node, node) == 1;
}

static int count (void *arg, const char *name)
{
    (void)name;
    ++*(long *)arg;
    return 0;
}

/* ---- its files ---- */

static long read_slurm (const char *line, char *node)
{
    char list[LINE], gres[LINE];

    return value_of (line, "NodeName", list) && names_node (list, node)
                   && value_of (line, "Gres", gres)
               ? gpus_of (gres)
               : 0;
}

/* A line without a node is of all that slurm.conf gives GPUs: not known here.
 */
static long read_gres (const char *line, char *node)
{
    char text[LINE];
    long n = 0;

    if (!value_of (line, "NodeName", text) || !names_node (text, node)
        || !value_of (line, "Name", text) || strcmp (text, "gpu"))
        return 0;
    if (value_of (line, "Count", text))
        return atol (text);
    if (value_of (line, "File", text))
        layout_each_host (text, count, &n);
    return n;
}

static long read_file (const char *path,
                       long (*read) (const char *line, char *node),
                       char *node)
{
    FILE *f = fopen (path, "re");
    char *line = NULL;
    size_t size = 0;
    long sum = 0;

    while (f && getline (&line, &size, f) >= 0) {
        line[strcspn (line, "#")] = '\0';
        sum += read (line, node);
    }
    free (line);
    if (f)
        fclose (f);
    return sum;
}

static long ask_slurm (const char *node)
{
    struct command c = { .no_errors = true, .timeout = 10 };
    char text[LINE] = "", gres[LINE];
    char *next = text;
    long n = 0;

    command_add (&c, "scontrol", NULL);
    command_add (&c, "show", NULL);
    command_add (&c, "node", NULL);
    command_add (&c, node, NULL);
    if (command_run (&c, NULL, text, sizeof (text)) == 0)
        for (char *l; n == 0 && (l = strsep (&next, "\n"));)
            if (value_of (l + strspn (l, " "), "Gres", gres))
                n = gpus_of (gres);
    command_free (&c);
    return n;
}

static long of_node (const char **by)
{
    const char *conf = getenv ("SLURM_CONF");
    char node[256] = "", path[PATH_MAX];
    const char *name = getenv ("SLURMD_NODENAME");
    long n;

    gethostname (node, sizeof (node) - 1);
    node[strcspn (node, ".")] = '\0';
    if (name)
        snprintf (node, sizeof (node), "%s", name);
    if (!conf)
        conf = access ("/etc/slurm/slurm.conf", R_OK) == 0
                   ? "/etc/slurm/slurm.conf"
                   : "/run/slurm/conf/slurm.conf";
    *by = "slurm.conf";
    if ((n = read_file (conf, read_slurm, node)) > 0)
        return n;
    *by = "gres.conf";
    snprintf (path,
              sizeof (path),
              "%.*sgres.conf",
              (int)(strrchr (conf, '/') ? strrchr (conf, '/') - conf + 1 : 0),
              conf);
    if ((n = read_file (path, read_gres, node)) > 0)
        return n;
    *by = "scontrol show node";
    return access (conf, R_OK) == 0 ? ask_slurm (node) : 0;
}

long gpus_expected (const char **by)
{
    long n = (long)environment_number (EXPECTED_VARIABLE, -1);

    *by = "--gpus";
    if (n >= 0)
        return n;
    *by = "Slurm";
    n = gpus_given ();
    if (n > 0 || getenv ("SLURM_JOB_ID"))
        return n;
    return of_node (by);
}
