/* SPDX-License-Identifier: Apache-2.0 */
/* The side of a rank: tell the worker how its program fares. */
#pragma once

#include <stdbool.h>

struct heal_rank;

/* Find the worker that HEAL_VARIABLE names, and take the variable out of the
 * environment.  NULL: nobody watches.
 */
struct heal_rank *heal_rank_create (void);
void heal_rank_destroy (struct heal_rank *r);

/* To poll for what the worker says; -1: not connected. */
int heal_rank_fd (const struct heal_rank *r);

/* To be called once a second, and when the descriptor is readable: connect,
 * beat, obey.  Returns false when the program is to be killed: the worker says
 * so, or it has been out of reach for a minute, so that it has most likely
 * begun again elsewhere.
 */
bool heal_rank_serve (struct heal_rank *r);

/* The program has ended, with this status of waitpid(). */
void heal_rank_over (struct heal_rank *r, int status);
