/* SPDX-License-Identifier: Apache-2.0 */
/* Check what Slurm's configuration says of the end of jobs. */
#pragma once

#include "launcher/node/doctor_site.h"

/* Checks of how jobs end, rows of the table in doctor.c; each adds its findings
 * to 's': KillWait, GraceTime of a preemption, JobRequeue,
 * UnkillableStepTimeout, and limits that jobs have from the shell of their
 * user.
 */
void doctor_kill (struct site *s);
void doctor_preemption (struct site *s);
void doctor_requeue (struct site *s);
void doctor_unkillable (struct site *s);
void doctor_limits (struct site *s);
