/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts, results and requests of an experiment, from its decision log. */
#ifndef LAUNCHER_REPORT_ATTEMPTS_H
#define LAUNCHER_REPORT_ATTEMPTS_H

#include "launcher/report/model.h"

/* Add those of r->sweeps[i].  Returns -1 with 'err'. */
int attempts_read (struct report *r, size_t i, struct slurmdl_error *err);

#endif
