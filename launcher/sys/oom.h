/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of the memory of a cgroup: kills, the limit, the peak.
 */
#pragma once

#include <stdint.h>

/* How many processes of the memory cgroup of this process the kernel has
 * killed for want of memory, as its counter says: memory.events of cgroup v2
 * (those below it included), memory.oom_control of v1.  'root' stands before
 * /proc and /sys/fs/cgroup ("" but in tests).  -1: not known.
 */
long oom_kills (const char *root);

/* The same of all cgroups of the Slurm job that this process is in, those of
 * steps that have ended included.  v1 keeps no count of those: 1 if the job
 * has reached its limit (memory.failcnt), which the page cache may do as well.
 */
long oom_kills_of_job (const char *root);

/* Bytes of memory that this process and all else in its cgroup may have: the
 * least limit of it, of those above it and of the machine.  0: not known.
 */
int64_t oom_memory_limit (const char *root);
