/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the trials of a method, without repeats: see searcher.h. */
#pragma once

#include <errno.h>

#include "searcher/state/state.h"

/* The event does not fit the state. */
static inline int inner_refuse (void)
{
    errno = EINVAL;
    return -1;
}

enum search_answer inner_ask (const struct searcher *s, struct search_op *op, double *x);
int inner_begin (struct searcher *s, const struct search_op *op, const double *x);
int inner_observe (struct searcher *s, long trial, int64_t length, const double *values);
int inner_exit (struct searcher *s, long trial, bool rejected);
int inner_report (struct searcher *s, long trial, int64_t length, double value);
int inner_spend (struct searcher *s, long trial, double seconds);
int inner_revive (struct searcher *s, long trial);

/* Restart the progress after more work was added. */
void inner_restart_progress (struct searcher *s);
