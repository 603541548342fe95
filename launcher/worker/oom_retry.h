/* SPDX-License-Identifier: Apache-2.0 */
/* With what an attempt that ran out of memory is tried again. */
#pragma once

#include "launcher/worker/segment.h"
#include "launcher/worker/services.h"

/* If the attempt of 'trial' in 'r' failed for want of memory and there is
 * something to change: fill r->retry, say so in the verdict, and let the
 * failure not count.  oom_retry_free() when the report has been published.
 */
void oom_retry_decide (const struct worker *w, long trial, struct segment_report *r);
void oom_retry_free (struct segment_report *r);
