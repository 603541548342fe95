/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPUs of a job step on this node do. */
#pragma once

#include <sys/types.h>

#include "launcher/monitor/series.h"

enum gpu_field {
    GPU_BUSY,        /* share of the time in which a kernel ran, per cent */
    GPU_MEMORY,      /* bytes in use */
    GPU_MEMORY_SIZE, /* bytes */
    GPU_MEMORY_BUSY, /* per cent */
    GPU_POWER,       /* watts */
    GPU_ENERGY,      /* joules since the driver was loaded */
    GPU_TEMPERATURE, /* degrees Celsius */
    GPU_CLOCK,       /* of the multiprocessors, MHz */
    GPU_MEMORY_CLOCK,
    GPU_HOT,          /* 1: slowed down for heat, else 0 */
    GPU_CAPPED,       /* 1: slowed down for power, else 0 */
    GPU_PCIE_RECEIVE, /* bytes a second */
    GPU_PCIE_SEND,
    GPU_SM,     /* share of the multiprocessors at work, per cent */
    GPU_TENSOR, /* of the tensor cores */
    GPU_FIELDS
};

struct gpu_name {
    const char *name; /* in the monitor's file */
    enum series_kind kind;
};
extern const struct gpu_name gpu_names[GPU_FIELDS];

enum { GPUS_MAX = 32, GPU_PROCESSES_MAX = 128 };

/* NaN: not known. */
struct gpu_sample {
    int index; /* as the driver, and Slurm, count */
    double v[GPU_FIELDS];
};

struct gpu_process {
    int gpu; /* index */
    pid_t pid;
    double memory; /* bytes, NaN: not known */
};

struct gpu_readings {
    int n;
    int nprocesses;
    struct gpu_sample gpu[GPUS_MAX];
    struct gpu_process process[GPU_PROCESSES_MAX];
};

/* A child reads, because a driver may hang or crash: gpus_ask() asks it unless
 * it has yet to answer, gpus_take() gives the answer (1), if it has come, and
 * else 0; -1: there are no GPUs.  'fd' is for poll(), -1: there are none.
 */
struct gpus;
struct gpus *gpus_start (const char *sysfs);
int gpus_fd (const struct gpus *g);
void gpus_ask (struct gpus *g);
int gpus_take (struct gpus *g, struct gpu_readings *r);
void gpus_end (struct gpus *g);
