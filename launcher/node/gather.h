/* SPDX-License-Identifier: Apache-2.0 */
/* The collector: it judges what the ranks of a step report. */
#pragma once

#include "launcher/node/listen.h"

/* The file of struct gather, in the folder of an attempt: a name a line. */
#define GATHER_NOTES "bad-nodes"

/* Collect, print to standard error, answer.  Returns an enum gather_status: of
 * the step.
 */
int gather_serve (struct gather *g);
