/* SPDX-License-Identifier: Apache-2.0 */
/* Describe the cluster by scontrol show. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/rank/slurmconf.h"

enum {
    TEXT_MAX = 64 << 20,
    CONFIG_TEXT = 1 << 20,
    JOB_TEXT = 1 << 20,
    ASK_WAIT = 60,
    NODE_WAIT = 10
};

/* Find the value of " KEY=" in a line.  It ends at a blank.  Returns "" if there is none. */
static const char *node_field (const char *line, const char *key)
{
    size_t n = strcspn (line, "\n");
    const char *at = memmem (line, n, key, strlen (key));

    return at ? at + strlen (key) : "";
}

static long gpus_of (const char *line)
{
    char gres[4096];

    snprintf (gres, sizeof (gres), "%.*s", (int)strcspn (node_field (line, " Gres="), " \n"),
              node_field (line, " Gres="));
    return slurmconf_gpus (gres);
}

static bool is_there (const char *line)
{
    const char *state = node_field (line, " State=");

    return !strncmp (line, "NodeName=", 9) && strncmp (state, "FUTURE", 6);
}

/* Parse scontrol's output, and take ownership of it. */
static void read_nodes (struct slurm_nodes *c, char *text)
{
    *c = (struct slurm_nodes){ .text = text };
    for (const char *line = text; *line; line += strcspn (line, "\n"), line += *line == '\n') {
        if (!is_there (line))
            continue;
        XGROW (c->list, c->n);
        c->list[c->n++] = (struct slurm_node){
            .gpus = gpus_of (line),
            .cpus = strtol (node_field (line, " CPUTot="), NULL, 10),
            .partitions = node_field (line, " Partitions="),
        };
    }
}

int slurm_show (const char *what, const char *name, unsigned seconds, char *text, size_t size)
{
    struct command command = { .timeout = seconds };
    int status;

    command_add (&command, "scontrol", NULL);
    if (strcmp (what, "config"))
        command_add (&command, "--oneliner", NULL);
    command_add (&command, "show", NULL);
    command_add (&command, what, NULL);
    if (name)
        command_add (&command, name, NULL);
    status = command_run (&command, NULL, text, size);
    command_free (&command);
    return status;
}

int slurm_nodes_ask (struct slurm_nodes *c, struct slurmdl_error *err)
{
    char *text = xmalloc (TEXT_MAX);
    int status;

    *c = (struct slurm_nodes){ .text = text };
    status = slurm_show ("node", NULL, ASK_WAIT, text, TEXT_MAX);
    errno = EPROTO;
    if (status != 0)
        return errorf (err, "scontrol show node: %.*s", (int)strcspn (text, "\n"),
                       status > 0 ? text : "it does not answer");
    read_nodes (c, text);
    return 0;
}

void slurm_nodes_free (struct slurm_nodes *c)
{
    free (c->text);
    free (c->list);
    *c = (struct slurm_nodes){ NULL };
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

bool slurm_node_is_in (const struct slurm_node *node, const char *partitions)
{
    for (const char *p = partitions; p && *p; p += *p == ',') {
        size_t n = strcspn (p, ",");
        if (has_name (node->partitions, p, n))
            return true;
        p += n;
    }
    return !partitions;
}

long slurm_nodes_with (const struct slurm_nodes *c, const char *partitions, long gpus, long cpus)
{
    long n = 0;

    for (size_t i = 0; i < c->n; i++)
        n += c->list[i].gpus >= gpus && c->list[i].cpus >= cpus
             && slurm_node_is_in (&c->list[i], partitions);
    return n;
}

/* ---- who preempts whom ---- */

static void take_word (char *buf, size_t size, const char *at)
{
    snprintf (buf, size, "%.*s", (int)strcspn (at, " \n"), at);
}

/* Find the line of a partition.  Returns NULL if there is none. */
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
    return strtol (node_field (line, " PriorityTier="), NULL, 10);
}

static bool share_nodes (const struct slurm_nodes *c, const char *a, const char *b)
{
    for (size_t i = 0; i < c->n; i++)
        if (slurm_node_is_in (&c->list[i], a) && slurm_node_is_in (&c->list[i], b))
            return true;
    return false;
}

/* Find a partition of a higher tier that shares a node with 'name'. */
static bool find_higher (const struct slurm_nodes *c, const char *text, const char *name, long tier,
                         char by[256])
{
    for (; *text; text += strcspn (text, "\n"), text += *text == '\n') {
        if (tier_of (text) <= tier)
            continue;
        take_word (by, 256, node_field (text, "PartitionName="));
        if (share_nodes (c, name, by))
            return true;
    }
    return false;
}

/* Ask once; the partitions do not change while dl starts jobs.  "" if Slurm does not answer. */
static const char *partitions_ask (void)
{
    static char *text;

    if (!text && slurm_show ("partition", NULL, ASK_WAIT, text = xmalloc (TEXT_MAX), TEXT_MAX))
        *text = '\0';
    return text;
}

