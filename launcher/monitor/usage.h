/* SPDX-License-Identifier: Apache-2.0 */
/* Summarize what a monitored step used, from the files of its nodes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/monitor/gpu_readings.h"

/* Means cover the time from the first sample to the last.  Rates are per second.
 * Unknown values are NaN.
 */
struct usage_rank {
    long rank;
    size_t node; /* index */
    double seconds;
    bool ended;
    double cores, cores_given;          /* used; allocated */
    double busiest;                     /* cores that its busiest process used */
    double memory;                      /* bytes, peak */
    double processes;                   /* peak */
    double read, write;                 /* bytes through read() and write() */
    double storage_read, storage_write; /* the part that missed the page cache */
    double blocked;                     /* processes waiting for storage */
    double switches;                    /* involuntary context switches */
    int gpus;
    double gpu_busy;   /* per cent, mean of its GPUs */
    double gpu_memory; /* bytes, peak of any GPU */
};

struct usage_gpu {
    int index;
    long rank;               /* -1 if unknown or shared by several */
    double busy, sm, tensor; /* per cent */
    double memory, memory_size;
    double power, temperature;
    double hot, capped; /* share of the time */
    double
        idle; /* s without work at the last sample; 0: less than the limit of --dl-monitor=idle: */
};

struct usage_node {
    char name[64];
    double seconds;
    double time;     /* of the last sample, seconds since the epoch */
    double memory;   /* bytes: the job's if its cgroup is known, else the node's */
    double limit;    /* the job's limit, else the node's memory size */
    bool job_memory; /* 'memory' and 'limit' are the job's */
    double network;  /* bytes one way, of the busiest interface or port */
    double link;     /* utilization of that interface or port, 0..1 */
    double pressure_io, pressure_memory; /* share of the time */
    double monitor;                      /* cores that the monitor used */
    double lost;                         /* samples that the monitor could not write */
    int ngpus;
    struct usage_gpu gpus[GPUS_MAX];
};

struct usage {
    struct usage_rank *ranks; /* sorted by rank */
    size_t nranks;
    struct usage_node *nodes; /* sorted by name */
    size_t nnodes;
    double seconds; /* longest of any node */
};

/* Read all files in a directory; the monitor may still be writing them.  Files
 * that cannot be read are skipped.  Returns -1 with errno and 'err' on failure;
 * errno is ENOENT if there are no files.
 */
int usage_read (struct usage *u, const char *dir, struct slurmdl_error *err);
/* Like usage_read(), but only for the time from 'since', in seconds since the
 * epoch.  Values that have not changed since then still count.
 */
int usage_read_since (struct usage *u, const char *dir, double since, struct slurmdl_error *err);
void usage_free (struct usage *u);
