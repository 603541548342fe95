/* SPDX-License-Identifier: Apache-2.0 */
/* Workers as seen by each other: identity, signs of life, claims. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"

/* A worker puts workers/NONCE once, with who it is, and from then on
 * rewrites the counter at the end of that file.  The counter is a hint only:
 * an observer that sees the same number for the length of the lease, by its
 * own monotonic clock, takes the worker for dead.  A wrong guess wastes work
 * and harms nothing, because the decision log fences attempts.
 */
struct peer_membership;

struct peer_self {
    char slot[64];  /* "ARRAYJOB_TASK"; unique to one place in one job */
    char nonce[33]; /* of this process */
};

/* Whether a text is the name of a worker's file. */
bool peer_is_nonce (const char *text);

/* Register this process in the experiment 'dir'.  NULL on failure. */
struct peer_membership *peer_create (const char *dir, const char *slot, struct slurmdl_error *err);
/* Says good-bye first, so that nobody waits for a lease. */
void peer_destroy (struct peer_membership *self);

/* What this process is registered as; good until peer_destroy(). */
const struct peer_self *peer_self (const struct peer_membership *self);

/* Give a sign of life. */
int peer_beat (struct peer_membership *self, struct slurmdl_error *err);

/* Claim attempt 'attempt' of 'trial' for this worker, for a segment to
 * 'length'.  Returns 0 if it is ours, 1 if another worker has it, -1 on
 * failure.
 */
int peer_claim (struct peer_membership *self, long trial, long attempt, int64_t length,
                struct slurmdl_error *err);

/* The nonce of the worker that has claimed it, "" if it cannot be read, NULL
 * if nobody has.  Good until the next call.
 */
const char *peer_claimant (struct peer_membership *self, long trial, long attempt);

/* Whether the worker is to be taken for dead. */
bool peer_dead (struct peer_membership *self, const char *nonce, int64_t lease);

/* Whether the worker, of which peer_dead() has been asked, was at this one's
 * slot before.
 */
bool peer_preceded (struct peer_membership *self, const char *nonce);

/* Seconds since this process has known that the worker is dead, of which
 * peer_dead() said it.
 */
double peer_dead_since (const struct peer_membership *self, const char *nonce);

/* The slot of a worker, as it said itself.  -1: it cannot be read. */
int peer_slot (const struct peer_membership *self, const char *nonce, char *slot, size_t size);

/* ---- all of them, for people ---- */

struct peer_info {
    char nonce[33];
    char slot[64];
    char host[65];
    char counter[24];
    bool gone; /* says so, or was a process of this machine and is no more */
    bool here; /* is a process of this machine */
};

/* The workers that were ever registered in the experiment 'dir'; the caller
 * frees the list.  Returns how many, -1 on failure.
 */
long peer_list (const char *dir, struct peer_info **list, struct slurmdl_error *err);

/* How many may be alive: of those on other machines, after a look at their
 * counters for 'seconds'; 0 takes them at their word.
 */
long peer_count (const char *dir, double seconds, struct slurmdl_error *err);
