/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a task. */
#ifndef SPANK_VARIABLE_H
#define SPANK_VARIABLE_H

#include <slurm/spank.h>

/* Copy its value; "" and -1 if it is not set, or does not fit. */
int variable_text (spank_t sp, const char *name, char *buf, int size);

/* Its value, -1 if it is not set or no number. */
long variable_number (spank_t sp, const char *name);

#endif
