/* SPDX-License-Identifier: Apache-2.0 */
/* Check memory, network, kernel log and AMD GPUs of a node. */
#pragma once

#include "launcher/nodecheck/output.h"

/* Each adds findings and facts of one part of the node: AMD GPUs, messages of
 * the kernel, interfaces of the network, memory, and its bandwidth.
 */
void check_amd (const struct check_place *p);
void check_kernel (const struct check_place *p);
void check_network (const struct check_place *p);
void check_memory (const struct check_place *p);
void check_bandwidth (const struct check_place *p);
