/* SPDX-License-Identifier: Apache-2.0 */
/* Read the utilization, memory, power, clocks and links of a step's GPUs on this node. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum gpu_field {
    /* GPUS_USAGE */
    GPU_BUSY,        /* share of the time that a kernel was running, per cent */
    GPU_MEMORY,      /* bytes in use */
    GPU_MEMORY_SIZE, /* bytes */
    GPU_MEMORY_BUSY, /* per cent */
    GPU_POWER,       /* watts */
    GPU_ENERGY,      /* joules since the driver was loaded */
    GPU_TEMPERATURE, /* degrees Celsius */
    GPU_CLOCK,       /* SM clock, MHz */
    GPU_MEMORY_CLOCK,
    GPU_HOT,          /* 1 if throttled for heat, else 0 */
    GPU_CAPPED,       /* 1 if throttled for power, else 0 */
    GPU_PCIE_RECEIVE, /* bytes per second */
    GPU_PCIE_SEND,
    GPU_SM,     /* share of busy SMs, per cent */
    GPU_TENSOR, /* share of busy tensor cores, per cent */
    GPU_USAGE_FIELDS,
    /* GPUS_SLOWNESS, with GPU_CLOCK; NVIDIA only */
    GPU_CLOCK_MOST = GPU_USAGE_FIELDS, /* the highest SM clock, MHz */
    GPU_SLOWED,                        /* enum nvml_slowed (launcher/sys/nvml.h) */
    GPU_POWER_LIMIT,                   /* watts */
    GPU_LANES,                         /* of its PCIe link */
    GPU_LANES_MOST,                    /* that the GPU and its slot could have */
    GPU_GENERATION,                    /* of its PCIe link; an idle GPU lowers it */
    GPU_GENERATION_MOST,
    GPU_FIELDS
};

enum { GPUS_MAX = 32, GPU_PROCESSES_MAX = 128 };

/* Unknown values are NaN. */
struct gpu_sample {
    int index; /* as the driver and Slurm number GPUs */
    double v[GPU_FIELDS];
};

struct gpu_process {
    int gpu; /* index */
    pid_t pid;
    double memory; /* bytes; NaN if unknown */
    double busy;   /* GPUS_SLOWNESS: share of the time since the last reading in which it kept
                    * SMs busy, per cent; NaN if unknown
                    */
};

struct gpu_readings {
    int n;
    int nprocesses;
    struct gpu_sample gpu[GPUS_MAX];
    struct gpu_process process[GPU_PROCESSES_MAX];
};

/* A child process reads the GPUs because a driver call may hang or crash.
 * gpus_ask() requests a reading unless one is still pending, of
 * the GPUs whose bits are set in 'which' (0: of all).  gpus_take() gets the reading once it has
 * arrived.  gpus_fd() returns a descriptor for
 * poll(), or -1 without GPUs.
 */
enum gpus_answer { GPUS_NONE = -1, GPUS_PENDING, GPUS_READ };
struct gpus;
enum gpus_purpose { GPUS_USAGE, GPUS_SLOWNESS };
struct gpus *gpus_start (const char *sysfs, enum gpus_purpose purpose);
int gpus_fd (const struct gpus *g);
void gpus_ask (struct gpus *g, uint32_t which);
enum gpus_answer gpus_take (struct gpus *g, struct gpu_readings *r);
void gpus_end (struct gpus *g);
