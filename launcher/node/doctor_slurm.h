/* SPDX-License-Identifier: Apache-2.0 */
/* Check Slurm's configuration. */
#pragma once

#include "launcher/node/doctor_site.h"

/* Checks of Slurm's configuration, rows of the table in doctor.c by the name of
 * the parameter; each adds its findings to 's'.  doctor_slurm(): whether
 * slurmctld answers, and srun is of its release; doctor_ports(): the range
 * MpiParams=ports; doctor_values(): values that no site wants.
 */
void doctor_slurm (struct site *s);
void doctor_ports (struct site *s);
void doctor_srun_ports (struct site *s);
void doctor_values (struct site *s);
void doctor_task_plugin (struct site *s);
void doctor_proctrack (struct site *s);
void doctor_cgroup (struct site *s);
void doctor_select (struct site *s);
void doctor_gres (struct site *s);
void doctor_tres (struct site *s);
void doctor_array (struct site *s);
void doctor_prolog (struct site *s);
void doctor_gather (struct site *s);
void doctor_health (struct site *s);
