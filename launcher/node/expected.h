/* SPDX-License-Identifier: Apache-2.0 */
/* How many GPUs this process, or this node, should have. */
#pragma once

/* By `dl check --gpus`, else by Slurm's variables in a job or its prolog, else
 * what Slurm's configuration gives this node.  In *by what says so.  0: none,
 * or not known.
 */
long gpus_expected (const char **by);

/* In which `dl check --gpus` tells the processes of the check. */
#define EXPECTED_VARIABLE "DL_CHECK_GPUS"

/* The number of GPUs that Slurm gave to this process, by its variables: also in
 * a prolog, where CUDA_VISIBLE_DEVICES or SLURM_JOB_GPUS has them.
 */
long gpus_given (void);

/* CUDA_VISIBLE_DEVICES; NULL: it is not set, or says nothing. */
const char *gpus_visible (void);
