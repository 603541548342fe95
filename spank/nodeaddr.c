/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of nodes, from SLURM_NODE_ALIASES and slurm.conf. */
#include "spank/nodeaddr.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/rank/layout.h"
#include "spank/variable.h"

enum { NAME = 256, DEPTH = 4, LIST = 64 * 1024 };

struct node_search {
    int (*emit) (void *arg, const char *node, const char *to);
    void *arg;
    int rv;
};

/* ---- slurm.conf ---- */

/* Addresses, each with its 0. */
struct texts {
    char *text;
    size_t used, size;
};

static int add_text (void *arg, const char *text)
{
    struct texts *t = arg;
    size_t n = strlen (text) + 1;

    if (t->used + n > t->size) {
        size_t size = 2 * t->size + n;
        char *more = realloc (t->text, size);
        if (!more)
            return -1;
        t->text = more;
        t->size = size;
    }
    memcpy (t->text + t->used, text, n);
    t->used += n;
    return 0;
}

/* NodeName=n[1-4] NodeAddr=10.0.0.[1-4]: one line of nodes.  A single address
 * is that of all of them.
 */
struct pairs {
    struct node_search *s;
    struct texts to;
    size_t at;
};

static int emit_pair (void *arg, const char *node)
{
    struct pairs *p = arg;
    const char *to = p->to.text + p->at;
    size_t next = p->at + strlen (to) + 1;

    p->s->rv = p->s->emit (p->s->arg, node, to);
    if (next < p->to.used)
        p->at = next;
    return p->s->rv;
}

/* The value of "KEY=" in a line of slurm.conf, in which case is nothing. */
static char *value_of (const char *line, const char *key)
{
    size_t n = strlen (key);

    for (const char *at = line; *at; at += strspn (at, " \t")) {
        if (!strncasecmp (at, key, n)) {
            const char *v = at + n + strspn (at + n, " \t");
            if (*v++ == '=') {
                v += strspn (v, " \t\"");
                return strndup (v, strcspn (v, " \t\"\r\n"));
            }
        }
        at += strcspn (at, " \t");
    }
    return NULL;
}

static void read_node (struct node_search *s, const char *line)
{
    char *name = value_of (line, "NodeName");
    char *to = value_of (line, "NodeAddr");
    struct pairs p = { .s = s };

    if (!to)
        to = value_of (line, "NodeHostname");
    if (name && to && strcasecmp (name, "DEFAULT")
        && layout_each_host (to, add_text, &p.to) == 0)
        layout_each_host (name, emit_pair, &p);
    free (p.to.text);
    free (name);
    free (to);
}

/* A line, with those that a \ joins to it, and without its comment. */
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

static void read_file (struct node_search *s, const char *path, int depth);

/* Relative to the folder of the file. */
static void read_included (struct node_search *s,
                           const char *from,
                           const char *name,
                           int depth)
{
    const char *slash = strrchr (from, '/');
    char path[PATH_MAX];
    int n = *name == '/' || !slash ? 0 : (int)(slash - from + 1);

    if (snprintf (path, sizeof (path), "%.*s%s", n, from, name)
        < (int)sizeof (path))
        read_file (s, path, depth + 1);
}

static void read_file (struct node_search *s, const char *path, int depth)
{
    FILE *f = depth < DEPTH ? fopen (path, "re") : NULL;
    char *line = NULL;
    size_t size = 0;

    while (f && s->rv == 0 && next_line (f, &line, &size)) {
        char *at = line + strspn (line, " \t");
        if (!strncasecmp (at, "Include", 7) && strchr (" \t", at[7]) && at[7]) {
            at += 7 + strspn (at + 7, " \t");
            at[strcspn (at, " \t\r\n")] = '\0';
            read_included (s, path, at, depth);
        } else if (!strncasecmp (at, "NodeName", 8)) {
            read_node (s, at);
        }
    }
    free (line);
    if (f)
        fclose (f);
}

static void read_conf (struct node_search *s, spank_t sp)
{
    static const char *const usual[] = { "/etc/slurm/slurm.conf",
                                         "/run/slurm/conf/slurm.conf",
                                         "/etc/slurm-llnl/slurm.conf",
                                         "/usr/local/etc/slurm.conf" };
    char path[PATH_MAX];

    if (variable_text (sp, "SLURM_CONF", path, sizeof (path)) == 0 && *path) {
        read_file (s, path, 0);
        return;
    }
    for (size_t i = 0; i < sizeof (usual) / sizeof (*usual) && s->rv == 0; i++)
        read_file (s, usual[i], 0);
}

/* ---- SLURM_NODE_ALIASES ---- */

/* "ec0:1.2.3.4:host,ec1:[fe::1]:host", of the nodes of a cloud. */
static void read_aliases (struct node_search *s, const char *list)
{
    while (*list && s->rv == 0) {
        size_t len = strcspn (list, ",");
        char node[NAME], to[NAME];
        const char *colon = memchr (list, ':', len);
        if (colon && (size_t)(colon - list) < NAME && len < NAME) {
            const char *from = colon + 1 + (colon[1] == '[');
            snprintf (node, NAME, "%.*s", (int)(colon - list), list);
            snprintf (to,
                      NAME,
                      "%.*s",
                      (int)strcspn (from, colon[1] == '[' ? "]" : ":,"),
                      from);
            s->rv = s->emit (s->arg, node, to);
        }
        list += len + (list[len] == ',');
    }
}

void nodeaddr_each (spank_t sp,
                    int (*emit) (void *arg, const char *node, const char *to),
                    void *arg)
{
    struct node_search s = { emit, arg, 0 };
    char *aliases = malloc (LIST);

    if (aliases && variable_text (sp, "SLURM_NODE_ALIASES", aliases, LIST) == 0)
        read_aliases (&s, aliases);
    free (aliases);
    if (s.rv == 0)
        read_conf (&s, sp);
}
