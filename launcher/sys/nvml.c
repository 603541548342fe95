/* SPDX-License-Identifier: Apache-2.0 */
/* Load NVIDIA's management library if it is installed. */
#include "launcher/sys/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/base/symbols.h"

#define AT(member) offsetof (struct nvml, member)

/* clang-format off */
static const struct symbol nvml_symbols[] = {
    { "nvmlInit_v2",                               AT (init) },
    { "nvmlDeviceGetCount_v2",                     AT (count) },
    { "nvmlDeviceGetHandleByIndex_v2",             AT (handle) },
    { "nvmlShutdown",                              AT (shutdown),         true },
    { "nvmlErrorString",                           AT (error),            true },
    { "nvmlSystemGetDriverVersion",                AT (driver),           true },
    { "nvmlSystemGetCudaDriverVersion_v2",         AT (cuda),             true },
    { "nvmlDeviceGetName",                         AT (name),             true },
    { "nvmlDeviceGetUUID",                         AT (uuid),             true },
    { "nvmlDeviceGetUtilizationRates",             AT (utilization),      true },
    { "nvmlDeviceGetMemoryInfo",                   AT (memory),           true },
    { "nvmlDeviceGetMemoryInfo_v2",                AT (memory_v2),        true },
    { "nvmlDeviceGetPowerUsage",                   AT (power),            true },
    { "nvmlDeviceGetEnforcedPowerLimit",          AT (power_limit),      true },
    { "nvmlDeviceGetTotalEnergyConsumption",       AT (energy),           true },
    { "nvmlDeviceGetTemperature",                  AT (temperature),      true },
    { "nvmlDeviceGetClockInfo",                    AT (clock),            true },
    { "nvmlDeviceGetMaxClockInfo",                AT (max_clock),        true },
    { "nvmlDeviceGetCurrentClocksThrottleReasons", AT (slowed),           true },
    { "nvmlDeviceGetPcieThroughput",               AT (pcie),             true },
    { "nvmlDeviceGetComputeRunningProcesses_v3",   AT (processes),        true },
    { "nvmlDeviceGetProcessUtilization",          AT (process_use),      true },
    { "nvmlDeviceGetPciInfo_v3",                   AT (pci),              true },
    { "nvmlDeviceGetEccMode",                      AT (ecc_mode),         true },
    { "nvmlDeviceGetTotalEccErrors",               AT (ecc_errors),       true },
    { "nvmlDeviceGetRetiredPagesPendingStatus",    AT (pages_pending),    true },
    { "nvmlDeviceGetRemappedRows",                 AT (rows),             true },
    { "nvmlDeviceGetNvLinkState",                  AT (link),             true },
    { "nvmlDeviceGetPersistenceMode",              AT (persistence),      true },
    { "nvmlDeviceGetCurrPcieLinkWidth",            AT (width),            true },
    { "nvmlDeviceGetMaxPcieLinkWidth",             AT (max_width),        true },
    { "nvmlDeviceGetCurrPcieLinkGeneration",       AT (generation),       true },
    { "nvmlDeviceGetMaxPcieLinkGeneration",        AT (max_generation),   true },
    { "nvmlDeviceGetMigMode",                      AT (mig),              true },
    { "nvmlGpmQueryDeviceSupport",                 AT (gpm_support),      true },
    { "nvmlGpmSampleAlloc",                        AT (gpm_alloc),        true },
    { "nvmlGpmSampleFree",                         AT (gpm_free),         true },
    { "nvmlGpmSampleGet",                          AT (gpm_get),          true },
    { "nvmlGpmMetricsGet",                         AT (gpm_metrics),      true },
    { NULL },
};
/* clang-format on */

int nvml_load (struct nvml *n, struct slurmdl_error *err)
{
    memset (n, 0, sizeof (*n));
    n->library = dlopen ("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library) {
        errno = ENOENT;
        return errorf (err, "libnvidia-ml.so.1 is not installed");
    }
    if (!symbols_load (n, n->library, nvml_symbols))
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
    errorf (err, "NVIDIA's driver: %s (NVML error %d)",
            n->error ? n->error (status) : "it does not answer", status);
    dlclose (n->library);
    n->library = NULL;
    errno = EIO;
    return -1;
}

int nvml_memory (const struct nvml *n, struct nvml_device *d, struct nvml_memory *m)
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
