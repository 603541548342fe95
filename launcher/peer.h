/* SPDX-License-Identifier: Apache-2.0 */
/* Workers as seen by each other: identity, signs of life, claims. */
#ifndef LAUNCHER_PEER_H
#define LAUNCHER_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/slurmdl.h"

/* A worker puts workers/NONCE once, with who it is, and from then on
 * rewrites the counter at the end of that file.  The counter is a hint only:
 * an observer that sees the same number for the length of the lease, by its
 * own monotonic clock, takes the worker for dead.  A wrong guess wastes work
 * and harms nothing, because the decision log fences attempts.
 */
struct peer;

struct peer_self {
    char slot[64];  /* "ARRAYJOB_TASK"; unique to one place in one job */
    char nonce[33]; /* of this process */
};

/* Register this process in the experiment 'dir'.  NULL on failure. */
struct peer *
peer_create (const char *dir, const char *slot, struct slurmdl_error *err);
/* Says good-bye first, so that nobody waits for a lease. */
void peer_destroy (struct peer *self);

const struct peer_self *peer_self (const struct peer *self);

/* Give a sign of life. */
int peer_beat (struct peer *self, struct slurmdl_error *err);

/* Claim attempt 'attempt' of 'trial' for this worker, for a segment to
 * 'length'.  Returns 0 if it is ours, 1 if another worker has it, -1 on
 * failure.
 */
int peer_claim (struct peer *self,
                long trial,
                long attempt,
                int64_t length,
                struct slurmdl_error *err);

/* Whether a worker has claimed it, without doing so. */
bool peer_claimed (struct peer *self, long trial, long attempt);

/* Whether the worker that has claimed the attempt is to be taken for dead. */
bool peer_claim_dead (struct peer *self,
                      long trial,
                      long attempt,
                      int64_t lease);

/* Seconds on the monotonic clock. */
double monotonic (void);

#endif
