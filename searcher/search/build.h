/* SPDX-License-Identifier: Apache-2.0 */
/* Plan a search, lay out its state and create it. */
#pragma once

#include "searcher/state/state.h"

/* Fill the plan of a request that was checked; the caller frees plan->bracket.
 * Returns the kind, or NULL with errno ENOMEM.
 */
const struct searcher_kind *search_plan (const struct search_request *request,
                                         struct search_plan *plan);

/* Trials of a bracket that are expected to be trained to each rung. */
void search_expect (const struct search_plan *plan, const struct bracket *b,
                    int64_t trials[RUNGS_MAX + 1]);

/* A state without the points from before, of a request that was checked but
 * for these.  NULL with errno ENOMEM.
 */
struct searcher *search_build (const struct search_request *request);

/* Lay out what may grow: 's' says what, and of how many trials and rungs; its
 * own state has 'room' bytes.  Sets the offsets in 's' and in the brackets.
 */
void search_lay_out (struct searcher *s, struct bracket *brackets, bool keeps);
void search_lay_out_own (struct searcher *s, int64_t room);

/* What is planned, if each rung promotes its share, in units of length. */
double search_work (const struct search_plan *plan);
