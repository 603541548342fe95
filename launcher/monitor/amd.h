/* SPDX-License-Identifier: Apache-2.0 */
/* Read AMD's GPUs. */
#ifndef LAUNCHER_MONITOR_AMD_H
#define LAUNCHER_MONITOR_AMD_H

#include "launcher/monitor/gpus.h"

/* Read AMD's GPUs below the root of sysfs, beginning at gpu[n]. */
void amd_read (int sysfs, struct gpu_readings *r);

#endif
