/* SPDX-License-Identifier: Apache-2.0 */
/* Read small files. */
#include "launcher/sys/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

enum { PART = 65536, LINK_TRIES = 6 };

static bool may_appear (int e)
{
    return e == ENOENT || e == ESTALE || e == EINTR;
}

/* Whether the path is a symbolic link to a missing file.  Retrying is then useless: the file was
 * created before the link, and a host cannot have cached the absence of a name that it has not
 * looked up before.
 */
static bool leads_nowhere (const char *path)
{
    struct stat st;
    bool is_link = lstat (path, &st) == 0 && S_ISLNK (st.st_mode);

    errno = ENOENT;
    return is_link;
}

static int open_patiently (const char *path, int flags, struct stat *st)
{
    struct timespec wait = { 0, 10 * 1000 * 1000 };
    int fd;

    for (int i = 0; i < 100; i++) {
        fd = inside_open (path, flags, 0, st);
        if (fd >= 0 || !may_appear (errno) || (i >= LINK_TRIES && leads_nowhere (path)))
            return fd;
        nanosleep (&wait, NULL);
        if (wait.tv_nsec < 500 * 1000 * 1000)
            wait.tv_nsec *= 2;
    }
    return -1;
}

int path_from (char path[PATH_MAX], const char *dir, const char *name)
{
    return *name == '/' ? snprintf (path, PATH_MAX, "%s", name)
                        : snprintf (path, PATH_MAX, "%s/%s", dir ? dir : "", name);
}

int path_join (char path[PATH_MAX], const char *folder, const char *name)
{
    return snprintf (path, PATH_MAX, "%s%s%s", folder, *folder && *name ? "/" : "", name);
}

int file_open (const char *path, int flags)
{
    return open_patiently (path, flags, NULL);
}

/* Returns NULL with errno on failure. */
static char *read_whole (int fd, const struct stat *st, size_t max, size_t *len)
{
    size_t size = (size_t)st->st_size;
    size_t n = 0;
    ssize_t got = 0;
    char *buf;

    if (!S_ISREG (st->st_mode) || (uintmax_t)st->st_size > max) {
        errno = S_ISREG (st->st_mode) ? EFBIG : EINVAL;
        return NULL;
    }
    buf = xmalloc (size + 1);
    while (n < size && (got = read (fd, buf + n, size - n)) > 0)
        n += (size_t)got;
    if (got < 0) {
        int e = errno;
        free (buf);
        errno = e;
        return NULL;
    }
    buf[n] = '\0';
    if (len)
        *len = n;
    return buf;
}

/* Read 'fd' and close it. */
static char *take_text (const char *path, int fd, const struct stat *st, size_t max, size_t *len,
                        struct slurmdl_error *err)
{
    char *buf = fd < 0 ? NULL : read_whole (fd, st, max, len);
    int e = errno;

    if (!buf)
        errorf (err, "%s: cannot read: %s", path, inside_error (e));
    if (fd >= 0)
        close (fd);
    errno = e;
    return buf;
}

/* dl does not write such files, so one in an experiment means that it is damaged. */
static char *or_damaged (char *text)
{
    if (!text && (errno == ELOOP || errno == EINVAL || errno == EFBIG || errno == ENOTDIR))
        errno = EBADMSG;
    return text;
}

char *file_read (const char *path, size_t max, size_t *len, struct slurmdl_error *err)
{
    struct stat st;
    int fd = open_patiently (path, O_RDONLY, &st);

    return or_damaged (take_text (path, fd, &st, max, len, err));
}

char *file_read_now (const char *path, size_t max, size_t *len, uid_t *owner,
                     struct slurmdl_error *err)
{
    struct stat st;
    int fd = inside_open (path, O_RDONLY, 0, &st);

    if (fd >= 0 && owner)
        *owner = st.st_uid;
    return or_damaged (take_text (path, fd, &st, max, len, err));
}

char *file_read_named (const char *path, size_t max, size_t *len, struct slurmdl_error *err)
{
    int fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd >= 0 && fstat (fd, &st) < 0)
        st.st_mode = 0;
    return take_text (path, fd, &st, max, len, err);
}

/* Returns NULL with errno on failure. */
static char *read_part (int fd, size_t max)
{
    char *text = NULL;
    size_t capacity = 0;
    size_t used = 0;
    ssize_t n = 1;

    while (n > 0 && used < max) {
        if (array_reserve (&text, &capacity, used, PART, 1) < 0)
            break;
        n = read (fd, text + used, max - used < PART - 1 ? max - used : PART - 1);
        used += n > 0 ? (size_t)n : 0;
    }
    if (text && n >= 0) {
        text[used] = '\0';
        return text;
    }
    int e = errno;
    free (text);
    errno = e;
    return NULL;
}

char *file_text (const char *path, size_t max)
{
    int fd = open (path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    char *text = NULL;
    int e;

    if (fd < 0)
        return NULL;
    if (fstat (fd, &st) == 0 && !S_ISREG (st.st_mode))
        errno = EINVAL;
    else
        text = read_part (fd, max);
    e = errno;
    close (fd);
    errno = e;
    return text;
}

size_t file_tail (int fd, char *buf, size_t size)
{
    off_t end = fd < 0 ? -1 : lseek (fd, 0, SEEK_END);
    off_t start = end > (off_t)size ? end - (off_t)size : 0;
    ssize_t n = end > 0 ? pread (fd, buf, size, start) : 0;

    if (fd >= 0)
        close (fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}
