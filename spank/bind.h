/* SPDX-License-Identifier: Apache-2.0 */
/* What bind.c and advice.c share: one task that is to be bound. */
#ifndef SPANK_BIND_H
#define SPANK_BIND_H

#include "runtime/place.h"
#include "spank/context.h"

enum { TEXT = 4096 };

struct view {
    enum gpu_vendor vendor;
    const char *variable;
};

struct binding {
    spank_t sp;
    enum placement placement;
    bool own_gpu, nic, verbose;
    long rank, local_rank, local_size, cpus_on_node;
    struct cpu_set own; /* at entry */
    int16_t home[LOCAL_RANKS_MAX];
    const struct view *view; /* NULL: no GPUs */
    char list[TEXT];         /* the value of its variable */
    int visible[GPUS_MAX];
    struct topology *t;
    struct place_request r;
    struct place p;
    char stale[TEXT], ours[TEXT]; /* variables that the plugin sets */
};

/* The affinity of this process. */
int bind_cpus (struct cpu_set *s);

/* GPUs of a vendor on this node, or those that this task may open. */
int bind_gpus (const struct topology *t,
               enum gpu_vendor vendor,
               bool reachable);

/* Tell of hidden GPUs, lost CPUs and far cores; where the rank is if asked. */
void bind_tell (const struct binding *b);

#endif
