/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer between fidelities: what short trainings tell about long ones. */
#pragma once

#include "searcher/models/training_set.h"

/* As training_set_open(), for trials that are trained rung by rung: each value
 * is extrapolated to the highest rung that a few trials have reached, by a
 * straight line from each rung to the next, fitted to the trials that have
 * reached both.  The variance that the lines do not explain becomes the
 * variance of the value, so that a model almost ignores early values that
 * predict little.
 *
 * If there are too many trials, the ones trained longest are used, the best of
 * them first, and an even share of the others.
 */
int transfer_open (struct training_set *v, const struct searcher *s);
