/* SPDX-License-Identifier: Apache-2.0 */
/* Give a test its own directory, and an environment without a worker or step. */
#pragma once

#include "tests/folder.h"
#include "tests/unit.h"

static const char *const variables[] = {
    "DL_ATTEMPT_DIR", "DL_ATTEMPT",    "DL_TRIAL",     "DL_LENGTH",
    "DL_SEED",        "DL_EXPERIMENT", "DL_RUN_DIR",   "RANK",
    "WORLD_SIZE",     "DL_HP_lr",      "DL_HP_opt_k",  "SLURM_STEP_ID",
    "SLURM_STEPID",   "SLURM_PROCID",  "SLURM_NTASKS", "DL_CHECKPOINT_ATTEMPT"
};

static inline int clean (void **state)
{
    for (size_t i = 0; i < COUNT (variables); i++)
        unsetenv (variables[i]);
    return make_dir (state);
}

#define UNATTENDED_CASE(f) CASE_WITH (f, clean, remove_dir)
