/* SPDX-License-Identifier: Apache-2.0 */
/* Read NVIDIA's GPUs. */
#pragma once

#include "launcher/monitor/gpus.h"

/* NVIDIA's; nvidia_open() returns NULL if there are none. */
struct nvidia;
struct nvidia *nvidia_open (void);
void nvidia_close (struct nvidia *n);
void nvidia_read (struct nvidia *n, struct gpu_readings *r);
