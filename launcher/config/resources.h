/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of a trial. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/config/diagnostics.h"

struct experiment;

struct resources {
    int64_t workers;
    int64_t gpus;      /* per trial, with one rank per GPU; 0: see 'slots' */
    int64_t slots;     /* per trial; 0: see 'node_gpus' and 'nodes' */
    int64_t node_gpus; /* GPUs of a trial on each of its nodes */
    int64_t cpus;      /* cores of a trial, or of each of its ranks */
    int64_t lanes;     /* trials that share one array task */
    int64_t nodes;     /* per trial */
    int64_t ranks;     /* of a trial on each of its nodes */
    int64_t spares;    /* spare nodes of a job, beyond those that a trial uses */
    int64_t min_nodes; /* fewest nodes on which a trial continues; 0: all */
    bool is_step;      /* not a key: here, Slurm starts a trial of one rank as a step, too */
    struct {
        bool nodes, node_gpus, ranks;
    } given; /* in the file or by --set */
    char *memory;
    char *max_memory;     /* limit when retrying a trial that ran out of memory */
    int64_t memory_bytes; /* 'memory' in bytes; 0: not given */
    int64_t memory_most;  /* 'max_memory' in bytes; 0: not given */
    char *partition;
    char *account;
    char *qos;
    char *time;
    char **sbatch_args;
};

/* Number of GPUs of a trial, on all of its nodes together. */
int64_t experiment_gpus (const struct experiment *e);

/* The key that sets this number, without the prefix "resources.". */
const char *experiment_gpus_key (const struct experiment *e);

/* Whether resources.sbatch_args contains one of these options.  The list ends with NULL. */
bool experiment_has_option (const struct experiment *e, const char *const *names);

/* Whether resources.sbatch_args contains an option that chooses nodes or GPUs. */
bool experiment_places_itself (const struct experiment *e);

/* Divide slots_per_trial among the nodes: compute 'nodes' and 'node_gpus', except for what the user
 * has set ('given').
 */
void experiment_share_gpus (struct experiment *e);

/* Add problems for contradicting keys in the file of a new experiment. */
void experiment_check_gpus (const struct experiment *e, struct origin origin, struct problems *p);

/* Seconds that max_gpu_hours allows for all trials together; 0: no limit. */
double experiment_max_seconds (const struct experiment *e);

/* Whether Slurm starts a trial as a step: if it has several ranks or roles, or 'is_step'. */
bool experiment_has_ranks (const struct experiment *e);

/* Split resources.sbatch_args into words if it is a single string such as "-w n4 --exclusive", and
 * drop empty words.
 */
void experiment_split_sbatch_args (struct experiment *e);

/* The fewest nodes an attempt can run on, and the number of nodes a job requests. */
int64_t experiment_least_nodes (const struct experiment *e);
int64_t experiment_job_nodes (const struct experiment *e);

/* Whether the loss of a node must end neither the job nor its steps (--no-kill). */
bool experiment_survives_nodes (const struct experiment *e);
