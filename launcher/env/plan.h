/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a step: what it asks of Slurm and of the plugin, in numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/env/slurm_options.h"
#include "runtime/host/topology.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/task.h"

enum { PLAN_NOTES = 24, PLAN_NOTE = 320 };

struct env_plan {
    const struct ask *ask;
    const char *dl, *roles, *bind, *nccl; /* "" if not asked for */
    const char *topology;                 /* NULL: not given */
    long nodes, ranks, per_node, gpus, gpus_per_task, cpus, plane;
    bool one_machine, placeholders, has_job, arbitrary;
    uint32_t job, step;
    char *hosts; /* as Slurm writes them */
    char *tasks;
    char distribution[64];
    char **gtids; /* of each node */
    struct rank_layout layout;
    struct cpu_set all; /* CPUs of the topology, or of --cpu-list */
    enum gpu_vendor vendor;
    struct task *task; /* scratch */
    char note[PLAN_NOTES][PLAN_NOTE];
    int notes; /* what the user should know, each once */
};

/* Release what the plan has allocated. */
void plan_destroy (struct env_plan *p);

/* Add a note, unless the plan has it. */
__attribute__ ((format (printf, 2, 3))) void
plan_note (struct env_plan *p, const char *fmt, ...);

/* The value of an option, "" if it is not given. */
const char *plan_text (const struct env_plan *p, enum ask_key key);
/* A number from 1 on in *n, 0 if it is not given; of "2-4" the first; if it may
 * be 'typed', of "a100:2" the last.
 */
int plan_number (struct env_plan *p,
                 enum ask_key key,
                 bool typed,
                 long max,
                 long *n,
                 struct slurmdl_error *err);
/* -1 with errno EINVAL, and the option with where it was given. */
int plan_refuse (const struct env_plan *p,
                 enum ask_key key,
                 const char *why,
                 struct slurmdl_error *err);
