/* SPDX-License-Identifier: Apache-2.0 */
/* Gather what a report is of, from the folders of its experiments. */
#pragma once

#include "launcher/report/model.h"

/* The experiments must outlive the report; 'list' and what it leads to stay
 * the caller's.  Returns -1 with 'err'.  report_free() in any case.
 */
int report_fill (struct report *r, struct sweep *const *list, size_t n, struct slurmdl_error *err);

/* Look what is kept of each trial's checkpoints, in all attempts' folders. */
void report_fill_files (struct report *r);
