/* SPDX-License-Identifier: Apache-2.0 */
/* Which collective a message belongs to, in 32 bits. */
#pragma once

#include <stdbool.h>

#include "runtime/comm/mesh/collective.h"

/* 'call' counts the collectives of a communicator (modulo 4096), 'root' is kept
 * modulo 256.
 */
uint32_t tag_of (enum collective_kind what, enum slurmdl_type type, enum slurmdl_op op, long root,
                 uint32_t call);

/* Whether these are the same call of a communicator, and another collective. */
bool tag_clash (uint32_t a, uint32_t b);

/* "allreduce of f32, sum (number 5)" */
void tag_text (uint32_t tag, char *buf, size_t size);
