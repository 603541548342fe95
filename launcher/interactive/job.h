/* SPDX-License-Identifier: Apache-2.0 */
/* What Slurm says of a job. */
#pragma once

#include <stddef.h>

/* Its state and reason, "PENDING Resources"; "UNKNOWN" and why, if Slurm does
 * not answer.  -1: Slurm does not know the job any more.
 */
int job_state (long job, char *buf, size_t size);
