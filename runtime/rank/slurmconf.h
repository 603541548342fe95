/* SPDX-License-Identifier: Apache-2.0 */
/* Read slurm.conf and gres.conf. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The path of slurm.conf: 'chosen' (SLURM_CONF; NULL or "" if unset), or else the first readable
 * one of the usual places; NULL if there is none.
 */
const char *slurmconf_path (const char *chosen);

/* Call 'emit' for each line of a file and of the files that it includes, without comments and with
 * lines joined at a \, until it returns nonzero.  An unreadable file counts as empty.  Returns what
 * emit returned last.
 */
int slurmconf_each (const char *path, int (*emit) (void *arg, const char *line), void *arg);

/* Read the value of KEY= among the words of a line, without quotes; false if there is none.  The
 * case of keys is ignored.
 */
bool slurmconf_value (const char *line, const char *key, char *buf, size_t size);

/* The number of GPUs in a value of Gres: "gpu:a100:4(S:0-1),gpu:2,shard:8" has 6. */
long slurmconf_gpus (const char *gres);

/* The ports that the firewall of a site opens for srun (SrunPortRange).  Returns -1 if the site
 * does not set them.
 */
int slurmconf_srun_ports (long *from, long *to);
