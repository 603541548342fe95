/* SPDX-License-Identifier: Apache-2.0 */
/* Check what Slurm's configuration says of the end of jobs. */
#ifndef LAUNCHER_DOCTOR_JOBS_H
#define LAUNCHER_DOCTOR_JOBS_H

#include "launcher/doctor/site.h"

void doctor_kill (struct site *s);
void doctor_preemption (struct site *s);
void doctor_requeue (struct site *s);
void doctor_unkillable (struct site *s);
void doctor_limits (struct site *s);

#endif
