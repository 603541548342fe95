/* SPDX-License-Identifier: Apache-2.0 */
/* A metrics file itself: for journal.c and what replaces the file. */
#ifndef RUNTIME_METRICS_JOURNAL_FILE_H
#define RUNTIME_METRICS_JOURNAL_FILE_H

#include "runtime/metrics/journal.h"

/* The room of a column is multiplied by this when it is used up: it is a hole
 * in the file.
 */
enum { JOURNAL_GROWTH = 8 };

/* ---- journal_file.c ---- */

/* Make a file of the journal's room under 'name' in its folder, open as j->fd.
 */
int journal_make_file (const char *name, struct journal *j);

/* Give the synced file 'tmp' the first name that is free. */
int journal_first_name (struct journal *j, const char *tmp);

/* Its name in its folder. */
const char *journal_name (const struct journal *j);

/* Write records after those that are there; say how many there are; or both:
 * nobody sees a record before all are written.
 */
int journal_put (struct journal *j,
                 const struct column *c,
                 const void *records,
                 uint64_t n);
int journal_set_length (struct journal *j, struct column *c, uint64_t n);
int journal_append (struct journal *j,
                    struct column *c,
                    const void *records,
                    uint64_t n);

/* ---- journal_copy.c ---- */

/* The rooms of the columns as they are. */
void journal_rooms (const struct journal *j, uint64_t *rooms);

/* Have a file with these rooms in the place of the present one, with 'n' rows
 * in the place of all, or all of them if 'rows' is NULL.  On failure the file
 * is as it was.
 */
int journal_replace (struct journal *j,
                     const uint64_t *rooms,
                     const struct row *rows,
                     uint64_t n);

/* The parts of it: copy the records that the new file lacks, and give it the
 * name.
 */
int journal_copy_columns (const struct journal *old,
                          struct journal *j,
                          const struct row *rows,
                          uint64_t n);
int journal_give_name (struct journal *j, const char *tmp);

/* ---- journal_kept.c: what was written since the last sync ---- */

/* If the sync fails, the client of a network file system may have thrown it
 * away: a read gives zeros, and the next sync succeeds.  So it stays in memory,
 * up to 1 MiB of a column, and is written into the file that takes the place of
 * the suspect one.
 */
void journal_keep_new (struct journal *j);
void journal_keep_end (struct journal *j);

/* These records are about to be written behind those that are there. */
void journal_keep (struct journal *j,
                   const struct column *c,
                   const void *records,
                   uint64_t n);

/* The number of the column's first record that is kept, in '*data'; all that
 * follow are, too.  Where none is: the number of its records.
 */
uint64_t journal_kept (const struct journal *j,
                       const struct column *c,
                       const char **data);

/* All of the file is on stable storage. */
void journal_kept_synced (struct journal *j);

/* ---- journal_work.c: what another thread does, one thing at a time ---- */

/* Whether a larger file is to be made; make it.  A failure does no harm. */
bool journal_needs_room (const struct journal *j);
void journal_begin_growth (struct journal *j, atomic_uint *bell);

/* -1: it is to be done by the caller. */
int journal_begin_sync (struct journal *j, atomic_uint *bell);

/* Wait until it has ended: 0, or -1 with the errno of a sync. */
int journal_end_work (struct journal *j);

#endif
