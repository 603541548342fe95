/* SPDX-License-Identifier: Apache-2.0 */
/* Stand in for NVIDIA's libnvidia-ml.so.1.  The file FAKE_NVML has a line for
 * each GPU: busy (per cent), memory in use and in all (MiB), power (W),
 * temperature, reasons of a slow clock (hexadecimal), and a file that has the
 * pid of a process on it, or "-".  A first line "hang" never returns, "crash"
 * is a bug of the driver's library.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/nvml.h"

enum { GPUS = 8, NOT_FOUND = 6, UNKNOWN = 999 };

struct nvml_device {
    double busy, used, size, power, temperature;
    unsigned slowed;
    char process[256];
};

static struct nvml_device devices[GPUS];

int nvmlInit_v2 (void);
int nvmlShutdown (void);
int nvmlDeviceGetCount_v2 (unsigned *n);
int nvmlDeviceGetHandleByIndex_v2 (unsigned i, struct nvml_device **d);
const char *nvmlErrorString (int status);
int nvmlDeviceGetUtilizationRates (struct nvml_device *d,
                                   struct nvml_utilization *u);
int nvmlDeviceGetMemoryInfo (struct nvml_device *d, struct nvml_memory *m);
int nvmlDeviceGetPowerUsage (struct nvml_device *d, unsigned *milliwatt);
int nvmlDeviceGetTemperature (struct nvml_device *d, int sensor, unsigned *t);
int nvmlDeviceGetClockInfo (struct nvml_device *d, int which, unsigned *mhz);
int nvmlDeviceGetCurrentClocksThrottleReasons (struct nvml_device *d,
                                               unsigned long long *why);
int nvmlDeviceGetPcieThroughput (struct nvml_device *d,
                                 int counter,
                                 unsigned *kilobytes);
int nvmlDeviceGetComputeRunningProcesses_v3 (struct nvml_device *d,
                                             unsigned *n,
                                             struct nvml_process *p);
int nvmlGpmQueryDeviceSupport (struct nvml_device *d,
                               struct nvml_gpm_support *s);
int nvmlGpmSampleAlloc (struct nvml_gpm_sample **s);
int nvmlGpmSampleFree (struct nvml_gpm_sample *s);
int nvmlGpmSampleGet (struct nvml_device *d, struct nvml_gpm_sample *s);
int nvmlGpmMetricsGet (struct nvml_gpm_metrics *m);

static unsigned read_file (void)
{
    const char *path = getenv ("FAKE_NVML");
    FILE *f = path ? fopen (path, "r") : NULL;
    char line[512];
    unsigned n = 0;

    while (f && n < GPUS && fgets (line, sizeof (line), f)) {
        struct nvml_device *d = &devices[n];
        while (!strncmp (line, "hang", 4))
            pause ();
        if (!strncmp (line, "crash", 5))
            abort ();
        n += sscanf (line,
                     "%lf %lf %lf %lf %lf %x %255s",
                     &d->busy,
                     &d->used,
                     &d->size,
                     &d->power,
                     &d->temperature,
                     &d->slowed,
                     d->process)
             == 7;
    }
    if (f)
        fclose (f);
    return n;
}

int nvmlInit_v2 (void)
{
    return read_file () ? NVML_SUCCESS : NOT_FOUND;
}

int nvmlShutdown (void)
{
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2 (unsigned *n)
{
    *n = read_file ();
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2 (unsigned i, struct nvml_device **d)
{
    *d = &devices[i];
    return i < read_file () ? NVML_SUCCESS : NOT_FOUND;
}

const char *nvmlErrorString (int status)
{
    return status == NOT_FOUND ? "Not Found" : "Unknown Error";
}

int nvmlDeviceGetUtilizationRates (struct nvml_device *d,
                                   struct nvml_utilization *u)
{
    read_file ();
    u->gpu = (unsigned)d->busy;
    u->memory = (unsigned)d->busy / 2;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo (struct nvml_device *d, struct nvml_memory *m)
{
    m->used = (unsigned long long)d->used << 20;
    m->total = (unsigned long long)d->size << 20;
    m->free = m->total - m->used;
    return NVML_SUCCESS;
}

int nvmlDeviceGetPowerUsage (struct nvml_device *d, unsigned *milliwatt)
{
    *milliwatt = (unsigned)(d->power * 1000);
    return NVML_SUCCESS;
}

int nvmlDeviceGetTemperature (struct nvml_device *d, int sensor, unsigned *t)
{
    *t = (unsigned)d->temperature;
    return sensor == NVML_TEMPERATURE_GPU ? NVML_SUCCESS : UNKNOWN;
}

int nvmlDeviceGetClockInfo (struct nvml_device *d, int which, unsigned *mhz)
{
    (void)d;
    *mhz = which == NVML_CLOCK_SM ? 1980 : 2619;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons (struct nvml_device *d,
                                               unsigned long long *why)
{
    *why = d->slowed;
    return NVML_SUCCESS;
}

int nvmlDeviceGetPcieThroughput (struct nvml_device *d,
                                 int counter,
                                 unsigned *kilobytes)
{
    (void)d;
    *kilobytes = counter == NVML_PCIE_RX ? 7000 : 3000;
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3 (struct nvml_device *d,
                                             unsigned *n,
                                             struct nvml_process *p)
{
    FILE *f = fopen (d->process, "r");

    *n = f && fscanf (f, "%u", &p->pid) == 1;
    p->memory = ULLONG_MAX;
    if (f)
        fclose (f);
    return NVML_SUCCESS;
}

int nvmlGpmQueryDeviceSupport (struct nvml_device *d,
                               struct nvml_gpm_support *s)
{
    (void)d;
    s->supported = 1;
    return s->version == NVML_GPM_VERSION ? NVML_SUCCESS : UNKNOWN;
}

struct nvml_gpm_sample {
    const struct nvml_device *device;
};

int nvmlGpmSampleAlloc (struct nvml_gpm_sample **s)
{
    *s = calloc (1, sizeof (**s));
    return *s ? NVML_SUCCESS : UNKNOWN;
}

int nvmlGpmSampleFree (struct nvml_gpm_sample *s)
{
    free (s);
    return NVML_SUCCESS;
}

int nvmlGpmSampleGet (struct nvml_device *d, struct nvml_gpm_sample *s)
{
    s->device = d;
    return NVML_SUCCESS;
}

int nvmlGpmMetricsGet (struct nvml_gpm_metrics *m)
{
    if (m->version != NVML_GPM_VERSION || m->before == m->after
        || m->before->device != m->after->device)
        return UNKNOWN;
    for (unsigned i = 0; i < m->n; i++) {
        m->metrics[i].status =
            m->metrics[i].id == NVML_GPM_SM ? NVML_SUCCESS : UNKNOWN;
        m->metrics[i].value = m->after->device->busy / 4;
    }
    return NVML_SUCCESS;
}
