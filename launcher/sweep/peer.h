/* SPDX-License-Identifier: Apache-2.0 */
/* How workers see each other: registration, heartbeats, claims. */
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

/* Whether 'text' has the form of a nonce, which is also the name of a worker's file. */
bool peer_is_nonce (const char *text);

/* Register this process in the experiment 'dir'.  Returns NULL with 'err'. */
struct peer_membership *peer_create (const char *dir, const char *slot, struct slurmdl_error *err);
/* First marks the worker as gone, so that no peer has to wait for the lease. */
void peer_destroy (struct peer_membership *self);

/* The slot and nonce of this process; valid until peer_destroy(). */
const struct peer_self *peer_self (const struct peer_membership *self);

/* Write a heartbeat; -1 with 'err'. */
int peer_beat (struct peer_membership *self, struct slurmdl_error *err);

enum claimed {
    CLAIM_FAILED = -1,
    CLAIM_OURS,
    CLAIM_TAKEN, /* another worker has it */
};

/* Claim an attempt of 'trial' for this worker, in order to train a segment up to 'length'. */
enum claimed peer_claim (struct peer_membership *self, long trial, long attempt, int64_t length,
                         struct slurmdl_error *err);

/* The nonce of the worker that claimed an attempt; "" if the claim cannot be read; NULL if nobody
 * claimed it.  Valid until the next call.
 */
const char *peer_claimant (struct peer_membership *self, long trial, long attempt);

/* Whether a worker counts as dead, with a lease in seconds. */
bool peer_dead (struct peer_membership *self, const char *nonce, int64_t lease);

/* Whether a worker that was passed to peer_dead() had the slot of this process before. */
bool peer_preceded (struct peer_membership *self, const char *nonce);

/* Whether such a worker has the slot of this process now, because Slurm requeued the job of this
 * process and has started it again, perhaps on another host.
 */
bool peer_follows (struct peer_membership *self, const char *nonce);

/* Seconds since peer_dead() first reported the worker as dead to this process. */
double peer_dead_since (const struct peer_membership *self, const char *nonce);

/* Read the slot that a worker registered; -1 if it cannot be read. */
int peer_slot (const struct peer_membership *self, const char *nonce, char *slot, size_t size);

/* ---- all workers, for people ---- */

struct peer_info {
    char nonce[33];
    char slot[64];
    char host[65];
    char counter[24];
    double begin, end;  /* when it began and last wrote, in s since the epoch on its clock; 0: not
                           known */
    long long requeues; /* how often its job had been requeued when it began */
    bool gone;          /* it said so, or it was a process of this machine that no longer exists */
    bool here;          /* it is a process of this machine */
};

/* List all workers that ever registered in the experiment 'dir', and return how many there are, or
 * -1 with 'err'.  The caller frees the list.
 */
long peer_list (const char *dir, struct peer_info **list, struct slurmdl_error *err);

/* Count the workers that may be alive, or return -1 with 'err'.  A worker on another machine counts
 * if its counter changes while this function waits for 'seconds'; with 0, it counts unless it said
 * that it is gone.
 */
long peer_count (const char *dir, double seconds, struct slurmdl_error *err);
