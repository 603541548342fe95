/* SPDX-License-Identifier: Apache-2.0 */
/* Change the state of a sweep. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Fail because of damage that checksums cannot see: events that make no sense.
 * Returns -1 with errno EBADMSG.
 */
int state_damaged (struct slurmdl_error *err, const char *what);

/* Replace a text of the state. */
void state_set_text (char **at, const char *text);

/* A segment of trial 'n' is to be trained, or has ended: s->open. */
int state_add_open (struct sweep *s, long n, struct slurmdl_error *err);
void state_remove_open (struct sweep *s, long n);

/* Note that a segment of trial N has begun (N), or ended (-N). */
int state_add_history (struct sweep *s, long what, struct slurmdl_error *err);
