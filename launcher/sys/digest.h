/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 in hexadecimal. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_SIZE = 65 }; /* with its NUL */

/* The SHA-256 of some bytes, in hexadecimal. */
void digest_of (char digest[DIGEST_SIZE], const void *data, size_t size);

/* Copy what is left of one file into another (-1: none), with the digest and
 * the size of it.  Returns 0, or -1 with errno.
 */
int digest_copy (int from, int to, char digest[DIGEST_SIZE], int64_t *bytes);

/* That of an open file, from its start to its end, where it then is; -1 with
 * errno.
 */
int digest_of_file (char digest[DIGEST_SIZE], int fd);

/* So many bytes from getrandom(2), in hexadecimal; -1 with errno. */
int random_word (char *buf, size_t bytes);
