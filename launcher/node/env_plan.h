/* SPDX-License-Identifier: Apache-2.0 */
/* The step that options of `dl env` describe, and what the plugin would give
 * its ranks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/host/topology.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/task.h"

struct env_entry {
    char *name;
    char *value; /* NULL: taken away */
    bool user;   /* exported where dl env runs */
    bool given;  /* by the plugin */
    bool kept;   /* the plugin looked: the user's stays */
};

struct env_entries {
    struct env_entry *list;
    size_t n;
};

/* Functions over it; 'e' must stay where it is. */
struct variables entries_variables (struct env_entries *e);
void entries_put (struct env_entries *e, const char *name, const char *value);
const struct env_entry *entries_find (const struct env_entries *e, const char *name);

/* Leave only what was given or kept. */
void entries_free (struct env_entries *e);

enum env_option {
    ENV_NODES,
    ENV_NODELIST,
    ENV_NTASKS,
    ENV_PER_NODE,
    ENV_DISTRIBUTION,
    ENV_CPUS,
    ENV_GPUS_PER_NODE,
    ENV_GPUS_PER_TASK,
    ENV_MPI,
    ENV_DL,
    ENV_ROLES,
    ENV_BIND,
    ENV_NCCL,
    /* facts that are known only when the job runs */
    ENV_JOB,
    ENV_RESV_PORTS,
    ENV_TOPOLOGY,
    ENV_CPU_LIST,
    ENV_NCCL_DIR,
    ENV_ONE_MACHINE,
    ENV_OPTIONS
};

enum { PLAN_NOTES = 24, PLAN_NOTE = 320 };

struct env_plan {
    const char *value[ENV_OPTIONS];       /* NULL: not given */
    const char *dl, *roles, *bind, *nccl; /* "" if not given */
    long nodes, ranks, per_node, gpus, gpus_per_task, cpus, plane;
    bool arbitrary, has_job;
    uint32_t job, step;
    char *hosts; /* as Slurm writes them */
    char *tasks;
    char distribution[64];
    char **gtids; /* of each node */
    struct rank_layout layout;
    struct cpu_set all; /* CPUs of --topology, or of --cpu-list */
    enum gpu_vendor vendor;
    struct task *task; /* scratch */
    char note[PLAN_NOTES][PLAN_NOTE];
    int notes; /* what the user should know, each once */
};

/* The plan of the options "--nodes=2", ...: NULL-ended, or NULL.  The last of
 * several counts; the words must stay.  Returns 0, or -1 with errno and what is
 * wrong with which of them; plan_destroy() in any case.
 */
int plan_create (struct env_plan **plan, char *const *words, struct slurmdl_error *err);
void plan_destroy (struct env_plan *p);

/* Add a note, unless the plan has it. */
__attribute__ ((format (printf, 2, 3))) void plan_note (struct env_plan *p, const char *fmt, ...);

/* ---- a rank ---- */

/* Why a variable is not known before the job runs. */
enum plan_doubt { PLAN_PORTS, PLAN_INTERFACE, PLAN_CPUS, PLAN_DOUBTS };
extern const char *const plan_doubts[];

struct plan_rank {
    long rank, node, local;
    const char *host;
    const char *role; /* "" if there is none */
    long role_index;
    char gpus[256], cpus[256], nic[64]; /* "" if not known */
    struct env_entries vars;
    struct env_entries unknown; /* their value is one of plan_doubts */
};

/* What one rank gets; plan_rank_free() in any case. */
int plan_rank (struct env_plan *p, long rank, struct plan_rank *r, struct slurmdl_error *err);
void plan_rank_free (struct plan_rank *r);
