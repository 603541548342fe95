/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD: write down each call of a program that changes files.
 *
 * TRACE_DIR=DIR    calls on files in this folder, and write() to file 1
 * TRACE_LOG=FILE   a record for each: operation, file (u32 each), offset,
 *                  length of what follows (u64 each), then bytes or paths;
 *                  tests/runtime/boundaries.py reads it
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum op { OPEN = 1, WRITE, TRUNCATE, SYNC, LINK, RENAME, UNLINK, SAY };
enum { FILES = 1024, PATH_SIZE = 4096 };

struct entry {
    uint32_t op, file;
    uint64_t offset, bytes;
};

/* One call at a time: the log has the order in which they happened. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *dir;
static int out = -1;
static uint32_t files[FILES]; /* of each descriptor, 0: none */
static uint32_t nfiles;

__attribute__ ((constructor)) static void begin (void)
{
    const char *log = getenv ("TRACE_LOG");

    dir = getenv ("TRACE_DIR");
    if (log && dir)
        out = (int)syscall (SYS_openat,
                            AT_FDCWD,
                            log,
                            O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                            0666);
    unsetenv ("LD_PRELOAD");
}

static void
put (enum op op, uint32_t file, off_t at, const void *data, size_t n)
{
    struct entry e = { op, file, (uint64_t)at, n };
    struct iovec v[2] = { { &e, sizeof (e) }, { (void *)(uintptr_t)data, n } };

    if (out >= 0 && syscall (SYS_writev, out, v, 2) < 0)
        abort ();
}

static void put_paths (enum op op, const char *from, const char *to)
{
    char both[2 * PATH_SIZE];
    int n = snprintf (both, sizeof (both), "%s%c%s", from, 0, to);

    if (dir && !strncmp (from, dir, strlen (dir)))
        put (op, 0, 0, both, (size_t)n);
}

static uint32_t file_of (int fd)
{
    return fd >= 0 && fd < FILES ? files[fd] : 0;
}

#define LOCKED(call)                                                           \
    pthread_mutex_lock (&lock);                                                \
    long rv = call;                                                            \
    if (rv >= 0)

#define DONE                                                                   \
    pthread_mutex_unlock (&lock);                                              \
    return rv

static int opened (const char *path, int flags, mode_t mode)
{
    LOCKED (syscall (SYS_openat, AT_FDCWD, path, flags, mode))
    if (rv < FILES) {
        files[rv] = 0;
        if (flags & O_CREAT && dir && !strncmp (path, dir, strlen (dir))) {
            files[rv] = ++nfiles;
            put (OPEN, nfiles, 0, path, strlen (path));
        }
    }
    pthread_mutex_unlock (&lock);
    return (int)rv;
}

#define OPENER(name)                                                           \
    int name (const char *path, int flags, ...)                                \
    {                                                                          \
        mode_t mode = 0;                                                       \
        va_list ap;                                                            \
        va_start (ap, flags);                                                  \
        if (flags & (O_CREAT | __O_TMPFILE))                                   \
            mode = va_arg (ap, mode_t);                                        \
        va_end (ap);                                                           \
        return opened (path, flags, mode);                                     \
    }
OPENER (open)
OPENER (open64)

#define WRITER(name)                                                           \
    ssize_t name (int fd, const void *buf, size_t n, off_t at)                 \
    {                                                                          \
        LOCKED (syscall (SYS_pwrite64, fd, buf, n, at))                        \
        if (file_of (fd))                                                      \
            put (WRITE, file_of (fd), at, buf, (size_t)rv);                    \
        DONE;                                                                  \
    }
WRITER (pwrite)
WRITER (pwrite64)

ssize_t write (int fd, const void *buf, size_t n)
{
    LOCKED (syscall (SYS_write, fd, buf, n))
    if (fd == 1)
        put (SAY, 0, 0, buf, (size_t)rv);
    DONE;
}

#define CUTTER(name)                                                           \
    int name (int fd, off_t n)                                                 \
    {                                                                          \
        LOCKED (syscall (SYS_ftruncate, fd, n))                                \
        if (file_of (fd))                                                      \
            put (TRUNCATE, file_of (fd), n, NULL, 0);                          \
        pthread_mutex_unlock (&lock);                                          \
        return (int)rv;                                                        \
    }
CUTTER (ftruncate)
CUTTER (ftruncate64)

#define SYNCER(name, number)                                                   \
    int name (int fd)                                                          \
    {                                                                          \
        LOCKED (syscall (number, fd))                                          \
        if (file_of (fd))                                                      \
            put (SYNC, file_of (fd), 0, NULL, 0);                              \
        pthread_mutex_unlock (&lock);                                          \
        return (int)rv;                                                        \
    }
SYNCER (fsync, SYS_fsync)
SYNCER (fdatasync, SYS_fdatasync)

int link (const char *from, const char *to)
{
    LOCKED (syscall (SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0))
    put_paths (LINK, from, to);
    pthread_mutex_unlock (&lock);
    return (int)rv;
}

int rename (const char *from, const char *to)
{
    LOCKED (syscall (SYS_renameat, AT_FDCWD, from, AT_FDCWD, to))
    put_paths (RENAME, from, to);
    pthread_mutex_unlock (&lock);
    return (int)rv;
}

int unlink (const char *path)
{
    LOCKED (syscall (SYS_unlinkat, AT_FDCWD, path, 0))
    put_paths (UNLINK, path, "");
    pthread_mutex_unlock (&lock);
    return (int)rv;
}

int close (int fd)
{
    pthread_mutex_lock (&lock);
    if (fd >= 0 && fd < FILES)
        files[fd] = 0;
    pthread_mutex_unlock (&lock);
    return (int)syscall (SYS_close, fd);
}
