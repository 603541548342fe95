/* SPDX-License-Identifier: Apache-2.0 */
/* Cases with two ranks on one GPU or a fake GPU. */
#pragma once

#include <stdbool.h>

/* Call this before the process uses CUDA, which does not survive a fork. */
void two_ranks (bool stand_ins);
