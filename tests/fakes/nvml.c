/* SPDX-License-Identifier: Apache-2.0 */
/* Stand in for libnvidia-ml.so.1: GPUs whose faults a test chooses.
 *
 * FAKE_GPUS is how many there are (default: 2), FAKE_FAULTS a list as
 * "n2:ecc:1,n1:link:0" of node (SLURMD_NODENAME, or "here"), fault and GPU.
 */
/* the library has no header here, as it has none for the program */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_SUPPORTED = 3, INVALID = 2, LOST = 15 };

static unsigned number_of (void *device)
{
    return (unsigned)((size_t)device - 1);
}

static int has (void *device, const char *fault)
{
    const char *node = getenv ("SLURMD_NODENAME");
    const char *list = getenv ("FAKE_FAULTS");
    char text[128];

    snprintf (text,
              sizeof (text),
              "%s:%s:%u",
              node ? node : "here",
              fault,
              number_of (device));
    return list && strstr (list, text) != NULL;
}

int nvmlInit_v2 (void)
{
    return 0;
}

int nvmlDeviceGetCount_v2 (unsigned *n)
{
    const char *text = getenv ("FAKE_GPUS");

    *n = text ? (unsigned)atoi (text) : 2;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2 (unsigned i, void **device)
{
    *device = (void *)((size_t)i + 1);
    if (has (*device, "hang"))
        for (;;)
            pause ();
    return has (*device, "lost") ? LOST : 0;
}

int nvmlDeviceGetName (void *device, char *buf, unsigned size)
{
    snprintf (
        buf, size, has (device, "name") ? "Evil\033[31m\nGPU" : "Fake H100");
    return 0;
}

int nvmlDeviceGetUUID (void *device, char *buf, unsigned size)
{
    snprintf (buf, size, "GPU-00000000-%u", number_of (device));
    return 0;
}

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

int nvmlDeviceGetPciInfo_v3 (void *device, struct pci *pci)
{
    memset (pci, 0, sizeof (*pci));
    snprintf (pci->bus_id,
              sizeof (pci->bus_id),
              "00000000:%02X:00.0",
              0x1b + number_of (device));
    return 0;
}

int nvmlSystemGetDriverVersion (char *buf, unsigned size)
{
    snprintf (buf, size, has ((void *)1, "driver") ? "470.1" : "550.54.15");
    return 0;
}

#ifndef LESS
int nvmlDeviceGetEccMode (void *device, int *now, int *later)
{
    *now = *later = !has (device, "noecc");
    return 0;
}

int nvmlDeviceGetTotalEccErrors (void *device,
                                 int type,
                                 int counter,
                                 unsigned long long *n)
{
    *n = type == 1 && counter == 0 && has (device, "ecc") ? 3 : 0;
    return 0;
}

int nvmlDeviceGetRetiredPagesPendingStatus (void *device, int *on)
{
    (void)device;
    (void)on;
    return NOT_SUPPORTED;
}

int nvmlDeviceGetRemappedRows (void *device,
                               unsigned *corrected,
                               unsigned *uncorrected,
                               unsigned *pending,
                               unsigned *failed)
{
    *corrected = *uncorrected = 0;
    *pending = has (device, "rows") != 0;
    *failed = 0;
    return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons (void *device,
                                               unsigned long long *reasons)
{
    *reasons = has (device, "thermal") ? 0x48 : 0x1;
    return 0;
}

int nvmlDeviceGetNvLinkState (void *device, unsigned link, int *on)
{
    if (link >= 12)
        return INVALID;
    *on = !(link == 5 && has (device, "link"));
    return 0;
}

int nvmlDeviceGetPersistenceMode (void *device, int *on)
{
    (void)device;
    *on = 1;
    return 0;
}

int nvmlDeviceGetMemoryInfo (void *device, unsigned long long *m)
{
    m[0] = 80ull << 30;
    m[2] = has (device, "memory") ? 70ull << 30 : 500 << 20;
    m[1] = m[0] - m[2];
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3 (void *device,
                                             unsigned *n,
                                             void *list)
{
    *n = has (device, "busy") != 0;
    if (*n)
        *(unsigned *)list = 4711;
    return 0;
}

int nvmlDeviceGetCurrPcieLinkWidth (void *device, unsigned *n)
{
    *n = has (device, "width") ? 8 : 16;
    return 0;
}

int nvmlDeviceGetMaxPcieLinkWidth (void *device, unsigned *n)
{
    (void)device;
    *n = 16;
    return 0;
}
#endif
