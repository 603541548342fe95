/* SPDX-License-Identifier: Apache-2.0 */
/* The rank's side: report to the worker how the rank's program is doing. */
#pragma once

#include <stdbool.h>

struct heal_rank;

/* Find the worker that HEAL_VARIABLE names, and remove the variable from the environment.  Returns
 * NULL if no worker watches this rank, or if its notice cannot be read.
 */
struct heal_rank *heal_rank_create (void);
void heal_rank_destroy (struct heal_rank *r);

/* The descriptor to poll for messages of the worker; -1: not connected. */
int heal_rank_fd (const struct heal_rank *r);

/* Connect if necessary, obey the worker, and send a heartbeat if one is due.  Call it once a
 * second, and whenever the descriptor is readable.
 *
 * Returns false if the caller must kill the program: the worker requested it, or was out of reach
 * for a minute, so that the attempt has most likely been restarted elsewhere.
 */
bool heal_rank_serve (struct heal_rank *r);

/* Report that the program has ended, with this status of waitpid(). */
void heal_rank_over (struct heal_rank *r, int status);
