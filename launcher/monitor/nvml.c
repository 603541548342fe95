/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library, loaded where it is there. */
#include "launcher/monitor/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/error.h"

#define AT(member) offsetof (struct nvml, member)

/* clang-format off */
static const struct symbol {
    const char *name;
    size_t offset;
    bool needed;
} symbols[] = {
    { "nvmlInit_v2",                              AT (init),        true },
    { "nvmlShutdown",                             AT (shutdown),    true },
    { "nvmlDeviceGetCount_v2",                    AT (count),       true },
    { "nvmlDeviceGetHandleByIndex_v2",            AT (handle),      true },
    { "nvmlErrorString",                          AT (error),       true },
    { "nvmlDeviceGetName",                        AT (name),        false },
    { "nvmlDeviceGetUUID",                        AT (uuid),        false },
    { "nvmlDeviceGetUtilizationRates",            AT (utilization), false },
    { "nvmlDeviceGetMemoryInfo",                  AT (memory),      false },
    { "nvmlDeviceGetPowerUsage",                  AT (power),       false },
    { "nvmlDeviceGetTotalEnergyConsumption",      AT (energy),      false },
    { "nvmlDeviceGetTemperature",                 AT (temperature), false },
    { "nvmlDeviceGetClockInfo",                   AT (clock),       false },
    { "nvmlDeviceGetCurrentClocksThrottleReasons", AT (slowed),     false },
    { "nvmlDeviceGetPcieThroughput",              AT (pcie),        false },
    { "nvmlDeviceGetComputeRunningProcesses_v3",  AT (processes),   false },
    { "nvmlGpmQueryDeviceSupport",                AT (gpm_support), false },
    { "nvmlGpmSampleAlloc",                       AT (gpm_alloc),   false },
    { "nvmlGpmSampleFree",                        AT (gpm_free),    false },
    { "nvmlGpmSampleGet",                         AT (gpm_get),     false },
    { "nvmlGpmMetricsGet",                        AT (gpm_metrics), false },
};
/* clang-format on */

static int load (struct nvml *n)
{
    for (size_t i = 0; i < sizeof (symbols) / sizeof (*symbols); i++) {
        void *f = dlsym (n->library, symbols[i].name);
        if (!f && symbols[i].needed)
            return -1;
        memcpy ((char *)n + symbols[i].offset, &f, sizeof (f));
    }
    return 0;
}

int nvml_open (struct nvml *n, struct slurmdl_error *err)
{
    int status;

    memset (n, 0, sizeof (*n));
    n->library = dlopen ("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library) {
        errno = ENOENT;
        return errorf (err, "libnvidia-ml.so.1 is not here");
    }
    if (load (n) < 0) {
        errorf (err, "libnvidia-ml.so.1 lacks functions");
    } else if ((status = n->init ()) != NVML_SUCCESS) {
        errorf (err, "NVIDIA's driver: %s", n->error (status));
    } else {
        return 0;
    }
    dlclose (n->library);
    n->library = NULL;
    errno = EIO;
    return -1;
}

void nvml_close (struct nvml *n)
{
    if (!n->library)
        return;
    n->shutdown ();
    dlclose (n->library);
    n->library = NULL;
}
