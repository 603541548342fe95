/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a report's page that need no script. */
#pragma once

#include <stdio.h>

#include "launcher/report/data.h"

/* Best value, cost, how trials ended, what stands out. */
void summary_put (FILE *f, const struct report_data *d);
/* What stands out, in sentences. */
void notes_put (FILE *f, const struct report_data *d);
/* The rows of the best trials. */
void table_put (FILE *f, const struct report_data *d);
void comparison_put (FILE *f, const struct report_data *d);
void checkpoints_put (FILE *f, const struct report_data *d);
/* Texts and images that the best trials have logged. */
void media_put (FILE *f, const struct report_data *d);
void gpus_put (FILE *f, const struct report_data *d);
void provenance_put (FILE *f, const struct report_data *d);

/* "digits-0001" or, of several experiments, "digits-0001/17" */
void trial_name (const struct report *r, long trial, char *buf, size_t size);
