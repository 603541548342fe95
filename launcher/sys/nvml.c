/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library, loaded where it is there. */
#include "launcher/sys/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/base/error.h"

#define AT(member) offsetof (struct nvml, member)

/* clang-format off */
static const struct symbol {
    const char *name;
    size_t offset;
    bool needed;
} symbols[] = {
    { "nvmlInit_v2",                               AT (init),             true },
    { "nvmlDeviceGetCount_v2",                     AT (count),            true },
    { "nvmlDeviceGetHandleByIndex_v2",             AT (handle),           true },
    { "nvmlShutdown",                              AT (shutdown),         false },
    { "nvmlErrorString",                           AT (error),            false },
    { "nvmlSystemGetDriverVersion",                AT (driver),           false },
    { "nvmlSystemGetCudaDriverVersion_v2",         AT (cuda),             false },
    { "nvmlDeviceGetName",                         AT (name),             false },
    { "nvmlDeviceGetUUID",                         AT (uuid),             false },
    { "nvmlDeviceGetUtilizationRates",             AT (utilization),      false },
    { "nvmlDeviceGetMemoryInfo",                   AT (memory),           false },
    { "nvmlDeviceGetMemoryInfo_v2",                AT (memory_v2),        false },
    { "nvmlDeviceGetPowerUsage",                   AT (power),            false },
    { "nvmlDeviceGetTotalEnergyConsumption",       AT (energy),           false },
    { "nvmlDeviceGetTemperature",                  AT (temperature),      false },
    { "nvmlDeviceGetClockInfo",                    AT (clock),            false },
    { "nvmlDeviceGetCurrentClocksThrottleReasons", AT (slowed),           false },
    { "nvmlDeviceGetPcieThroughput",               AT (pcie),             false },
    { "nvmlDeviceGetComputeRunningProcesses_v3",   AT (processes),        false },
    { "nvmlDeviceGetPciInfo_v3",                   AT (pci),              false },
    { "nvmlDeviceGetEccMode",                      AT (ecc_mode),         false },
    { "nvmlDeviceGetTotalEccErrors",               AT (ecc_errors),       false },
    { "nvmlDeviceGetRetiredPagesPendingStatus",    AT (pages_pending),    false },
    { "nvmlDeviceGetRemappedRows",                 AT (rows),             false },
    { "nvmlDeviceGetNvLinkState",                  AT (link),             false },
    { "nvmlDeviceGetPersistenceMode",              AT (persistence),      false },
    { "nvmlDeviceGetCurrPcieLinkWidth",            AT (width),            false },
    { "nvmlDeviceGetMaxPcieLinkWidth",             AT (max_width),        false },
    { "nvmlDeviceGetCurrPcieLinkGeneration",       AT (generation),       false },
    { "nvmlDeviceGetMaxPcieLinkGeneration",        AT (max_generation),   false },
    { "nvmlDeviceGetMigMode",                      AT (mig),              false },
    { "nvmlGpmQueryDeviceSupport",                 AT (gpm_support),      false },
    { "nvmlGpmSampleAlloc",                        AT (gpm_alloc),        false },
    { "nvmlGpmSampleFree",                         AT (gpm_free),         false },
    { "nvmlGpmSampleGet",                          AT (gpm_get),          false },
    { "nvmlGpmMetricsGet",                         AT (gpm_metrics),      false },
};
/* clang-format on */

static int find_all (struct nvml *n)
{
    for (size_t i = 0; i < sizeof (symbols) / sizeof (*symbols); i++) {
        void *f = dlsym (n->library, symbols[i].name);
        if (!f && symbols[i].needed)
            return -1;
        memcpy ((char *)n + symbols[i].offset, &f, sizeof (f));
    }
    return 0;
}

int nvml_load (struct nvml *n, struct slurmdl_error *err)
{
    memset (n, 0, sizeof (*n));
    n->library = dlopen ("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library) {
        errno = ENOENT;
        return errorf (err, "libnvidia-ml.so.1 is not here");
    }
    if (find_all (n) == 0)
        return 0;
    dlclose (n->library);
    n->library = NULL;
    errno = EIO;
    return errorf (err, "libnvidia-ml.so.1 lacks functions");
}

int nvml_open (struct nvml *n, struct slurmdl_error *err)
{
    int status;

    if (nvml_load (n, err) < 0)
        return -1;
    status = n->init ();
    if (status == NVML_SUCCESS)
        return 0;
    errorf (err,
            "NVIDIA's driver: %s (NVML error %d)",
            n->error ? n->error (status) : "it does not answer",
            status);
    dlclose (n->library);
    n->library = NULL;
    errno = EIO;
    return -1;
}

int nvml_memory (const struct nvml *n,
                 struct nvml_device *d,
                 struct nvml_memory *m)
{
    struct nvml_memory_v2 v2 = { .version = NVML_MEMORY_V2 };

    if (n->memory_v2 && n->memory_v2 (d, &v2) == NVML_SUCCESS) {
        *m = (struct nvml_memory){ v2.total, v2.free, v2.used };
        return NVML_SUCCESS;
    }
    return n->memory ? n->memory (d, m) : NVML_LACKING;
}

void nvml_close (struct nvml *n)
{
    if (!n->library)
        return;
    if (n->shutdown)
        n->shutdown ();
    dlclose (n->library);
    n->library = NULL;
}
