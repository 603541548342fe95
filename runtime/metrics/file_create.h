/* SPDX-License-Identifier: Apache-2.0 */
/* A metrics file itself: for file.c and what replaces the file. */
#pragma once

#include "runtime/metrics/file.h"

/* The room of a column is multiplied by this when it is used up: it is a hole
 * in the file.
 */
enum { ROOM_GROWTH = 8 };

/* ---- file_create.c ---- */

/* Make a file of its room under 'name' in its folder, open as f->fd. */
int metrics_file_make (const char *name, struct metrics_file *f);

/* Give the synced file 'tmp' the first name that is free. */
int metrics_file_first_name (struct metrics_file *f, const char *tmp);

/* It has a name, that is not synced: note it. */
void metrics_file_is_named (struct metrics_file *f);

/* Its name in its folder. */
const char *metrics_file_name (const struct metrics_file *f);

/* Write records after those that are there; say how many there are; or both:
 * nobody sees a record before all are written.
 */
int metrics_file_put (struct metrics_file *f, const struct column *c, const void *records,
                      uint64_t n);
int metrics_file_set_length (struct metrics_file *f, struct column *c, uint64_t n);
int metrics_file_append (struct metrics_file *f, struct column *c, const void *records, uint64_t n);

/* ---- file_copy.c ---- */

/* The rooms of the columns as they are. */
void metrics_file_rooms (const struct metrics_file *f, uint64_t *rooms);

/* Have a file with these rooms in the place of the present one, with 'n' rows
 * in the place of all, or all of them if 'rows' is NULL.  On failure the file
 * is as it was.
 */
int metrics_file_replace (struct metrics_file *f, const uint64_t *rooms, const struct row *rows,
                          uint64_t n);

/* The parts of it: copy the records that the new file lacks, and give it the
 * name.
 */
int metrics_file_copy_columns (const struct metrics_file *old, struct metrics_file *f,
                               const struct row *rows, uint64_t n);
int metrics_file_give_name (struct metrics_file *f, const char *tmp);

/* ---- file_unsynced.c: what was written since the last sync ---- */

/* If the sync fails, the client of a network file system may have thrown it
 * away: a read gives zeros, and the next sync succeeds.  So it stays in memory,
 * up to 1 MiB of a column, and is written into the file that takes the place of
 * the suspect one.
 */
void metrics_file_keep_new (struct metrics_file *f);
void metrics_file_keep_end (struct metrics_file *f);

/* These records are about to be written behind those that are there. */
void metrics_file_keep (struct metrics_file *f, const struct column *c, const void *records,
                        uint64_t n);

/* The number of the column's first record that is kept, in '*data'; all that
 * follow are, too.  Where none is: the number of its records.
 */
uint64_t metrics_file_kept (const struct metrics_file *f, const struct column *c,
                            const char **data);

/* All of the file is on stable storage. */
void metrics_file_kept_synced (struct metrics_file *f);

/* ---- file_thread.c: what another thread does, one thing at a time ---- */

/* Whether a larger file is to be made; make it.  A failure does no harm. */
bool metrics_file_needs_room (const struct metrics_file *f);
void metrics_file_begin_growth (struct metrics_file *f, atomic_uint *bell);

/* -1: it is to be done by the caller. */
int metrics_file_begin_sync (struct metrics_file *f, atomic_uint *bell);

/* Wait until it has ended: 0, or -1 with the errno of a sync. */
int metrics_file_end_work (struct metrics_file *f);
