/* SPDX-License-Identifier: Apache-2.0 */
/* How many GPUs this process, or this node, should have. */
#include "launcher/node/expected.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "runtime/base/environment.h"
#include "runtime/base/nearest_word.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/slurmconf.h"

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

/* ---- Slurm's configuration ---- */

/* What a search in the files is for, and what it has found. */
struct expected_node {
    char name[256];  /* NodeName, or that of the host */
    char other[256]; /* the host's with its domain; "": it has none */
    long all;        /* GPUs of NodeName=DEFAULT */
    long gpus;
    size_t at; /* place in a list */
};

/* As DNS compares names; the place of one in a list is kept. */
static int is_node (void *arg, const char *name)
{
    struct expected_node *s = arg;

    if (!strcasecmp (s->name, name) || !strcasecmp (s->other, name))
        return 1;
    s->at++;
    return 0;
}

static bool names_node (const char *list, struct expected_node *s)
{
    s->at = 0;
    return layout_each_host (list, is_node, s) == 1;
}

/* The name at a place of a list. */
static int take_name (void *arg, const char *name)
{
    struct expected_node *s = arg;

    if (s->at-- > 0)
        return 0;
    snprintf (s->name, sizeof (s->name), "%s", name);
    return 1;
}

static int count (void *arg, const char *name)
{
    (void)name;
    ++*(long *)arg;
    return 0;
}

/* A host that is no NodeName may be a NodeHostname: gres.conf has the first. */
static int read_slurm (void *arg, const char *line)
{
    struct expected_node *s = arg;
    char list[LINE], gres[LINE], hosts[LINE];
    bool has = slurmconf_value (line, "Gres", gres, sizeof (gres));

    if (!slurmconf_value (line, "NodeName", list, sizeof (list)))
        return 0;
    if (!strcasecmp (list, "DEFAULT")) {
        if (has)
            s->all = slurmconf_gpus (gres);
        return 0;
    }
    if (!names_node (list, s)) {
        if (!slurmconf_value (line, "NodeHostname", hosts, sizeof (hosts))
            || !names_node (hosts, s))
            return 0;
        layout_each_host (list, take_name, s);
    }
    s->gpus = has ? slurmconf_gpus (gres) : s->all;
    return 1;
}

/* A line without a node is of all that slurm.conf gives GPUs: not known here.
 */
static int read_gres (void *arg, const char *line)
{
    struct expected_node *s = arg;
    char text[LINE];

    if (!slurmconf_value (line, "NodeName", text, sizeof (text)) || !names_node (text, s)
        || !slurmconf_value (line, "Name", text, sizeof (text)) || strcasecmp (text, "gpu"))
        return 0;
    if (slurmconf_value (line, "Count", text, sizeof (text)))
        s->gpus += atol (text);
    else if (slurmconf_value (line, "File", text, sizeof (text)))
        layout_each_host (text, count, &s->gpus);
    return 0;
}

static void find_name (struct expected_node *s)
{
    const char *name = getenv ("SLURMD_NODENAME");

    gethostname (s->name, sizeof (s->name) - 1);
    if (name) {
        snprintf (s->name, sizeof (s->name), "%s", name);
    } else if (strchr (s->name, '.')) {
        memcpy (s->other, s->name, sizeof (s->other));
        s->name[strcspn (s->name, ".")] = '\0';
    }
}

static long of_node (const char **by)
{
    const char *conf = slurmconf_path (getenv ("SLURM_CONF"));
    struct expected_node s = { .gpus = 0 };
    char path[PATH_MAX];

    if (!conf)
        return 0;
    find_name (&s);
    *by = "slurm.conf";
    slurmconf_each (conf, read_slurm, &s);
    if (s.gpus > 0)
        return s.gpus;
    *by = "gres.conf";
    snprintf (path, sizeof (path), "%.*sgres.conf",
              (int)(strrchr (conf, '/') ? strrchr (conf, '/') - conf + 1 : 0), conf);
    slurmconf_each (path, read_gres, &s);
    if (s.gpus > 0)
        return s.gpus;
    *by = "scontrol show node";
    return access (conf, R_OK) == 0 ? slurm_gpus_of (s.name) : 0;
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
