/* SPDX-License-Identifier: Apache-2.0 */
/* Small files that are complete as soon as they appear. */
#include "runtime/storage/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/storage/crc32c.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"

enum { MESSAGE_MAX = 1 << 30 };

struct envelope {
    char magic[8]; /* "SLDLMSG1" */
    uint64_t bytes;
    uint32_t crc;
    uint32_t reserved;
};

int message_put (const char *path, const void *data, size_t n)
{
    struct envelope e = { .bytes = n, .crc = crc32c (0, data, n) };
    char tmp[PATH_MAX];
    int fd;
    int rv = -1;

    memcpy (e.magic, "SLDLMSG1", sizeof (e.magic));
    link_tmp_name (tmp, sizeof (tmp), path);
    fd = inside_open_any (tmp, O_WRONLY | O_CREAT | O_EXCL, 0600, NULL);
    if (fd < 0)
        return -1;
    if (io_write_at (fd, &e, sizeof (e), 0) == 0 && io_write_at (fd, data, n, sizeof (e)) == 0)
        rv = 0;
    if (close (fd) < 0)
        rv = -1;
    if (rv == 0)
        rv = rename (tmp, path);
    if (rv < 0) {
        int saved = errno;
        unlink (tmp);
        errno = saved;
    }
    return rv;
}

/* Refuse pipes, symbolic links and other users' files. */
static int open_plain_file (const char *path)
{
    int fd = inside_has (path) ? inside_open (path, O_RDONLY, 0, NULL)
                               : open (path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && errno != ELOOP)
        return -1;
    if (fd >= 0 && fstat (fd, &st) == 0 && S_ISREG (st.st_mode) && st.st_uid == geteuid ())
        return fd;
    if (fd >= 0)
        close (fd);
    errno = EPERM;
    return -1;
}

int message_get (const char *path, void **data, size_t *n)
{
    struct envelope e;
    int fd = open_plain_file (path);
    int rv = -1;

    *data = NULL;
    if (fd < 0)
        return -1;
    errno = EBADMSG;
    if (io_read_at (fd, &e, sizeof (e), 0) == 0 && !memcmp (e.magic, "SLDLMSG1", sizeof (e.magic))
        && e.bytes <= MESSAGE_MAX && (*data = malloc (e.bytes + 1))
        && io_read_at (fd, *data, e.bytes, sizeof (e)) == 0 && crc32c (0, *data, e.bytes) == e.crc)
        rv = 0;
    *n = e.bytes;
    close (fd);
    if (rv < 0) {
        free (*data);
        *data = NULL;
        errno = EBADMSG;
    }
    return rv;
}
