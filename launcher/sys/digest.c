/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 digests in hexadecimal, and random names. */
#include "launcher/sys/digest.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"

void digest_of (char digest[DIGEST_SIZE], const void *data, size_t size)
{
    unsigned char sum[crypto_hash_sha256_BYTES];

    crypto_hash_sha256 (sum, data, size);
    sodium_bin2hex (digest, DIGEST_SIZE, sum, sizeof (sum));
}

static int write_digested (int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t done = write (fd, data, n);
        if (done < 0 && errno != EINTR)
            return -1;
        data += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

int digest_copy (int from, int to, char digest[DIGEST_SIZE], int64_t *bytes)
{
    enum { PART = 1 << 20 };
    unsigned char sum[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    char *part = xmalloc (PART);
    ssize_t got;

    *bytes = 0;
    crypto_hash_sha256_init (&state);
    while ((got = read (from, part, PART)) > 0 || (got < 0 && errno == EINTR)) {
        size_t size = got > 0 ? (size_t)got : 0;
        crypto_hash_sha256_update (&state, (unsigned char *)part, size);
        *bytes += (int64_t)size;
        if (to >= 0 && write_digested (to, part, size) < 0) {
            got = -1;
            break;
        }
    }
    crypto_hash_sha256_final (&state, sum);
    sodium_bin2hex (digest, DIGEST_SIZE, sum, sizeof (sum));
    free (part);
    return got == 0 ? 0 : -1;
}

int digest_of_file (char digest[DIGEST_SIZE], int fd)
{
    int64_t bytes;

    return lseek (fd, 0, SEEK_SET) < 0 ? -1 : digest_copy (fd, -1, digest, &bytes);
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
