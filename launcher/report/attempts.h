/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts, results and requests of an experiment, from its decision log. */
#pragma once

#include "launcher/report/model.h"

/* Add those of r->sweeps[i].  Returns -1 with 'err'. */
int attempts_read (struct report *r, size_t i, struct slurmdl_error *err);
