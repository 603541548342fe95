/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of memory as Slurm writes them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of "16G", "500M", "500" (M): with K, M, G or T, and perhaps "B".  -1 if
 * it is no such amount, 0 for "0" (all of a node).
 */
int64_t slurm_bytes (const char *text);

/* The same back, in the largest unit that fits, of whole M: "16G", "1536M". */
void slurm_bytes_text (char *buf, size_t size, int64_t bytes);
