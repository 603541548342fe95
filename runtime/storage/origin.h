/* SPDX-License-Identifier: Apache-2.0 */
/* Whose data a file has, also after it was copied. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* A copy is a file of who made it, and what is in it still is of somebody else:
 * it ends with ORIGIN_SIZE bytes of text that say of whom.  HDF5 reads nothing
 * there, and who copies the copy copies the mark.
 */
enum { ORIGIN_SIZE = 40 };

/* Of nobody in particular: others might have written to it. */
#define ORIGIN_OTHERS UINT32_MAX

/* Where the data of an open file of this size end, and its mark begins. */
uint64_t origin_at (int fd, uint64_t size);

/* Whether an open file, and what is in it, is this user's or root's, and nobody
 * else may write to it.  '*owner' is whose it is.
 */
bool origin_is_own (int fd, const struct stat *st, uint32_t *owner);

/* The same of no more than the mark. */
bool origin_mark_is_own (int fd, uint64_t size, uint32_t *owner);

/* 'fd', open for reading too, has data of 'owner'. */
int origin_put (int fd, uint32_t owner);

/* 'to', open for reading too, is a copy of 'from': mark it if 'from' is not this
 * user's own, but '*owner's.  ORIGIN_FAILED: errno says why.
 */
enum origin_result { ORIGIN_FAILED = -1, ORIGIN_OWN, ORIGIN_MARKED };
enum origin_result origin_keep (int from, int to, uint32_t *owner);
