/* SPDX-License-Identifier: Apache-2.0 */
/* fsync a folder in a thread while the caller does something else. */
#pragma once

struct background_sync;

/* Returns NULL if no thread can be created. */
struct background_sync *background_sync_create (void);

/* Wait for a sync that has begun, and free 's', which may be NULL. */
void background_sync_destroy (struct background_sync *s);

/* Start to sync the open folder 'fd'.  End each sync before you start the next. */
void background_sync_begin (struct background_sync *s, int fd);

/* Wait for the sync.  Returns its result: 0, or -1 with errno. */
int background_sync_end (struct background_sync *s);
