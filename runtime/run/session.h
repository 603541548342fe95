/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a run exchange messages through files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

/* Each rank creates the file hello.R, with a random number, in a hidden folder of the run.  Rank 0
 * answers all of them with one file, welcome, which contains their numbers and the number of the
 * session.  A rank accepts a welcome only if it contains the rank's own number, so that files of
 * earlier processes are ignored.  A message is the file SESSION.NAME.R, which is complete once it
 * has its name.
 */
struct session;
struct slurmdl;

/* Connect to the other ranks; does nothing if that was done.  Every wait ends
 * after DL_RANK_TIMEOUT seconds (600) with ETIMEDOUT, or with ESRCH as soon as
 * the awaited process of this machine has ended; 'err' names the rank.  Two
 * threads of a rank may use a session, for different names.
 */
int session_join (struct slurmdl *run, struct slurmdl_error *err);
/* Tell the others that this rank has left, and free the session; NULL is accepted. */
void session_destroy (struct session *t);

int session_put (struct session *t, const char *name, const void *data, size_t n);

/* Read what rank 'from' has put, waiting 'extra' seconds longer; the caller frees it. */
int session_get (struct session *t, long from, const char *name, double extra, void **data,
                 size_t *n, struct slurmdl_error *err);

/* The same for a name that is put repeatedly: wait until 'enough' returns true. */
typedef bool (*session_enough_f) (const void *data, size_t n, const void *arg);
int session_wait (struct session *t, long from, const char *name, session_enough_f enough,
                  const void *arg, void **data, size_t *n, struct slurmdl_error *err);

/* The same without waiting. */
enum session_poll { SESSION_FAILED = -1, SESSION_NOT_YET, SESSION_HAS };
enum session_poll session_poll (struct session *t, long from, const char *name, void **data,
                                size_t *n);

/* Remove what all ranks have put under this name. */
void session_forget (struct session *t, const char *name);

/* Counters of collective operations: each rank counts the same. */
enum session_count { SESSION_SAVE, SESSION_RESTORE, SESSION_COUNTS };
unsigned session_count (struct session *t, enum session_count what);
