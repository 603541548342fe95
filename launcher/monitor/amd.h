/* SPDX-License-Identifier: Apache-2.0 */
/* Read AMD's GPUs. */
#pragma once

#include "launcher/monitor/gpus.h"

/* Read AMD's GPUs below the root of sysfs, beginning at gpu[n]. */
void amd_read (int sysfs, struct gpu_readings *r);
