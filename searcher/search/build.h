/* SPDX-License-Identifier: Apache-2.0 */
/* Plan a search, lay out its state and create it. */
#pragma once

#include "searcher/state/state.h"

/* Fill in the plan of a checked request; the caller frees plan->bracket.
 * Returns the kind, or NULL with errno ENOMEM.
 */
const struct searcher_kind *search_plan (const struct search_request *request,
                                         struct search_plan *plan);

/* Compute how many trials of a bracket are expected at each rung. */
void search_expect (const struct search_plan *plan, const struct bracket *b,
                    int64_t trials[RUNGS_MAX + 1]);

/* Build a state without the points of an earlier search, for a request that was
 * checked except for these.  Returns NULL with errno ENOMEM.
 */
struct searcher *search_build (const struct search_request *request);

/* Lay out what may grow, for the numbers of trials and rungs in 's'; the state
 * of its own that 's' has takes 'room' bytes.  Sets the offsets in 's' and in
 * the brackets.
 */
void search_lay_out (struct searcher *s, struct bracket *brackets, bool keeps);
void search_lay_out_own (struct searcher *s, int64_t room);

/* Planned work if each rung promotes its share, in units of length. */
double search_work (const struct search_plan *plan);
