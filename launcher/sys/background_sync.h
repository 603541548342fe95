/* SPDX-License-Identifier: Apache-2.0 */
/* Sync a folder by a thread of its own, while the caller does something else.
 */
#pragma once

struct background_sync;

/* NULL: no memory, or no thread. */
struct background_sync *background_sync_create (void);

/* Waits for what was begun.  NULL is accepted. */
void background_sync_destroy (struct background_sync *s);

/* Begin to sync the open folder 'fd'; one at a time. */
void background_sync_begin (struct background_sync *s, int fd);

/* Wait until it is done: 0, or -1 with errno. */
int background_sync_end (struct background_sync *s);
