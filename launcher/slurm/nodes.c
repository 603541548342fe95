/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of the cluster, as scontrol lists them. */
#include "launcher/executor/cluster_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/subprocess.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"

enum { TEXT_MAX = 64 << 20, ASK_WAIT = 60 };

/* The value of " KEY=" in a line, up to a blank; "" if there is none. */
static const char *value_of (const char *line, const char *key)
{
    size_t n = strcspn (line, "\n");
    const char *at = memmem (line, n, key, strlen (key));

    return at ? at + strlen (key) : "";
}

/* "gpu:4", "gpu:a100:2(S:0-1),gpu:v100:1,lustre:5": the GPUs. */
static long gpus_of (const char *gres)
{
    long gpus = 0;

    while (*gres && !strchr (" \n", *gres)) {
        size_t n = strcspn (gres, ",( \n");
        const char *colon = memrchr (gres, ':', n);
        if (!strncmp (gres, "gpu:", 4) && colon)
            gpus += strtol (colon + 1, NULL, 10);
        gres += n;
        if (*gres == '(')
            gres += strcspn (gres, ") \n");
        gres += *gres == ')';
        gres += *gres == ',';
    }
    return gpus;
}

static bool is_there (const char *line)
{
    const char *state = value_of (line, " State=");

    return !strncmp (line, "NodeName=", 9) && strncmp (state, "FUTURE", 6);
}

/* From what scontrol has said, which is taken. */
static int read_nodes (struct cluster_nodes *c, char *text)
{
    *c = (struct cluster_nodes){ .text = text };
    for (const char *line = text; *line; line += strcspn (line, "\n"), line += *line == '\n') {
        struct cluster_node *list;
        if (!is_there (line))
            continue;
        if (!(list = array_grow (c->list, c->n, sizeof (*list))))
            return -1;
        c->list = list;
        list[c->n++] = (struct cluster_node){
            .gpus = gpus_of (value_of (line, " Gres=")),
            .cpus = strtol (value_of (line, " CPUTot="), NULL, 10),
            .partitions = value_of (line, " Partitions="),
        };
    }
    return 0;
}

/* Its exit status. */
static int ask (const char *what, char *text)
{
    struct command command = { .timeout = ASK_WAIT };
    int status;

    command_add (&command, "scontrol", NULL);
    command_add (&command, "--oneliner", NULL);
    command_add (&command, "show", NULL);
    command_add (&command, what, NULL);
    status = command_run (&command, NULL, text, TEXT_MAX);
    command_free (&command);
    return status;
}

int cluster_nodes_ask (struct cluster_nodes *c, struct slurmdl_error *err)
{
    char *text = malloc (TEXT_MAX);
    int status;

    *c = (struct cluster_nodes){ .text = text };
    if (!text)
        return errorf (err, "out of memory");
    status = ask ("node", text);
    errno = EPROTO;
    if (status != 0)
        return errorf (err, "scontrol show node: %.*s", (int)strcspn (text, "\n"),
                       status > 0 ? text : "it does not answer");
    return read_nodes (c, text) < 0 ? errorf (err, "out of memory") : 0;
}

void cluster_nodes_free (struct cluster_nodes *c)
{
    free (c->text);
    free (c->list);
    *c = (struct cluster_nodes){ NULL };
}

static bool has_name (const char *list, const char *name, size_t len)
{
    while (*list && !strchr (" \n", *list)) {
        size_t n = strcspn (list, ", \n");
        if (n == len && !strncmp (list, name, len))
            return true;
        list += n;
        list += *list == ',';
    }
    return false;
}

bool cluster_node_is_in (const struct cluster_node *node, const char *partitions)
{
    for (const char *p = partitions; p && *p; p += *p == ',') {
        size_t n = strcspn (p, ",");
        if (has_name (node->partitions, p, n))
            return true;
        p += n;
    }
    return !partitions;
}

long cluster_nodes_with (const struct cluster_nodes *c, const char *partitions, long gpus,
                         long cpus)
{
    long n = 0;

    for (size_t i = 0; i < c->n; i++)
        n += c->list[i].gpus >= gpus && c->list[i].cpus >= cpus
             && cluster_node_is_in (&c->list[i], partitions);
    return n;
}

/* ---- who preempts whom ---- */

static void take_word (char *buf, size_t size, const char *at)
{
    snprintf (buf, size, "%.*s", (int)strcspn (at, " \n"), at);
}

/* The line of a partition, NULL: there is none. */
static const char *partition_line (const char *text, const char *name)
{
    static const char key[] = "PartitionName=";
    size_t n = strlen (name);

    for (; *text; text += strcspn (text, "\n"), text += *text == '\n')
        if (!strncmp (text, key, sizeof (key) - 1) && !strncmp (text + sizeof (key) - 1, name, n)
            && text[sizeof (key) - 1 + n] == ' ')
            return text;
    return NULL;
}

static long tier_of (const char *line)
{
    return strtol (value_of (line, " PriorityTier="), NULL, 10);
}

static bool share_nodes (const struct cluster_nodes *c, const char *a, const char *b)
{
    for (size_t i = 0; i < c->n; i++)
        if (cluster_node_is_in (&c->list[i], a) && cluster_node_is_in (&c->list[i], b))
            return true;
    return false;
}

/* Of a partition of a higher tier, on nodes of both. */
static bool find_higher (const struct cluster_nodes *c, const char *text, const char *name,
                         long tier, char by[256])
{
    for (; *text; text += strcspn (text, "\n"), text += *text == '\n') {
        if (tier_of (text) <= tier)
            continue;
        take_word (by, 256, value_of (text, "PartitionName="));
        if (share_nodes (c, name, by))
            return true;
    }
    return false;
}

bool cluster_preempts (const struct cluster_nodes *c, const char *name, char by[256], char how[64])
{
    char *text = malloc (TEXT_MAX);
    const char *line = text && ask ("partition", text) == 0 ? partition_line (text, name) : NULL;
    bool yes = false;

    if (line) {
        take_word (how, 64, value_of (line, " PreemptMode="));
        yes = *how && strcmp (how, "OFF") && find_higher (c, text, name, tier_of (line), by);
    }
    free (text);
    return yes;
}
