/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of the command of a step. */
#pragma once

#include "launcher/flow/values.h"

/* Add NAME=VALUE of all that the command of an attempt gets to a NULL-ended
 * list.  Returns -1 with 'err'.
 */
int flow_variables (const struct flow_scope *c, char ***list, struct slurmdl_error *err);
