/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: which cores, GPUs and variables one task gets. */
#pragma once

#include "runtime/host/place.h"
#include "runtime/rank/variables.h"

enum { BINDING_TEXT = 4096 };

struct view {
    enum gpu_vendor vendor;
    const char *variable;
};

/* For the heap or a stack of some size: about 30 KiB. */
struct binding {
    struct variables vars;
    enum placement placement;
    bool own_gpu, nic, verbose;
    bool keeps_threads; /* OMP_NUM_THREADS is the user's, set or not */
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

/* Read the option's value, which has those words only. */
void binding_words (struct binding *b, const char *value);

/* How many of the words of a value say where. */
int binding_places (const char *value);

/* Whether there is something to do. */
bool binding_is_wanted (const struct binding *b);

/* Find the place of the task by its variables: b->vars is set before.  Returns
 * -1 if they do not say.
 */
int binding_place (struct binding *b);

/* Choose the CPUs that the ranks of the node divide: b->own is what the task
 * has, 'wide' all that the step's cpuset allows.
 */
void binding_cpus (struct binding *b, const struct cpu_set *wide);

/* Read the machine below 'root' and decide.  Returns NULL, or why not; the
 * caller closes b->t in any case.
 */
const char *binding_decide (struct binding *b, const char *root);

/* Set the variables; b->p.cpus is left to the caller. */
void binding_set (struct binding *b);

/* GPUs of a vendor on this node, or those that this task may open. */
int binding_gpus (const struct topology *t, enum gpu_vendor vendor, bool reachable);
