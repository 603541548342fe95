/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs and values that the command of a step has left. */
#pragma once

#include "launcher/flow/values.h"

/* { NAME: file } and { NAME: value }, for the caller to release; NULL with
 * 'err', the reason for people, if one that is declared is not there.
 */
json_t *flow_take_outputs (const struct flow_scope *c, struct slurmdl_error *err);
json_t *flow_take_values (const struct flow_scope *c, struct slurmdl_error *err);
