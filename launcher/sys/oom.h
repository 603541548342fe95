/* SPDX-License-Identifier: Apache-2.0 */
/* Read from the kernel how often it ran out of memory in a cgroup, and the cgroup's limit. */
#pragma once

#include <stdint.h>

/* Number of processes in this process's memory cgroup that the OOM killer has killed, by the
 * kernel's counter: memory.events in cgroup v2, which includes child cgroups, or memory.oom_control
 * in v1.  'root' is put before /proc and /sys/fs/cgroup; it is "" except in tests.  Returns -1 if
 * unknown.
 */
long oom_kills (const char *root);

/* The same for all cgroups of the Slurm job that this process runs in, including those of ended
 * steps.  cgroup v1 does not count the latter; there, 1 means that the job has reached its limit
 * (memory.failcnt), which the page cache alone can cause.
 */
long oom_kills_of_job (const char *root);

/* Memory limit in bytes of this process's cgroup: the smallest limit of the cgroup, its ancestors
 * and the machine.  Returns 0 if unknown.
 */
int64_t oom_memory_limit (const char *root);
