/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of a trial. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/config/diagnostics.h"

struct experiment;

struct resources {
    int64_t workers;
    int64_t gpus;      /* of a trial, one rank for each; 0: 'slots' says it */
    int64_t slots;     /* of a trial, 0: 'node_gpus' and 'nodes' say it */
    int64_t node_gpus; /* GPUs of a trial on each of its nodes */
    int64_t cpus;      /* cores of a trial, or of each of its ranks */
    int64_t lanes;     /* trials side by side in one array task */
    int64_t nodes;     /* of a trial */
    int64_t ranks;     /* of a trial on each of its nodes */
    int64_t spares;    /* nodes that a job has more than a trial uses */
    int64_t min_nodes; /* with which a trial goes on; 0: all */
    struct {
        bool nodes, node_gpus, ranks;
    } given; /* in the file or by --set */
    char *memory;
    char *max_memory;     /* with which a trial that ran out is tried again */
    int64_t memory_bytes; /* of 'memory', 0: not given, and ... */
    int64_t memory_most;  /* ... of 'max_memory' */
    char *partition;
    char *account;
    char *qos;
    char *time;
    char **sbatch_args;
};

/* GPUs of a trial on all of its nodes. */
int64_t experiment_gpus (const struct experiment *e);

/* The key that says how many, without "resources.". */
const char *experiment_gpus_key (const struct experiment *e);

/* Whether 'resources.sbatch_args' has one of these options (NULL-ended). */
bool experiment_has_option (const struct experiment *e, const char *const *names);

/* The same, of those that choose nodes and GPUs. */
bool experiment_places_itself (const struct experiment *e);

/* Divide 'slots_per_trial' among the nodes: fills 'nodes' and 'node_gpus', of
 * which 'given' says what the user has chosen.
 */
void experiment_share_gpus (struct experiment *e);

/* What the keys of a file that is not yet an experiment contradict. */
void experiment_check_gpus (const struct experiment *e, struct origin origin, struct problems *p);

/* Time of all trials that 'max_gpu_hours' allows, s; 0: no limit. */
double experiment_max_seconds (const struct experiment *e);

/* Whether a trial is several processes that Slurm starts as a step; those of a
 * job with roles are one.
 */
bool experiment_has_ranks (const struct experiment *e);

/* resources.sbatch_args as one string, "-w n4
 * --exclusive", become words; empty ones are none.
 */
void experiment_split_sbatch_args (struct experiment *e);

/* The nodes that an attempt needs at least, and those that a job asks for. */
int64_t experiment_least_nodes (const struct experiment *e);
int64_t experiment_job_nodes (const struct experiment *e);
