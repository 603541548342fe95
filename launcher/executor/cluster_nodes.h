/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of the cluster, as scontrol lists them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/slurmdl.h"

struct cluster_node {
    long gpus, cpus;
    const char *partitions; /* "a,b", not ended by a NUL but by a blank */
};

struct cluster_nodes {
    char *text; /* that 'partitions' leads into */
    struct cluster_node *list;
    size_t n;
};

/* Ask `scontrol show node`, once.  cluster_nodes_free() in any case.  Returns
 * -1 with errno EPROTO if Slurm does not answer.
 */
int cluster_nodes_ask (struct cluster_nodes *c, struct slurmdl_error *err);

/* By `scontrol show partition`: whether jobs of other partitions preempt those
 * of 'name' on its nodes, and how, as "REQUEUE"; 'by' is one of those.
 */
bool cluster_preempts (const struct cluster_nodes *c, const char *name, char by[256], char how[64]);

/* Release the list. */
void cluster_nodes_free (struct cluster_nodes *c);

/* Whether a node is in one of the partitions "a,b"; NULL: in any. */
bool cluster_node_is_in (const struct cluster_node *node, const char *partitions);

/* How many nodes of these partitions have so many GPUs and cores at least. */
long cluster_nodes_with (const struct cluster_nodes *c, const char *partitions, long gpus,
                         long cpus);
