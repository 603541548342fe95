/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the kernel killed something for want of memory. */
#ifndef LAUNCHER_SYS_OOM_H
#define LAUNCHER_SYS_OOM_H

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

#endif
