/* SPDX-License-Identifier: Apache-2.0 */
/* Check this host, and a step that is started. */
#pragma once

#include "launcher/node/doctor_site.h"

/* Checks of this host, rows of the table in doctor.c; each adds its findings to
 * 's': a GPU for each device file, nvidia_peermem for GPUDirect RDMA, the
 * limits of locked memory and of open files, the size of /dev/shm, logind's
 * RemoveIPC, the address of the host's own name, and the time of a step.
 */
void doctor_gpus (struct site *s);
void doctor_peermem (struct site *s);
void doctor_memlock (struct site *s);
void doctor_nofile (struct site *s);
void doctor_shm (struct site *s);
void doctor_remove_ipc (struct site *s);
void doctor_hosts (struct site *s);
void doctor_step (struct site *s);
