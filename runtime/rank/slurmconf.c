/* SPDX-License-Identifier: Apache-2.0 */
/* Read slurm.conf and gres.conf. */
#include "runtime/rank/slurmconf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { DEPTH = 4 };

struct conf_reader {
    int (*emit) (void *arg, const char *line);
    void *arg;
};

const char *slurmconf_path (const char *chosen)
{
    static const char *const usual[] = { "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf",
                                         "/etc/slurm-llnl/slurm.conf",
                                         "/usr/local/etc/slurm.conf" };

    if (chosen && *chosen)
        return chosen;
    for (size_t i = 0; i < sizeof (usual) / sizeof (*usual); i++)
        if (access (usual[i], R_OK) == 0)
            return usual[i];
    return NULL;
}

/* Read a line, joined with those that follow a \, and without its comment. */
static bool next_line (FILE *f, char **line, size_t *size)
{
    char *more = NULL;
    size_t room = 0;
    ssize_t n = getline (line, size, f);

    while (n >= 2 && (*line)[n - 1] == '\n' && (*line)[n - 2] == '\\') {
        ssize_t m = getline (&more, &room, f);
        char *both = m < 0 ? NULL : realloc (*line, (size_t)(n + m + 1));
        if (!both)
            break;
        memcpy (both + n - 2, more, (size_t)m + 1);
        *line = both;
        *size = (size_t)(n + m + 1);
        n += m - 2;
    }
    free (more);
    if (n >= 0)
        (*line)[strcspn (*line, "#")] = '\0';
    return n >= 0;
}

static int read_conf_file (const struct conf_reader *l, const char *path, int depth);

/* Resolve the name relative to the folder of the including file. */
static int read_conf_include (const struct conf_reader *l, const char *from, const char *name,
                              int depth)
{
    const char *slash = strrchr (from, '/');
    char path[PATH_MAX];
    int n = *name == '/' || !slash ? 0 : (int)(slash - from + 1);

    if (snprintf (path, sizeof (path), "%.*s%s", n, from, name) >= (int)sizeof (path))
        return 0;
    return read_conf_file (l, path, depth + 1);
}

static int read_conf_file (const struct conf_reader *l, const char *path, int depth)
{
    FILE *f = depth < DEPTH ? fopen (path, "re") : NULL;
    char *line = NULL;
    size_t size = 0;
    int rv = 0;

    while (f && rv == 0 && next_line (f, &line, &size)) {
        char *at = line + strspn (line, " \t");
        if (!strncasecmp (at, "Include", 7) && at[7] && strchr (" \t", at[7])) {
            at += 7 + strspn (at + 7, " \t");
            at[strcspn (at, " \t\r\n")] = '\0';
            rv = read_conf_include (l, path, at, depth);
        } else {
            rv = l->emit (l->arg, at);
        }
    }
    free (line);
    if (f)
        fclose (f);
    return rv;
}

int slurmconf_each (const char *path, int (*emit) (void *arg, const char *line), void *arg)
{
    const struct conf_reader l = { emit, arg };

    return read_conf_file (&l, path, 0);
}

bool slurmconf_value (const char *line, const char *key, char *buf, size_t size)
{
    static const char blank[] = " \t\r\n";
    size_t n = strlen (key);

    for (const char *at = line + strspn (line, blank); *at; at += strspn (at, blank)) {
        if (!strncasecmp (at, key, n)) {
            const char *v = at + n + strspn (at + n, blank);
            if (*v == '=') {
                v += 1 + strspn (v + 1, " \t\"");
                snprintf (buf, size, "%.*s", (int)strcspn (v, " \t\"\r\n"), v);
                return true;
            }
        }
        at += strcspn (at, blank);
    }
    return false;
}

long slurmconf_gpus (const char *gres)
{
    long sum = 0;

    while (*gres) {
        size_t n = strcspn (gres, ",(");
        if (!strncasecmp (gres, "gpu", 3) && (gres[3] == ':' || n == 3)) {
            const char *last = memrchr (gres, ':', n);
            char *end = NULL;
            long count = last ? strtol (last + 1, &end, 10) : 1;
            sum += last && end == last + 1 ? 1 : count;
        }
        gres += n;
        if (*gres == '(')
            gres += strcspn (gres, ")") + 1;
        gres += *gres == ',';
    }
    return sum;
}

static int take_range (void *arg, const char *line)
{
    long *range = arg;
    char text[64];

    if (slurmconf_value (line, "SrunPortRange", text, sizeof (text))
        && sscanf (text, "%ld-%ld", &range[0], &range[1]) != 2)
        range[0] = 0;
    return 0;
}

int slurmconf_srun_ports (long *from, long *to)
{
    const char *path = slurmconf_path (getenv ("SLURM_CONF"));
    long range[2] = { 0, 0 };

    if (path)
        slurmconf_each (path, take_range, range);
    *from = range[0];
    *to = range[1];
    return *from > 0 && *from <= *to && *to < 65536 ? 0 : -1;
}
