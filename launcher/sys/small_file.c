/* SPDX-License-Identifier: Apache-2.0 */
/* Read small files. */
#include "launcher/sys/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/error.h"

int file_open (const char *path, int flags)
{
    struct timespec wait = { 0, 10 * 1000 * 1000 };
    int fd;

    for (int i = 0; i < 100; i++) {
        fd = open (path, flags | O_CLOEXEC);
        if (fd >= 0 || (errno != ENOENT && errno != ESTALE && errno != EINTR))
            return fd;
        nanosleep (&wait, NULL);
        if (wait.tv_nsec < 500 * 1000 * 1000)
            wait.tv_nsec *= 2;
    }
    return -1;
}

char *
file_read (const char *path, size_t max, size_t *len, struct slurmdl_error *err)
{
    /* links are followed: link_if_absent() may have made one */
    int fd = file_open (path, O_RDONLY | O_NONBLOCK);
    struct stat st;
    char *buf = NULL;
    size_t n = 0;
    ssize_t got = 0;

    if (fd < 0 || fstat (fd, &st) < 0)
        goto fail;
    if (!S_ISREG (st.st_mode) || (uintmax_t)st.st_size > max) {
        errno = S_ISREG (st.st_mode) ? EFBIG : EINVAL;
        goto fail;
    }
    if (!(buf = malloc ((size_t)st.st_size + 1)))
        goto fail;
    while (n < (size_t)st.st_size
           && (got = read (fd, buf + n, (size_t)st.st_size - n)) > 0)
        n += (size_t)got;
    if (got < 0)
        goto fail;
    buf[n] = '\0';
    if (len)
        *len = n;
    close (fd);
    return buf;
fail:
    errorf (err, "%s: cannot read: %s", path, strerror (errno));
    int e = errno;
    if (fd >= 0)
        close (fd);
    free (buf);
    errno = e;
    return NULL;
}
