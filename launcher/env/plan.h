/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin would give each rank of a step; for `dl env`. */
#ifndef LAUNCHER_ENV_PLAN_H
#define LAUNCHER_ENV_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/env/slurm_options.h"
#include "launcher/sys/settings.h"
#include "runtime/host/topology.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/task.h"

/* ---- an environment in memory ---- */

struct entry {
    char *name;
    char *value; /* NULL: taken away */
    bool user;   /* exported where dl env runs */
    bool given;  /* by the plugin */
    bool kept;   /* the plugin looked: the user's stays */
};

struct entries {
    struct entry *list;
    size_t n, room;
};

/* Functions over it; 'e' must stay where it is. */
struct variables entries_variables (struct entries *e);
int entries_put (struct entries *e, const char *name, const char *value);
const struct entry *entries_find (const struct entries *e, const char *name);
/* Leave only what was given or kept. */
void entries_prune (struct entries *e);
void entries_free (struct entries *e);

/* ---- the plan of a step ---- */

enum { PLAN_NOTES = 24, PLAN_NOTE = 320 };

/* Why a variable is not known before the job runs. */
enum plan_doubt { PLAN_PORTS, PLAN_INTERFACE, PLAN_DOUBTS };
extern const char *const plan_doubts[];

struct plan {
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

struct plan_rank {
    long rank, node, local;
    const char *host;
    const char *role; /* "" if there is none */
    long role_index;
    char gpus[256], cpus[256], nic[64]; /* "" if not known */
    struct entries vars;
    struct entries unknown; /* their value is one of plan_doubts */
};

/* 0, or -1 with errno and what is wrong, with where it was asked for.  'step'
 * is the number of the step in its job.
 */
int plan_create (struct plan **plan,
                 const struct ask *ask,
                 uint32_t step,
                 struct slurmdl_error *err);
void plan_destroy (struct plan *p);

/* What one rank gets; plan_rank_free() in any case. */
int plan_rank (struct plan *p,
               long rank,
               struct plan_rank *r,
               struct slurmdl_error *err);
void plan_rank_free (struct plan_rank *r);

__attribute__ ((format (printf, 2, 3))) void
plan_note (struct plan *p, const char *fmt, ...);

/* What the step asks for, in numbers (needs.c). */
int plan_read (struct plan *p, struct slurmdl_error *err);

/* The value of an option, "" if it is not given. */
const char *plan_text (const struct plan *p, enum ask_key key);
/* A number from 1 on in *n, 0 if it is not given; of "2-4" the first; if it may
 * be 'typed', of "a100:2" the last.
 */
int plan_number (struct plan *p,
                 enum ask_key key,
                 bool typed,
                 long max,
                 long *n,
                 struct slurmdl_error *err);
/* -1 with errno EINVAL, and the option with where it was given. */
int plan_refuse (const struct plan *p,
                 enum ask_key key,
                 const char *why,
                 const char *meant,
                 struct slurmdl_error *err);

/* --distribution, and then nodes, tasks and where they are (hosts.c). */
int plan_distribution (struct plan *p, struct slurmdl_error *err);
int plan_layout (struct plan *p, struct slurmdl_error *err);

/* ---- what is printed (view.c) ---- */

int plan_print (struct plan *p, struct slurmdl_error *err);
int plan_print_rank (struct plan *p, long rank, struct slurmdl_error *err);
struct json_t;
struct json_t *plan_json (struct plan *p, struct slurmdl_error *err);

/* The command: an exit status of launcher/sys/say.h. */
int cmd_env (const struct settings *st);

#endif
