/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 digests in hexadecimal, and random names. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_SIZE = 65 }; /* including the NUL */

/* Compute the digest of 'size' bytes. */
void digest_of (char digest[DIGEST_SIZE], const void *data, size_t size);

/* Read 'from' to its end, and compute the digest and the number of bytes.  Copy them to 'to' unless
 * that is -1.  Returns 0, or -1 with errno.
 */
int digest_copy (int from, int to, char digest[DIGEST_SIZE], int64_t *bytes);

/* Compute the digest of an open file from its start, and leave the offset at its end.  Returns 0,
 * or -1 with errno.
 */
int digest_of_file (char digest[DIGEST_SIZE], int fd);

/* Write 'bytes' random bytes from getrandom(2) in hexadecimal.  Returns 0, or -1 with errno. */
int random_word (char *buf, size_t bytes);
