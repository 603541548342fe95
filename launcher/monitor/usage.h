/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a monitored step used, from the files of its nodes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/monitor/gpu_readings.h"

/* Means are over the time from the first to the last sample; rates are per
 * second.  NaN: not known.
 */
struct usage_rank {
    long rank;
    size_t node; /* index */
    double seconds;
    bool ended;
    double cores, cores_given;          /* that it kept busy; that it was given */
    double busiest;                     /* cores that its busiest process kept busy */
    double memory;                      /* bytes, the most */
    double processes;                   /* the most */
    double read, write;                 /* bytes through read() and write() */
    double storage_read, storage_write; /* of it, not from the page cache */
    double blocked;                     /* processes that waited for storage */
    double switches;                    /* times that a process had to give up its core */
    int gpus;
    double gpu_busy;   /* per cent, mean of its GPUs */
    double gpu_memory; /* bytes, the most of any */
};

struct usage_gpu {
    int index;
    long rank;               /* -1: not known, or several */
    double busy, sm, tensor; /* per cent */
    double memory, memory_size;
    double power, temperature;
    double hot, capped; /* share of the time */
};

struct usage_node {
    char name[64];
    double seconds;
    double time;                         /* of the last sample, s since the epoch */
    double memory;                       /* bytes: of the job if its cgroup is known, else of all */
    double limit;                        /* of the job, else the size of the memory */
    bool job_memory;                     /* both are the job's */
    double network;                      /* bytes, of the busiest interface or port, one way */
    double link;                         /* share of what that can do, 0..1 */
    double pressure_io, pressure_memory; /* share of the time */
    double monitor;                      /* cores that the monitor took */
    double lost;                         /* samples that it could not write */
    int ngpus;
    struct usage_gpu gpus[GPUS_MAX];
};

struct usage {
    struct usage_rank *ranks; /* in order */
    size_t nranks;
    struct usage_node *nodes; /* in order of name */
    size_t nnodes;
    double seconds; /* of the longest */
};

/* Read the files of a folder, also while they are written.  A file that cannot
 * be read is passed over.  On failure -1 with errno (ENOENT: there is none)
 * and 'err'.
 */
int usage_read (struct usage *u, const char *dir, struct slurmdl_error *err);
/* The same of the time since 'since', s since the epoch; what has not changed
 * since then has the value that it had.
 */
int usage_read_since (struct usage *u, const char *dir, double since, struct slurmdl_error *err);
void usage_free (struct usage *u);
