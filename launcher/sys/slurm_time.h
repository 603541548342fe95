/* SPDX-License-Identifier: Apache-2.0 */
/* Time limits as Slurm writes them. */
#pragma once

/* Seconds of a time as Slurm writes it, "1-02:03:04"; 0: none, or no limit. */
double slurm_seconds (const char *text);
