/* SPDX-License-Identifier: Apache-2.0 */
/* The searcher "custom": a program of the user chooses the points. */
#pragma once

#include "launcher/worker/services.h"

/* Ask the program for the point of the next trial; it is started if need be,
 * and told what is new in the sweep.  Meanwhile gives signs of life and reads
 * the log; gives up (SEARCH_WAIT) when the worker is to stop.
 *
 * Returns an enum search_answer, or -1.
 */
int custom_ask (struct worker *w, double *x, struct slurmdl_error *err);
/* Whether somebody has begun that point since the program was asked, so that
 * it did not know.
 */
bool custom_is_taken (const struct worker *w, const double *x);
void custom_close (struct worker *w);
