/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer between fidelities: what short trainings say about long ones. */
#pragma once

#include "searcher/models/training_set.h"

/* As training_set_open(), for trials that are trained rung by rung: each value
 * is transferred to the highest rung that a few trials came to, by a straight
 * line from rung to rung through the trials that came to both.  What the lines
 * leave unexplained is the variance of the value: where early values say little
 * about late ones, a model hardly listens to them.
 *
 * Of very many trials those are taken that were trained longest, the best of
 * them first, and an even share of the others.
 */
int transfer_open (struct training_set *v, const struct searcher *s);
