/* SPDX-License-Identifier: Apache-2.0 */
/* Read slurm.conf and gres.conf. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Where slurm.conf is: 'chosen' (SLURM_CONF; NULL or "": it is not set), else
 * the first of the usual places that can be read; NULL: none.
 */
const char *slurmconf_path (const char *chosen);

/* Call 'emit' for each line of a file and of those that its Include lines name,
 * without comments, and with the lines that a \ joins to it, until it does not
 * return 0.  A file that cannot be read has no lines.  Returns what emit did.
 */
int slurmconf_each (const char *path, int (*emit) (void *arg, const char *line), void *arg);

/* The value of KEY= among the words of a line, without quotes; false: it has
 * none.  Keys have no case.
 */
bool slurmconf_value (const char *line, const char *key, char *buf, size_t size);

/* The GPUs of a value of Gres: "gpu:a100:4(S:0-1),gpu:2,shard:8" has 6. */
long slurmconf_gpus (const char *gres);

/* The ports that a site's firewall lets through to srun (SrunPortRange).
 * Returns -1 if the site has no such.
 */
int slurmconf_srun_ports (long *from, long *to);
