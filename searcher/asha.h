/* SPDX-License-Identifier: Apache-2.0 */
/* What methods that promote share with asha. */
#ifndef SEARCHER_ASHA_H
#define SEARCHER_ASHA_H

#include "searcher/state.h"

const char *asha_check (const struct request *request, int *param);
void asha_plan (const struct request *request, struct plan *plan);
void asha_ended (struct searcher *s, long trial, double value);

/* Fill the plan's ladder.  Returns its height before rungs were merged. */
int asha_ladder (struct plan *plan, const struct search_config *config);

/* Give the best trial of the highest rung that has one its next segment, if
 * the bracket would end without one that was trained in full.
 */
void asha_promote_last (struct searcher *s, struct bracket *b);

/* Promote the trial of a result, if it still waits in its rung. */
bool asha_promote (struct searcher *s, long trial, int rung);

#endif
