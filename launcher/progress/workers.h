/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of an experiment according to their own files, without asking Slurm. */
#pragma once

#include "launcher/sweep/peer.h"
#include "launcher/sweep/sweep.h"

struct worker_view {
    struct peer_info *list; /* the caller frees it */
    long n;
    long alive;
    double silence; /* seconds since the last heartbeat of any worker */
};

/* Read the files of all workers of an experiment.  The caller frees the list. */
struct worker_view workers_look (const struct sweep *s);

/* Return whether a worker has not left and its lease has not expired. */
bool worker_is_alive (const struct sweep *s, const struct peer_info *w);

/* Return the seconds since a worker's last heartbeat.  The value compares a file's
 * time with the local clock, so use it for display only.
 */
double worker_silence (const struct sweep *s, const struct peer_info *w);

/* Return the number of the trial that a worker trains, or 0. */
long worker_trial (const struct sweep *s, const char *nonce);

/* Return whether a worker has claimed the next attempt of an open trial. */
bool trial_is_claimed (const struct sweep *s, long trial);

/* Return whether a worker belongs to this job array, and whether any worker of the
 * array has ever started.
 */
bool worker_is_of (const struct peer_info *w, const struct submit *a);
bool workers_begun (const struct worker_view *v, const struct submit *a);

/* Return the last submitted array if none of its workers has started, else NULL. */
const struct submit *workers_awaited (const struct sweep *s, const struct worker_view *v);

/* Return for how many seconds a running experiment has had no active worker, or
 * NaN if one is active or expected.
 */
double workers_idle (const struct sweep *s, const struct worker_view *v);

/* Format workers_idle() as a sentence, "" if it is NaN. */
void workers_idle_text (const struct sweep *s, const struct worker_view *v, char *buf, size_t size);