bool slurm_preempts (const struct slurm_nodes *c, const char *name, char by[256], char how[64])
{
    const char *text = partitions_ask ();
    const char *line = partition_line (text, name);
    bool yes = false;

    if (line) {
        take_word (how, 64, node_field (line, " PreemptMode="));
        yes = *how && strcmp (how, "OFF") && find_higher (c, text, name, tier_of (line), by);
    }
    return yes;
}

static const char *default_line (const char *text)
{
    for (; *text; text += strcspn (text, "\n"), text += *text == '\n')
        if (!strncmp (node_field (text, " Default="), "YES", 3))
            return text;
    return NULL;
}

/* NULL: the default partition. */
static const char *line_of_partition (const char *partition)
{
    const char *text = partitions_ask ();

    return partition ? partition_line (text, partition) : default_line (text);
}

long slurm_partition_nodes (const char *partition)
{
    const char *line = line_of_partition (partition);
    long nodes = 0, most = 0;

    if (line) {
        nodes = strtol (node_field (line, " TotalNodes="), NULL, 10);
        most = strtol (node_field (line, " MaxNodes="), NULL, 10); /* or UNLIMITED */
    }
    return most > 0 && most < nodes ? most : nodes;
}

long slurm_partition_cpus (const char *partition)
{
    const char *line = line_of_partition (partition);

    /* otherwise components of a job may share cores */
    return line && !strncmp (node_field (line, " OverSubscribe="), "NO", 2)
               ? strtol (node_field (line, " TotalCPUs="), NULL, 10)
               : 0;
}

long slurm_partition_largest (const char *partition)
{
    const char *line = partition ? NULL : line_of_partition (NULL);
    struct slurm_nodes all;
    char name[256] = "";
    long most = 0;

    if (line)
        take_word (name, sizeof (name), line + strlen ("PartitionName="));
    if ((partition || *name) && slurm_nodes_ask (&all, NULL) == 0) {
        for (size_t i = 0; i < all.n; i++)
            if (all.list[i].cpus > most && slurm_node_is_in (&all.list[i], partition ?: name))
                most = all.list[i].cpus;
        slurm_nodes_free (&all);
    }
    return most;
}

/* ---- one job, one node, slurmctld ---- */

void slurm_own_job (char name[80])
{
    const char *task = environment_text ("SLURM_ARRAY_TASK_ID", NULL);

    snprintf (name, 80, task ? "%.30s_%.30s" : "%.30s",
              environment_text ("SLURM_ARRAY_JOB_ID", NULL)
                  ?: environment_text ("SLURM_JOB_ID", ""),
              task ?: "");
}

char *slurm_nodes_of_job (const char *job)
{
    char *text = xmalloc (JOB_TEXT);
    char *nodes = xstrdup ("");
    int status = slurm_show ("job", job, NODE_WAIT, text, JOB_TEXT);

    for (const char *line = text; status == 0 && *line;
         line += strcspn (line, "\n"), line += *line == '\n') {
        const char *list = node_field (line, " NodeList=");
        int n = (int)strcspn (list, " \n");
        char *more;
        if (n == 0 || *list == '(') /* "(null)" */
            continue;
        more = xasprintf ("%s%s%.*s", nodes, *nodes ? "," : "", n, list);
        free (nodes);
        nodes = more;
    }
    free (text);
    if (*nodes)
        return nodes;
    free (nodes);
    return NULL;
}

/* Requests are in fields such as TresPerNode=gres/gpu:2, allocations in TRES=cpu=4,gres/gpu=2,
 * which lists GPUs only if the site accounts for them.
 */
bool slurm_job_lacks_gpus (const char *job)
{
    char *text = xmalloc (JOB_TEXT), *save = NULL;
    bool lacks = slurm_show ("job", job, NODE_WAIT, text, JOB_TEXT) == 0;

    for (char *field = lacks ? strtok_r (text, " \n", &save) : NULL; field;
         field = strtok_r (NULL, " \n", &save))
        if ((!strncasecmp (field, "Tres", 4) || !strncasecmp (field, "AllocTRES=", 10)
             || !strncmp (field, "Gres=", 5))
            && strstr (field, "gpu"))
            lacks = false;
    free (text);
    return lacks;
}

long slurm_gpus_of (const char *node)
{
    char text[16384];

    return slurm_show ("node", node, NODE_WAIT, text, sizeof (text)) == 0 ? gpus_of (text) : 0;
}

/* Find the line of scontrol's output that reports the cause, not the hint about munged. */
static const char *find_cause (char *said)
{
    char *next = NULL;
    const char *first = NULL;

    for (char *l = strtok_r (said, "\n", &next); l; l = strtok_r (NULL, "\n", &next)) {
        if (!strstr (l, "If munged is up"))
            return l;
        first = first ?: l;
    }
    return first ?: "no answer from slurmctld";
}

char *slurm_config (struct slurmdl_error *err)
{
    char *text = xmalloc (CONFIG_TEXT);

    if (slurm_show ("config", NULL, ASK_WAIT, text, CONFIG_TEXT) == 0
        && strstr (text, "SLURM_VERSION"))
        return text;
    errno = EPROTO;
    errorf (err, "%.400s", find_cause (text));
    free (text);
    return NULL;
}
