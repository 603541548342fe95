/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of checks. */
#include "launcher/nodecheck/checks.h"

#include "launcher/nodecheck/files.h"
#include "launcher/nodecheck/gpu_copy.h"
#include "launcher/nodecheck/gpus.h"
#include "launcher/nodecheck/peers.h"
#include "launcher/nodecheck/system.h"
#include "launcher/nodecheck/versions.h"

/* clang-format off */
const struct check_row check_table[] = {
    { "GPUs",              LEVEL_NONE,  EVERY_RANK,    SEVERITY_BAD,    check_gpus },
    { "GPU copy",          LEVEL_FULL,  EVERY_RANK,    SEVERITY_BAD,    check_copy },
    { "AMD GPUs",          LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_BAD,    check_amd },
    { "kernel log",        LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_NOTE,   check_kernel },
    { "network",           LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_BAD,    check_network },
    { "memory",            LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_BAD,    check_memory },
    { "memory bandwidth",  LEVEL_FULL,  FIRST_OF_NODE, SEVERITY_BAD,    check_bandwidth },
    { "working directory", LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_SHARED, check_directory },
    { "TMPDIR",            LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_BAD,    check_temporary },
    { "versions",          LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_WARN,   check_versions },
    { "Python",            LEVEL_FULL,  FIRST_OF_NODE, SEVERITY_WARN,   check_python },
    { 0 },
};

const struct check_row check_peer_table[] = {
    { "MASTER_PORT",       LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_STOP,   check_master },
    { "next node",         LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_WARN,   check_next },
    { 0 },
};
/* clang-format on */
