/* SPDX-License-Identifier: Apache-2.0 */
/* Workers as seen by each other: identity, heartbeats, claims. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"

/* A worker creates workers/NONCE once, with its identity, and from then on rewrites the counter at
 * the end of that file as its heartbeat.  An observer that sees the same number for the length of
 * the lease, by its own monotonic clock, takes the worker for dead.  A wrong guess wastes work but
 * does no harm, because the decision log fences attempts.
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
/* Marks the worker as gone first, so that nobody waits for the lease. */
void peer_destroy (struct peer_membership *self);

/* How this process is registered; valid until peer_destroy(). */
const struct peer_self *peer_self (const struct peer_membership *self);

/* Write a heartbeat. */
int peer_beat (struct peer_membership *self, struct slurmdl_error *err);

enum claimed {
    CLAIM_FAILED = -1,
    CLAIM_OURS,
    CLAIM_TAKEN, /* another worker has it */
};

/* Claim attempt 'attempt' of 'trial' for this worker, for a segment to 'length'. */
enum claimed peer_claim (struct peer_membership *self, long trial, long attempt, int64_t length,
                         struct slurmdl_error *err);

/* The nonce of the worker that claimed it, "" if it cannot be read, NULL if nobody did.  Valid
 * until the next call.
 */
const char *peer_claimant (struct peer_membership *self, long trial, long attempt);

/* Whether the worker counts as dead. */
bool peer_dead (struct peer_membership *self, const char *nonce, int64_t lease);

/* Whether the worker, which peer_dead() was asked about, had this one's slot before. */
bool peer_preceded (struct peer_membership *self, const char *nonce);

/* Seconds since peer_dead() first told this process that the worker is dead. */
double peer_dead_since (const struct peer_membership *self, const char *nonce);

/* The slot that a worker registered.  -1: it cannot be read. */
int peer_slot (const struct peer_membership *self, const char *nonce, char *slot, size_t size);

/* ---- all workers, for people ---- */

struct peer_info {
    char nonce[33];
    char slot[64];
    char host[65];
    char counter[24];
    bool gone; /* it says so, or was a process of this machine that no longer exists */
    bool here; /* it is a process of this machine */
};

/* All workers ever registered in the experiment 'dir'; the caller frees the list.  Returns how
 * many, -1 on failure.
 */
long peer_list (const char *dir, struct peer_info **list, struct slurmdl_error *err);

/* How many may be alive.  Workers on other machines count if their counters change within
 * 'seconds', or, if that is 0, unless they say they are gone.
 */
long peer_count (const char *dir, double seconds, struct slurmdl_error *err);
