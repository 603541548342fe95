/* SPDX-License-Identifier: Apache-2.0 */
/* Fake of NVIDIA's libnvidia-ml.so.1, with GPUs that the test chooses.
 *
 * FAKE_NVML is a file with a line for each GPU: utilization (per cent), used and total memory
 * (MiB), power (W), temperature, clock throttle reasons (hexadecimal), and "-" or the name of a
 * file with a line for each process on the GPU: its pid, and optionally the share of the time in
 * which it uses the GPU (per cent).  Optional further fields: SM clock (MHz), power limit (W),
 * lanes of the PCIe link.  If the first line is "hang", calls never return; if it is "crash", they
 * abort, as in a faulty driver library.
 *
 * Without FAKE_NVML there are two GPUs.  FAKE_FAULTS is a list of node (SLURMD_NODENAME, or
 * "here"), fault and GPU, such as "n2:ecc:1,n1:link:0".  -DLESS: an old library that lacks most
 * functions.
 *
 * If preloaded, it also replaces the kernel log with the file FAKE_KERNEL_LOG.
 */
/* the functions are declared only in NVIDIA's header, which is not required */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sys/nvml.h"

enum { RESERVED = 600 << 20 }; /* bytes on each GPU that the driver reserves */
enum { GPUS = 8, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, UNKNOWN = 999 };

struct nvml_device {
    double busy, used, size, power, temperature;
    unsigned slowed;
    char process[256];
    double clock, limit;
    unsigned lanes;
};

static struct nvml_device devices[GPUS];

static unsigned number_of (const struct nvml_device *d)
{
    return (unsigned)(d - devices);
}

static bool has (const struct nvml_device *d, const char *fault)
{
    const char *node = getenv ("SLURMD_NODENAME");
    const char *list = getenv ("FAKE_FAULTS");
    char text[128];

    snprintf (text, sizeof (text), "%s:%s:%u", node ? node : "here", fault, number_of (d));
    return list && strstr (list, text) != NULL;
}

/* Returns how many GPUs there are. */
static unsigned read_gpus (void)
{
    const char *path = getenv ("FAKE_NVML");
    FILE *f = path ? fopen (path, "r") : NULL;
    char line[512];
    unsigned n = 0;

    for (; !path && n < 2; n++) {
        struct nvml_device *d = &devices[n];
        *d = (struct nvml_device){
            .size = 80 << 10, .process = "-", .clock = 1980, .limit = 700, .lanes = 16
        };
        d->used = has (d, "memory") ? 70 << 10 : 500;
        d->slowed = has (d, "thermal")      ? 0x48
                    : has (d, "brake")      ? 0x80
                    : has (d, "slow")       ? 0x8
                    : has (d, "warm")       ? 0x20
                    : has (d, "generation") ? 0
                                            : 0x1;
    }
    while (f && n < GPUS && fgets (line, sizeof (line), f)) {
        struct nvml_device *d = &devices[n];
        while (!strncmp (line, "hang", 4))
            pause ();
        if (!strncmp (line, "crash", 5))
            abort ();
        d->clock = 1980;
        d->limit = 700;
        d->lanes = 16;
        n += sscanf (line, "%lf %lf %lf %lf %lf %x %255s %lf %lf %u", &d->busy, &d->used, &d->size,
                     &d->power, &d->temperature, &d->slowed, d->process, &d->clock, &d->limit,
                     &d->lanes)
             >= 7;
    }
    if (f)
        fclose (f);
    return n;
}

