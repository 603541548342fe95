/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of nodes, from SLURM_NODE_ALIASES and slurm.conf. */
#include "spank/nodeaddr.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/rank/layout.h"
#include "runtime/rank/slurmconf.h"
#include "spank/variable.h"

enum { NAME = 256, LIST = 64 * 1024 };

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

static int read_node (void *arg, const char *line)
{
    struct node_search *s = arg;
    char *name = malloc (2 * LIST);
    char *to = name ? name + LIST : NULL;
    struct pairs p = { .s = s };

    if (name && slurmconf_value (line, "NodeName", name, LIST) && strcasecmp (name, "DEFAULT")
        && (slurmconf_value (line, "NodeAddr", to, LIST)
            || slurmconf_value (line, "NodeHostname", to, LIST))
        && layout_each_host (to, add_text, &p.to) == 0)
        layout_each_host (name, emit_pair, &p);
    free (p.to.text);
    free (name);
    return s->rv;
}

static void read_conf (struct node_search *s, spank_t sp)
{
    char chosen[PATH_MAX];
    const char *path;

    variable_text (sp, "SLURM_CONF", chosen, sizeof (chosen));
    if ((path = slurmconf_path (chosen)))
        slurmconf_each (path, read_node, s);
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
            snprintf (to, NAME, "%.*s", (int)strcspn (from, colon[1] == '[' ? "]" : ":,"), from);
            s->rv = s->emit (s->arg, node, to);
        }
        list += len + (list[len] == ',');
    }
}

void nodeaddr_each (spank_t sp, int (*emit) (void *arg, const char *node, const char *to),
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
