/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of an experiment by what they said last: Slurm is not asked. */
#pragma once

#include "launcher/sweep/peer.h"
#include "launcher/sweep/sweep.h"

struct worker_view {
    struct peer_info *list; /* the caller frees it */
    long n;
    long alive;
    double silence; /* of the one that gave the last sign of life */
};

/* Read the files of all workers of an experiment. */
struct worker_view workers_look (const struct sweep *s);

/* Whether it has not left and its last sign of life is within the lease. */
bool worker_is_alive (const struct sweep *s, const struct peer_info *w);

/* Seconds since its last sign of life, by the file's time: for people. */
double worker_silence (const struct sweep *s, const struct peer_info *w);

/* The trial that it trains, 0: none. */
long worker_trial (const struct sweep *s, const char *nonce);

/* Whether a worker has claimed the next attempt of an open trial. */
bool trial_is_claimed (const struct sweep *s, long trial);

/* Whether it is of this array; whether one of it was ever there. */
bool worker_is_of (const struct peer_info *w, const struct submit *a);
bool workers_begun (const struct worker_view *v, const struct submit *a);

/* The last array, if no worker of it has started yet; else NULL. */
const struct submit *workers_awaited (const struct sweep *s, const struct worker_view *v);

/* Seconds for which a running experiment has had no worker at work; NAN: one
 * is, or is awaited.
 */
double workers_idle (const struct sweep *s, const struct worker_view *v);

/* "no worker is at work: the last one ended 3m02s ago"; "" if one is. */
void workers_idle_text (const struct sweep *s, const struct worker_view *v, char *buf, size_t size);