int nvmlInit_v2 (void)
{
    if (has (devices, "unloaded") || has (devices, "mute"))
        return has (devices, "mute") ? UNKNOWN : NVML_NOT_LOADED;
    return read_gpus () ? NVML_SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetCount_v2 (unsigned *n)
{
    *n = read_gpus ();
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2 (unsigned i, struct nvml_device **d)
{
    if (i >= read_gpus ())
        return NOT_FOUND;
    *d = &devices[i];
    while (has (*d, "hang"))
        pause ();
    return has (*d, "lost")     ? NVML_LOST
           : has (*d, "reset")  ? NVML_RESET
           : has (*d, "closed") ? UNKNOWN
                                : NVML_SUCCESS;
}

int nvmlDeviceGetName (struct nvml_device *d, char *buf, unsigned size)
{
    snprintf (buf, size, has (d, "name") ? "Evil\033[31m\nGPU" : "Fake H100");
    return NVML_SUCCESS;
}

int nvmlDeviceGetUUID (struct nvml_device *d, char *buf, unsigned size)
{
    snprintf (buf, size, "GPU-00000000-%u", number_of (d));
    return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo_v3 (struct nvml_device *d, struct nvml_pci *pci)
{
    memset (pci, 0, sizeof (*pci));
    snprintf (pci->bus_id, sizeof (pci->bus_id), "00000000:%02X:00.0", 0x1b + number_of (d));
    return NVML_SUCCESS;
}

int nvmlSystemGetDriverVersion (char *buf, unsigned size)
{
    snprintf (buf, size, has (devices, "driver") ? "470.1" : "550.54.15");
    return NVML_SUCCESS;
}

#ifndef LESS
int nvmlDeviceGetEccMode (struct nvml_device *d, int *now, int *later)
{
    *now = *later = !has (d, "noecc");
    return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors (struct nvml_device *d, int type, int counter,
                                 unsigned long long *n)
{
    *n = type == 1 && counter == 0 && has (d, "ecc") ? 3 : 0;
    return NVML_SUCCESS;
}

int nvmlDeviceGetRetiredPagesPendingStatus (struct nvml_device *d, int *on)
{
    *on = has (d, "pages");
    return *on ? NVML_SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetRemappedRows (struct nvml_device *d, unsigned *corrected, unsigned *uncorrected,
                               unsigned *pending, unsigned *failed)
{
    *corrected = *uncorrected = 0;
    *pending = has (d, "rows") != 0;
    *failed = has (d, "failed");
    return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkState (struct nvml_device *d, unsigned link, int *on)
{
    if (link >= 12)
        return INVALID;
    *on = !(link == 5 && has (d, "link")) && !has (d, "links");
    return NVML_SUCCESS;
}

int nvmlDeviceGetPersistenceMode (struct nvml_device *d, int *on)
{
    *on = !has (d, "unloads");
    return has (d, "lostlate") ? NVML_LOST : NVML_SUCCESS;
}

int nvmlDeviceGetMigMode (struct nvml_device *d, int *now, int *later)
{
    *now = *later = has (d, "divided");
    return NVML_SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkGeneration (struct nvml_device *d, unsigned *n)
{
    *n = has (d, "generation") || has (d, "idle") ? 1 : 5;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkGeneration (struct nvml_device *d, unsigned *n)
{
    *n = 5;
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2 (int *version)
{
    *version = 12040;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkWidth (struct nvml_device *d, unsigned *n)
{
    *n = has (d, "width") ? 8 : d->lanes;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkWidth (struct nvml_device *d, unsigned *n)
{
    *n = 16;
    return NVML_SUCCESS;
}

int nvmlShutdown (void)
{
    return NVML_SUCCESS;
}

const char *nvmlErrorString (int status)
{
    return status == NOT_FOUND ? "Not Found" : "Unknown Error";
}

int nvmlDeviceGetUtilizationRates (struct nvml_device *d, struct nvml_utilization *u)
{
    read_gpus ();
    u->gpu = (unsigned)d->busy;
    u->memory = (unsigned)d->busy / 2;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo (struct nvml_device *d, struct nvml_memory *m)
{
    m->used = ((unsigned long long)d->used << 20) + RESERVED;
    m->total = (unsigned long long)d->size << 20;
    m->free = m->total - m->used;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2 (struct nvml_device *d, struct nvml_memory_v2 *m)
{
    struct nvml_memory old;

    if (m->version != NVML_MEMORY_V2)
        return INVALID;
    nvmlDeviceGetMemoryInfo (d, &old);
    m->reserved = RESERVED;
    m->total = old.total;
    m->used = old.used - RESERVED;
    m->free = old.free;
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
    read_gpus ();
    *mhz = which == NVML_CLOCK_SM ? (unsigned)d->clock : 2619;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMaxClockInfo (struct nvml_device *d, int which, unsigned *mhz)
{
    *mhz = which == NVML_CLOCK_SM ? 1980 : 2619;
    return NVML_SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit (struct nvml_device *d, unsigned *milliwatt)
{
    *milliwatt = (unsigned)(d->limit * 1000);
    return NVML_SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons (struct nvml_device *d, unsigned long long *why)
{
    *why = d->slowed;
    return NVML_SUCCESS;
}

int nvmlDeviceGetPcieThroughput (struct nvml_device *d, int counter, unsigned *kilobytes)
{
    *kilobytes = counter == NVML_PCIE_RX ? 7000 : 3000;
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3 (struct nvml_device *d, unsigned *n,
                                             struct nvml_process *p)
{
    FILE *f = fopen (d->process, "r");
    unsigned most = *n, pid = 4711;
    char line[64];

    *n = 0;
    while (f ? *n < most && fgets (line, sizeof (line), f) && sscanf (line, "%u", &pid) == 1
             : *n < has (d, "busy"))
        p[(*n)++] = (struct nvml_process){ .pid = pid, .memory = ULLONG_MAX };
    if (f)
        fclose (f);
    return NVML_SUCCESS;
}

int nvmlDeviceGetProcessUtilization (struct nvml_device *d, struct nvml_process_use *use,
                                     unsigned *n, unsigned long long since)
{
    FILE *f = fopen (d->process, "r");
    unsigned most = *n, pid, busy;
    char line[64];
    struct timespec now;

    clock_gettime (CLOCK_REALTIME, &now);
    *n = 0;
    while (f && *n < most && fgets (line, sizeof (line), f))
        if (sscanf (line, "%u %u", &pid, &busy) == 2)
            use[(*n)++] = (struct nvml_process_use){
                .pid = pid,
                .sm = busy,
                .time = (unsigned long long)now.tv_sec * 1000000
                        + (unsigned long long)now.tv_nsec / 1000,
            };
    if (f)
        fclose (f);
    return *n > 0 ? NVML_SUCCESS : NOT_FOUND;
}

int nvmlGpmQueryDeviceSupport (struct nvml_device *d, struct nvml_gpm_support *s)
{
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
        m->metrics[i].status = m->metrics[i].id == NVML_GPM_SM ? NVML_SUCCESS : UNKNOWN;
        m->metrics[i].value = m->after->device->busy / 4;
    }
    return NVML_SUCCESS;
}
#endif

/* reads the kernel log */
int klogctl (int type, char *text, int size)
{
    const char *path = getenv ("FAKE_KERNEL_LOG");
    FILE *f = path ? fopen (path, "r") : NULL;
    size_t n;

    if (!f)
        return -1;
    if (type == 10) {
        fclose (f);
        return 4096;
    }
    n = fread (text, 1, (size_t)size, f);
    fclose (f);
    return (int)n;
}
