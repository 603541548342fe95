/* SPDX-License-Identifier: Apache-2.0 */
/* The trials that wait for their next segment: a first-in, first-out ring. */
#pragma once

#include "searcher/state/state.h"

/* Number 'i' of the trials that are due, the first promoted first. */
int32_t *due_trial (const struct searcher *s, int64_t i);

/* Schedule the next segment of a paused trial: to the next rung, ... */
void due_promote (struct searcher *s, long trial);

/* ... or to the current length of full trainings. */
void due_go_on (struct searcher *s, long trial);

/* Undo due_promote(): the trial waits at the rung below again. */
void due_demote (struct searcher *s, long trial);

/* Remove a trial that is due from the ring. */
void due_remove (struct searcher *s, long trial);
