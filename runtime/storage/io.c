/* SPDX-License-Identifier: Apache-2.0 */
/* pread() and pwrite() that continue until all bytes are transferred. */
#include "runtime/storage/io.h"

#include <errno.h>
#include <unistd.h>

int io_write_at (int fd, const void *buf, size_t len, off_t at)
{
    const char *p = buf;

    while (len > 0) {
        ssize_t n = pwrite (fd, p, len, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        p += n;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int io_read_at (int fd, void *buf, size_t len, off_t at)
{
    char *p = buf;

    while (len > 0) {
        ssize_t n = pread (fd, p, len, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = EIO;
        if (n <= 0)
            return -1;
        p += n;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}
