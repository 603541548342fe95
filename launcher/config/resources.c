/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of a trial. */
#include "launcher/config/resources.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"

int64_t experiment_gpus (const struct experiment *e)
{
    if (e->resources->gpus > 0)
        return e->resources->gpus;
    return job_gpus (e->job) ?: e->resources->node_gpus * e->resources->nodes;
}

const char *experiment_gpus_key (const struct experiment *e)
{
    return e->resources->gpus > 0    ? "gpus_per_trial"
           : e->resources->slots > 0 ? "slots_per_trial"
                                     : "gpus_per_node";
}

double experiment_max_seconds (const struct experiment *e)
{
    int64_t gpus = experiment_gpus (e);

    return e->search->max_gpu_hours * 3600 / (gpus > 1 ? (double)gpus : 1);
}

void experiment_share_gpus (struct experiment *e)
{
    if (e->resources->slots == 0)
        return;
    if (e->resources->given.node_gpus && !e->resources->given.nodes && e->resources->node_gpus > 0
        && e->resources->slots > e->resources->node_gpus)
        e->resources->nodes = e->resources->slots / e->resources->node_gpus;
    if (!e->resources->given.node_gpus)
        e->resources->node_gpus = e->resources->slots / e->resources->nodes;
}

bool experiment_has_option (const struct experiment *e, const char *const *names)
{
    for (char **a = e->resources->sbatch_args; a && *a; a++)
        for (const char *const *n = names; *n; n++)
            if (!strncmp (*a, *n, strlen (*n)))
                return true;
    return false;
}

bool experiment_places_itself (const struct experiment *e)
{
    static const char *const options[] = { "--nodes", "-N", "--ntasks", "-n",
                                           "--gpus",  "-G", "--gres",   NULL };

    return experiment_has_option (e, options);
}

/* Returns whether it added a problem. */
static bool check_gpus_per_trial (const struct experiment *e, struct origin origin,
                                  struct problems *p)
{
    if (e->resources->slots > 0)
        problem_at (p, origin,
                    "'resources.gpus_per_trial' and 'slots_per_trial' both "
                    "count the GPUs of a trial on all of its nodes: leave one "
                    "of them out ('gpus_per_node' counts those of a node)");
    else if (e->resources->lanes > 1)
        problem_at (p, origin,
                    "'resources.gpus_per_trial' cannot be used with "
                    "'resources.trials_per_task'; use 'resources.slots_per_trial'");
    else if (experiment_places_itself (e))
        problem_at (p, origin,
                    "'resources.gpus_per_trial' finds nodes and ranks: leave "
                    "--nodes, --ntasks, --gpus and --gres out of 'resources.sbatch_args'");
    else
        return false;
    return true;
}

void experiment_check_gpus (const struct experiment *e, struct origin origin, struct problems *p)
{
    int64_t all = e->resources->gpus > 0 ? e->resources->gpus : e->resources->slots;
    bool by_nodes = e->resources->given.nodes, by_each = e->resources->given.node_gpus;
    const char *key = experiment_gpus_key (e);

    if (all == 0 || (e->resources->gpus > 0 && check_gpus_per_trial (e, origin, p)))
        return;
    if (by_nodes && by_each && e->resources->nodes * e->resources->node_gpus != all)
        problem_at (p, origin,
                    "'resources.%s' is %lld, but 'nodes_per_trial' x "
                    "'gpus_per_node' is %lld x %lld; leave one of the three out",
                    key, (long long)all, (long long)e->resources->nodes,
                    (long long)e->resources->node_gpus);
    else if ((by_nodes && all % e->resources->nodes)
             || (by_each && (!e->resources->node_gpus || all % e->resources->node_gpus)))
        problem_at (p, origin, "'resources.%s' (%lld) is not a multiple of '%s' (%lld)%s", key,
                    (long long)all, by_nodes ? "nodes_per_trial" : "gpus_per_node",
                    (long long)(by_nodes ? e->resources->nodes : e->resources->node_gpus),
                    e->resources->gpus ? ""
                                       : ": it counts the GPUs of a trial on all of its "
                                         "nodes, 'gpus_per_node' those of a node");
}

bool experiment_has_ranks (const struct experiment *e)
{
    return e->resources->nodes * e->resources->ranks > 1 || e->job->nroles > 0
           || e->resources->is_step;
}

/* Read the next word of a command line, and remove shell quotes.  Returns NULL at the end.  The
 * caller frees the word.
 */
static char *next_option_word (const char **text)
{
    const char *c = *text + strspn (*text, " \t\n");
    char *word = *c ? xmalloc (strlen (c) + 1) : NULL;
    char quote = '\0';
    size_t n = 0;

    for (; word && *c && (quote || !strchr (" \t\n", *c)); c++)
        if (quote ? *c == quote : *c == '"' || *c == '\'')
            quote = quote ? '\0' : *c;
        else
            word[n++] = *c;
    if (word)
        word[n] = '\0';
    *text = c;
    return word;
}

/* Whether a string contains several options, or an option and its value: "-w n4". */
static bool is_command_line (const char *text)
{
    const char *blank = strpbrk (text, " \t\n");

    if (!blank)
        return false;
    if (*text == '-' && !memchr (text, '=', (size_t)(blank - text)))
        return true;
    for (; blank; blank = strpbrk (blank + 1, " \t\n"))
        if (blank[1] == '-')
            return true;
    return false;
}

/* Most users write one string, "-w n4 --exclusive".  Ignore "". */
void experiment_split_sbatch_args (struct experiment *e)
{
    char **list = NULL;

    for (char **a = e->resources->sbatch_args; a && *a; a++) {
        const char *text = *a + strspn (*a, " \t\n");
        char *word;
        if (!is_command_line (text)) {
            if (*text)
                strings_add (&list, *a);
            continue;
        }
        for (; (word = next_option_word (&text)); free (word))
            strings_add (&list, word);
    }
    strings_free (e->resources->sbatch_args);
    e->resources->sbatch_args = list;
}

int64_t experiment_least_nodes (const struct experiment *e)
{
    return e->resources->min_nodes > 0 && e->resources->min_nodes < e->resources->nodes
               ? e->resources->min_nodes
               : e->resources->nodes;
}

int64_t experiment_job_nodes (const struct experiment *e)
{
    return e->resources->nodes + e->resources->spares;
}

bool experiment_survives_nodes (const struct experiment *e)
{
    return experiment_job_nodes (e) > experiment_least_nodes (e);
}
