/* SPDX-License-Identifier: Apache-2.0 */
/* The trials that wait for their next segment: a ring, first come first out. */
#pragma once

#include "searcher/state/state.h"

/* Number 'i' of the trials that are due, the first promoted first. */
int32_t *due_trial (const struct searcher *s, int64_t i);

/* Give a trial that is paused its next segment: to the next rung, ... */
void due_promote (struct searcher *s, long trial);

/* ... or to the length that full trainings have now. */
void due_go_on (struct searcher *s, long trial);

/* Undo due_promote(): it waits in the rung below. */
void due_demote (struct searcher *s, long trial);

/* Take a trial that is due out of the ring. */
void due_remove (struct searcher *s, long trial);
