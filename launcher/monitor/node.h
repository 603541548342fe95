/* SPDX-License-Identifier: Apache-2.0 */
/* What a node as a whole does: memory, network, pressure. */
#pragma once

#include "launcher/monitor/series.h"

struct node_usage;

/* 'proc' and 'sys' are the roots, "/proc" and "/sys" but in tests.  Returns
 * NULL if out of memory; what cannot be read is left out.
 */
struct node_usage *node_create (const char *proc, const char *sys);
void node_destroy (struct node_usage *n);

/* Put "node/...", "net/INTERFACE/..." and "ib/DEVICE/PORT/..." */
void node_sample (struct node_usage *n, struct series *s);
