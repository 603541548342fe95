/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library (NVML), loaded at run time if it is installed. */
#pragma once

#include "runtime/base/error.h"

/* Building needs no NVIDIA header: we declare the library's documented, stable interface ourselves.
 * Any of its functions may take long, or hang if the driver hangs.  Call them in a process that you
 * can abandon.
 */

struct nvml_device;
struct nvml_gpm_sample;

enum {
    NVML_SUCCESS = 0,
    NVML_NOT_FOUND = 6,
    NVML_NOT_LOADED = 9, /* the driver is not loaded */
    NVML_LACKING = 13,   /* the library lacks the function */
    NVML_LOST = 15,
    NVML_RESET = 16,
    NVML_NAME_SIZE = 96,
};
enum { NVML_UNCORRECTED = 1, NVML_SINCE_BOOT = 0, NVML_LINKS = 18 };
enum { NVML_TEMPERATURE_GPU = 0 };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_PCIE_TX = 0, NVML_PCIE_RX = 1 };

/* Reasons why clocks are reduced, as bits. */
enum nvml_slowed {
    NVML_IDLE = 0x1,
    NVML_SETTING = 0x2, /* somebody set lower clocks */
    NVML_POWER_CAP = 0x4,
    NVML_HW_SLOWDOWN = 0x8,
    NVML_SW_THERMAL = 0x20,
    NVML_HW_THERMAL = 0x40,
    NVML_POWER_BRAKE = 0x80,
};

struct nvml_utilization {
    unsigned gpu, memory; /* percentage of the time */
};

struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_memory_v2 {
    unsigned version; /* NVML_MEMORY_V2 */
    unsigned long long total, reserved, free, used;
};
enum { NVML_MEMORY_V2 = sizeof (struct nvml_memory_v2) | 2 << 24 };

struct nvml_process {
    unsigned pid;
    unsigned long long memory; /* ULLONG_MAX: unknown */
    unsigned instance, compute_instance;
};

/* How busy a process kept a GPU, in percent. */
struct nvml_process_use {
    unsigned pid;
    unsigned long long time; /* us since the epoch */
    unsigned sm, memory, encoder, decoder;
};

/* GPM: how busy the units of a GPU were between two samples (Hopper and later). */
enum { NVML_GPM_VERSION = 1, NVML_GPM_SM = 2, NVML_GPM_TENSOR = 5 };

struct nvml_gpm_support {
    unsigned version, supported;
};

struct nvml_gpm_metric {
    unsigned id;
    int status;
    double value;
    struct {
        char *short_name, *long_name, *unit;
    } info;
};

struct nvml_gpm_metrics {
    unsigned version, n;
    struct nvml_gpm_sample *before, *after;
    /* NVIDIA's struct has room for a few hundred; the library reads the first 'n'. */
    struct nvml_gpm_metric metrics[512];
};

/* The library's functions.  A function that it lacks is NULL, except for init, count and handle,
 * which nvml_load() requires.
 */
struct nvml {
    void *library;
    int (*init) (void);
    int (*count) (unsigned *n);
    int (*handle) (unsigned index, struct nvml_device **d);
    int (*shutdown) (void);
    const char *(*error) (int status);
    int (*driver) (char *text, unsigned size);
    int (*cuda) (int *version);
    int (*name) (struct nvml_device *d, char *text, unsigned size);
    int (*uuid) (struct nvml_device *d, char *text, unsigned size);
    int (*utilization) (struct nvml_device *d, struct nvml_utilization *u);
    int (*memory) (struct nvml_device *d, struct nvml_memory *m);
    int (*memory_v2) (struct nvml_device *d, struct nvml_memory_v2 *m);
    int (*power) (struct nvml_device *d, unsigned *milliwatt);
    int (*power_limit) (struct nvml_device *d, unsigned *milliwatt);
    int (*energy) (struct nvml_device *d, unsigned long long *millijoule);
    int (*temperature) (struct nvml_device *d, int sensor, unsigned *celsius);
    int (*clock) (struct nvml_device *d, int which, unsigned *mhz);
    int (*max_clock) (struct nvml_device *d, int which, unsigned *mhz);
    int (*slowed) (struct nvml_device *d, unsigned long long *reasons);
    int (*pcie) (struct nvml_device *d, int counter, unsigned *kilobytes);
    int (*processes) (struct nvml_device *d, unsigned *n, struct nvml_process *p);
    int (*process_use) (struct nvml_device *d, struct nvml_process_use *use, unsigned *n,
                        unsigned long long since);
    int (*pci) (struct nvml_device *d, struct nvml_pci *pci);
    int (*ecc_mode) (struct nvml_device *d, int *now, int *later);
    int (*ecc_errors) (struct nvml_device *d, int type, int counter, unsigned long long *n);
    int (*pages_pending) (struct nvml_device *d, int *pending);
    int (*rows) (struct nvml_device *d, unsigned *corrected, unsigned *uncorrected,
                 unsigned *pending, unsigned *failed);
    int (*link) (struct nvml_device *d, unsigned link, int *up);
    int (*persistence) (struct nvml_device *d, int *on);
    int (*width) (struct nvml_device *d, unsigned *lanes);
    int (*max_width) (struct nvml_device *d, unsigned *lanes);
    int (*generation) (struct nvml_device *d, unsigned *number);
    int (*max_generation) (struct nvml_device *d, unsigned *number);
    int (*mig) (struct nvml_device *d, int *now, int *later);
    int (*gpm_support) (struct nvml_device *d, struct nvml_gpm_support *s);
    int (*gpm_alloc) (struct nvml_gpm_sample **s);
    int (*gpm_free) (struct nvml_gpm_sample *s);
    int (*gpm_get) (struct nvml_device *d, struct nvml_gpm_sample *s);
    int (*gpm_metrics) (struct nvml_gpm_metrics *m);
};

/* Load libnvidia-ml.so.1 from the loader's search path.  Returns -1 with 'err' and errno ENOENT (it
 * is not installed) or EIO (it is too old).
 */
int nvml_load (struct nvml *n, struct slurmdl_error *err);

/* Load and initialise the library.  Also fails with EIO if the driver does not answer. */
int nvml_open (struct nvml *n, struct slurmdl_error *err);
void nvml_close (struct nvml *n);

/* Memory as nvidia-smi shows it: memory reserved by the driver counts in 'total' only.  Drivers
 * before 510 count it as used.  Returns an NVML status.
 */
int nvml_memory (const struct nvml *n, struct nvml_device *d, struct nvml_memory *m);
