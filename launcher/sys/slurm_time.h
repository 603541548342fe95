/* SPDX-License-Identifier: Apache-2.0 */
/* Time limits as Slurm writes them. */
#ifndef LAUNCHER_SYS_SLURM_TIME_H
#define LAUNCHER_SYS_SLURM_TIME_H

/* Seconds of a time as Slurm writes it, "1-02:03:04"; 0: none, or no limit. */
double slurm_seconds (const char *text);

#endif
