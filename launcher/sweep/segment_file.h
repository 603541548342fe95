/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a full block of the decision log in one file, to be fast. */
#pragma once

#include "launcher/sweep/event.h"

struct pack;

/* Put a file with these events, if there is none.  That it cannot be put is
 * no harm: the entries are there.
 */
void pack_publish (const char *path, const struct packed *events);

/* Open a file of events.  Returns NULL if there is none, it is damaged, or
 * another version of dl or another kind of machine has written it.
 */
struct pack *pack_open (const char *path);
void pack_close (struct pack *p);

/* As event_unpack(). */
int pack_next (struct pack *p, struct event *e);
