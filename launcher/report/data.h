/* SPDX-License-Identifier: Apache-2.0 */
/* All that a report says, and the JSON that its script draws. */
#pragma once

#include "launcher/report/curves.h"
#include "launcher/report/explain.h"
#include "launcher/report/gpu_use.h"
#include "launcher/report/model.h"
#include "launcher/report/params.h"

struct report_data {
    struct report report;
    struct report_params params;
    struct curves curves;
    struct explanation explanation;
    struct gpu_use gpus;
    long *order; /* the trials with a finite value, the best first */
    long nordered;
};

/* Read all of it.  'old': as of curves_read().  Returns -1 with 'err'.
 * data_free() in any case.
 */
int data_read (struct report_data *d,
               struct sweep *const *list,
               size_t n,
               struct rows *old,
               struct slurmdl_error *err);
void data_free (struct report_data *d);

/* doc/formats.md has the layout.  NULL: out of memory. */
json_t *data_json (const struct report_data *d);
