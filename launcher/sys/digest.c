/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 in hexadecimal. */
#include "launcher/sys/digest.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

void digest_of (char digest[DIGEST_SIZE], const void *data, size_t size)
{
    unsigned char sum[crypto_hash_sha256_BYTES];

    crypto_hash_sha256 (sum, data, size);
    sodium_bin2hex (digest, DIGEST_SIZE, sum, sizeof (sum));
}

enum { BLOCK = 1 << 20 };

int digest_of_file (char digest[DIGEST_SIZE], int fd)
{
    unsigned char sum[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    unsigned char *buf = malloc (BLOCK);
    off_t at = 0;
    ssize_t n = -1;

    crypto_hash_sha256_init (&state);
    while (
        buf
        && ((n = pread (fd, buf, BLOCK, at)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0) {
            crypto_hash_sha256_update (&state, buf, (unsigned long long)n);
            at += n;
        }
    free (buf);
    if (n < 0)
        return -1;
    crypto_hash_sha256_final (&state, sum);
    sodium_bin2hex (digest, DIGEST_SIZE, sum, sizeof (sum));
    return 0;
}

int random_word (char *buf, size_t bytes)
{
    unsigned char random[64];

    if (bytes > sizeof (random)) {
        errno = EINVAL;
        return -1;
    }
    if (getrandom (random, bytes, 0) != (ssize_t)bytes)
        return -1;
    sodium_bin2hex (buf, 2 * bytes + 1, random, bytes);
    return 0;
}
