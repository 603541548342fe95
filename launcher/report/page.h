/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a report: one HTML file that needs no other. */
#pragma once

#include "launcher/report/data.h"

/* Write it; 'f' tells of errors.  Returns -1 with 'err' (ENOTSUP: dl was built
 * without D3).
 */
int page_put (FILE *f, const struct report_data *d, struct slurmdl_error *err);
