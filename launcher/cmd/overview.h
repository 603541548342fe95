/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of an experiment beside its trials. */
#pragma once

#include "launcher/sweep/sweep.h"

/* What is known of the experiment beside its trials. */
void print_overview (const struct sweep *s);

/* Seconds since a worker of the sweep, which should have some, gave a sign of
 * life; NaN: they are at work, or none is wanted.
 */
double sweep_idle (const struct sweep *s);
