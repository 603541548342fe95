/* SPDX-License-Identifier: Apache-2.0 */
/* Give a test its own directory, and an environment without a worker or step. */
#pragma once

#include "tests/folder.h"
#include "tests/unit.h"

static const char *const variables[] = { "DL_ATTEMPT_DIR",
                                         "DL_ATTEMPT",
                                         "DL_TRIAL",
                                         "DL_LENGTH",
                                         "DL_SEED",
                                         "DL_EXPERIMENT",
                                         "DL_RUN_DIR",
                                         "RANK",
                                         "WORLD_SIZE",
                                         "DL_HP_lr",
                                         "DL_HP_opt_k",
                                         "SLURM_STEP_ID",
                                         "SLURM_STEPID",
                                         "SLURM_PROCID",
                                         "SLURM_NTASKS",
                                         "DL_CHECKPOINT_ATTEMPT",
                                         NULL };

static inline int clean (void **state)
{
    for (int i = 0; variables[i]; i++)
        unsetenv (variables[i]);
    return make_dir (state);
}

#define TEST(f) cmocka_unit_test_setup_teardown (f, clean, remove_dir)
