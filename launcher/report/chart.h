/* SPDX-License-Identifier: Apache-2.0 */
/* The main charts as SVG, for readers without scripts. */
#pragma once

#include <stdio.h>

#include "launcher/report/data.h"

/* Write the values of all trials in their order, and the learning curves. */
void chart_history_put (FILE *f, const struct report_data *d);
void chart_curves_put (FILE *f, const struct report_data *d);
