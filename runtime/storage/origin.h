/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of the data in a file, even after it was copied. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The copier owns a copy, but the data still come from somebody else: a copy
 * ends with ORIGIN_SIZE bytes of text that name the owner.  HDF5 ignores them,
 * and copies of the copy include them.
 */
enum { ORIGIN_SIZE = 40 };

/* No particular owner: others may have written to it. */
#define ORIGIN_OTHERS UINT32_MAX

/* Where the data of an open file of this size end, and its mark begins. */
uint64_t origin_at (int fd, uint64_t size);

/* Whether an open file, and its data, belong to this user or root, and nobody
 * else may write to it.  '*owner' is the owner.
 */
bool origin_is_own (int fd, const struct stat *st, uint32_t *owner);

/* The same for the mark alone. */
bool origin_mark_is_own (int fd, uint64_t size, uint32_t *owner);

/* Mark 'fd', open for reading too, as data of 'owner'. */
int origin_put (int fd, uint32_t owner);

/* 'to', open for reading too, is a copy of 'from': mark it if 'from' is not this
 * user's own, but '*owner's.  ORIGIN_FAILED: errno says why.
 */
enum origin_result { ORIGIN_FAILED = -1, ORIGIN_OWN, ORIGIN_MARKED };
enum origin_result origin_keep (int from, int to, uint32_t *owner);
