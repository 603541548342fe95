/* SPDX-License-Identifier: Apache-2.0 */
/* Print what the ranks of a planned step would get. */
#pragma once

#include <jansson.h>

#include "launcher/env/plan.h"

/* Print all ranks as tables, or the variables of one as NAME=VALUE lines, or
 * return JSON that the caller owns.  -1 or NULL with errno.
 */
int plan_print (struct env_plan *p, struct slurmdl_error *err);
int plan_print_rank (struct env_plan *p, long rank, struct slurmdl_error *err);
json_t *plan_json (struct env_plan *p, struct slurmdl_error *err);
