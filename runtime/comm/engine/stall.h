/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 finds out who keeps a tensor waiting. */
#pragma once

#include "runtime/comm/engine/coordinator.h"

/* A rank says that a tensor of its own has waited for too long; rank 0 asks
 * all ranks whether they have submitted it; those that say no, or nothing
 * within a second, are named.
 */
struct stall;

struct stall *stall_create (long size, host_f host, const void *arg);
void stall_destroy (struct stall *s); /* NULL is accepted */

/* UP_STALL came: DOWN_WHO is written for names that are not asked for yet. */
void stall_report (struct stall *s, const char *name, double age, uint64_t others, double now,
                   struct packet *down);

/* "\"w\" and 2 more have waited 12 s for ", of a size > 0; its length. */
size_t stall_waits (const char *name, double age, uint64_t others, char *text, size_t size);

/* UP_HERE came. */
void stall_answer (struct stall *s, long rank, const char *name, bool here);

/* Seconds until stall_text() has something, -1: never. */
double stall_wait_seconds (const struct stall *s, double now);

/* Whether there is something to tell; '*age' of the oldest in seconds. */
bool stall_text (struct stall *s, double now, char *text, size_t size, double *age);
