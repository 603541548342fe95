/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 in hexadecimal. */
#ifndef LAUNCHER_SYS_DIGEST_H
#define LAUNCHER_SYS_DIGEST_H

#include <stddef.h>

enum { DIGEST_SIZE = 65 }; /* with its NUL */

void digest_of (char digest[DIGEST_SIZE], const void *data, size_t size);

/* That of an open file, from its start; -1 with errno. */
int digest_of_file (char digest[DIGEST_SIZE], int fd);

/* So many bytes from getrandom(2), in hexadecimal; -1 with errno. */
int random_word (char *buf, size_t bytes);

#endif
