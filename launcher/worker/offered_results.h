/* SPDX-License-Identifier: Apache-2.0 */
/* Results that their workers could not put, for whoever puts the next entry. */
#pragma once

#include "launcher/sweep/event.h"
#include "launcher/worker/services.h"

/* Each entry has one winner.  Where many results come at once, who lost the
 * race leaves its result in workers/NONCE.offer, and the next winner puts
 * all of them, and what their workers do next, into its entry.  An offer is no
 * part of the state: nothing is lost, or doubled, if it is not seen, seen too
 * late or left behind; its checksum says whether it is complete.
 */
enum { OFFERS_MAX = 15 };

struct offer {
    char nonce[33];      /* of the worker that has the attempt */
    int64_t length;      /* at most so long a segment it would begin next */
    struct event result; /* its texts are good until offers_free() */
    json_t *json;
};

struct offers {
    struct offer list[OFFERS_MAX];
    size_t n;
};

/* The results of other workers that the log would take now, each trial once,
 * but not 'trial'; metrics are on the disk.
 */
void offers_collect (struct worker *w, long trial, struct offers *o);
void offers_free (struct offers *o);

/* Offer the first event, a result, of an entry that came too late; the second
 * is what the worker would have begun.  Not being able to is no failure.
 */
void offer_put (struct worker *w, const struct event *events);

/* It is in the log, or is no more to be. */
void offer_withdraw (struct worker *w);
