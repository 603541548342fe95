/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 finds out which ranks hold up a tensor. */
#pragma once

#include "runtime/comm/engine/coordinator.h"

/* A rank reports that one of its tensors has waited for too long.  Rank 0 asks all ranks whether
 * they have submitted it, and names those that answer no or do not answer within a second.
 */
struct stall;

struct stall *stall_create (long size, host_f host, const void *arg);
void stall_destroy (struct stall *s); /* NULL is accepted */

/* Process UP_STALL: write DOWN_WHO for names that were not asked for yet. */
void stall_report (struct stall *s, const char *name, double age, uint64_t others, double now,
                   struct packet *down);

/* Write "\"w\" and 2 more have waited 12 s for "; 'size' > 0.  Returns its length. */
size_t stall_waits (const char *name, double age, uint64_t others, char *text, size_t size);

/* Process UP_HERE. */
void stall_answer (struct stall *s, long rank, const char *name, bool here);

/* Seconds until stall_text() has something to report, -1: never. */
double stall_wait_seconds (const struct stall *s, double now);

/* Write a report, if there is one; sets '*age' to that of the oldest tensor in seconds. */
bool stall_text (struct stall *s, double now, char *text, size_t size, double *age);
