/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of a text, in hexadecimal. */
#include "launcher/sys/digest.h"

#include <errno.h>
#include <sodium.h>
#include <sys/random.h>

void digest_of (char digest[DIGEST_SIZE], const void *data, size_t size)
{
    unsigned char sum[crypto_hash_sha256_BYTES];

    crypto_hash_sha256 (sum, data, size);
    sodium_bin2hex (digest, DIGEST_SIZE, sum, sizeof (sum));
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
