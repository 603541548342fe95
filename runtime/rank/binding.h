/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: choose the cores, GPUs and variables of one task. */
#pragma once

#include "runtime/host/place.h"
#include "runtime/rank/variables.h"

enum { BINDING_TEXT = 4096 };

struct view {
    enum gpu_vendor vendor;
    const char *variable;
};

/* About 30 KiB. */
struct binding {
    struct variables vars;
    enum placement placement;
    bool own_gpu, nic, verbose;
    bool keeps_threads; /* the user decides about OMP_NUM_THREADS, set or not */
    long rank, local_rank, local_size, cpus_on_node;
    struct cpu_set own; /* at entry */
    int16_t home[LOCAL_RANKS_MAX];
    const struct view *view; /* NULL: no GPUs */
    char list[BINDING_TEXT]; /* the value of its variable */
    int visible[GPUS_MAX];
    struct topology *t;
    struct place_request r;
    struct place p;
};

/* The words of the option, ended by NULL. */
extern const char *const bind_words[];

/* Read the value of the option, which consists of these words. */
void binding_words (struct binding *b, const char *value);

/* How many words of a value choose a placement. */
int binding_places (const char *value);

/* Whether there is something to do. */
bool binding_is_wanted (const struct binding *b);

/* Find the place of the task from its variables; set b->vars before.  Returns -1 if they do not
 * determine it.
 */
int binding_place (struct binding *b);

/* Choose the CPUs that the ranks of the node share: b->own are those of the task, 'wide' all that
 * the cpuset of the step allows.
 */
void binding_cpus (struct binding *b, const struct cpu_set *wide);

/* Read the hardware below 'root' and decide.  Returns NULL, or the reason for a failure; the caller
 * closes b->t in any case.
 */
const char *binding_decide (struct binding *b, const char *root);

/* Set the variables; the caller binds to b->p.cpus. */
void binding_set (struct binding *b);

/* Number of GPUs of a vendor on this node; if 'reachable', only those that this task may open. */
int binding_gpus (const struct topology *t, enum gpu_vendor vendor, bool reachable);
