/* SPDX-License-Identifier: Apache-2.0 */
/* Cases with two ranks on one GPU or its stand-in. */
#pragma once

#include <stdbool.h>

/* Before this process has touched CUDA, which does not survive a fork. */
void two_ranks (bool stand_ins);
