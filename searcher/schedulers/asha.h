/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous successive halving: what its variants share. */
#pragma once

#include "searcher/state/state.h"

const char *asha_check (const struct search_request *request, int *param);
void asha_plan (const struct search_request *request, struct search_plan *plan);

/* The same for several brackets, at most RUNGS_MAX. */
const char *adaptive_check (const struct search_request *request, int *param);
void adaptive_plan (const struct search_request *request, struct search_plan *plan);

void asha_ended (struct searcher *s, long trial, double value);

/* Fill in the ladder of the plan.  Returns its height before rungs were merged. */
int asha_ladder (struct search_plan *plan, const struct search_config *config);

/* Remove all results of a trial. */
void asha_forget (struct searcher *s, long trial);

void asha_extended (struct searcher *s, int top);

/* Move the best share of a rung to the top and promote those of it that wait,
 * the best first: in the other order the next rung would promote more of them.
 */
void asha_promote_share (struct searcher *s, struct bracket *b, int rung);

/* Promote the best trial of a rung, even above the top, if it waits there. */
bool asha_promote_best (struct searcher *s, struct bracket *b, int rung);

/* Promote the trial of a result if it still waits at its rung. */
bool asha_promote (struct searcher *s, long trial, int rung);
