/* SPDX-License-Identifier: Apache-2.0 */
/* Preload this to record each call of a program that changes files.
 *
 * TRACE_DIR=DIR    record calls on files in this directory, and writes to standard output
 * TRACE_LOG=FILE   where to write the records: operation, file (u32 each), offset, length of the
 *                  rest (u64 each), then bytes or paths; tests/runtime/boundaries.py and
 *                  tests/faults/power.py read them
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

enum op {
    OPEN = 1,
    WRITE,
    TRUNCATE,
    SYNC,
    LINK,
    RENAME,
    UNLINK,
    SAY,
    MKDIR,
    SYNC_FOLDER,
};
enum { FILES = 1024, PATH_SIZE = 4096 };

struct entry {
    uint32_t op, file;
    uint64_t offset, bytes;
};

/* Allow one call at a time, so that the log has the real order. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *dir;
static int out = -1;
static uint32_t files[FILES]; /* file of each descriptor; 0: not traced */
static ino_t inodes[FILES];   /* inode of each file */
static uint32_t nfiles;

/* The real syscall().  This file replaces it, too, because libc has no openat2(). */
static long (*raw (void)) (long, ...)
{
    static long (*real) (long, ...);

    if (!real)
        real = (long (*) (long, ...)) (uintptr_t)dlsym (RTLD_NEXT, "syscall");
    return real;
}

__attribute__ ((constructor)) static void begin (void)
{
    const char *log = getenv ("TRACE_LOG");

    dir = getenv ("TRACE_DIR");
    if (log && dir)
        out =
            (int)raw () (SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    unsetenv ("LD_PRELOAD");
}

static void put (enum op op, uint32_t file, off_t at, const void *data, size_t n)
{
    struct entry e = { op, file, (uint64_t)at, n };
    struct iovec v[2] = { { &e, sizeof (e) }, { (void *)(uintptr_t)data, n } };

    if (out >= 0 && raw () (SYS_writev, out, v, 2) < 0)
        abort ();
}

/* Returns the path of an open file. */
static const char *path_of (int fd, char *buf)
{
    char link[64];
    long n;

    snprintf (link, sizeof (link), "/proc/self/fd/%d", fd);
    n = raw () (SYS_readlinkat, AT_FDCWD, link, buf, PATH_SIZE - 1);
    buf[n > 0 ? n : 0] = '\0';
    return buf;
}

/* Returns the path of a name relative to an open directory. */
static const char *path_at (int at, const char *name, char *buf)
{
    if (at == AT_FDCWD || *name == '/')
        return name;
    path_of (at, buf);
    strncat (buf, "/", PATH_SIZE - strlen (buf) - 1);
    strncat (buf, name, PATH_SIZE - strlen (buf) - 1);
    return buf;
}

static bool is_traced (const char *path)
{
    return dir && !strncmp (path, dir, strlen (dir));
}

static void put_paths (enum op op, int at, const char *from, int to_at, const char *to)
{
    char a[PATH_SIZE];
    char b[PATH_SIZE];
    char both[2 * PATH_SIZE];
    int n = snprintf (both, sizeof (both), "%s%c%s", path_at (at, from, a), 0,
                      *to ? path_at (to_at, to, b) : "");

    if (is_traced (both))
        put (op, 0, 0, both, (size_t)n);
}

static uint32_t file_of (int fd)
{
    return fd >= 0 && fd < FILES ? files[fd] : 0;
}

#define LOCKED(call)                                                                               \
    pthread_mutex_lock (&lock);                                                                    \
    long rv = call;                                                                                \
    if (rv >= 0)

#define DONE                                                                                       \
    pthread_mutex_unlock (&lock);                                                                  \
    return rv

static uint32_t file_with (ino_t inode)
{
    for (uint32_t i = nfiles; i > 0; i--)
        if (i < FILES && inodes[i] == inode)
            return i;
    return 0;
}

/* A known file may be opened again, by any path. */
static void note_open (int fd, int flags)
{
    char buf[PATH_SIZE];
    const char *path = path_of (fd, buf);
    struct stat st;
    uint32_t known;

    files[fd] = 0;
    if (!is_traced (path) || fstat (fd, &st) < 0 || !S_ISREG (st.st_mode))
        return;
    known = flags & O_EXCL ? 0 : file_with (st.st_ino);
    files[fd] = known;
    if (known && flags & O_TRUNC)
        put (TRUNCATE, known, 0, NULL, 0);
    if (known || !(flags & O_CREAT) || nfiles + 1 == FILES)
        return;
    files[fd] = ++nfiles;
    inodes[nfiles] = st.st_ino;
    put (OPEN, nfiles, 0, path, strlen (path));
}

static int opened (int at, const char *path, int flags, mode_t mode)
{
    LOCKED (raw () (SYS_openat, at, path, flags, mode))
    if (rv < FILES)
        note_open ((int)rv, flags);
    pthread_mutex_unlock (&lock);
    return (int)rv;
}

long syscall (long number, ...)
{
    long a[6];
    va_list ap;

    va_start (ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg (ap, long);
    va_end (ap);
    if (number != SYS_openat2)
        return raw () (number, a[0], a[1], a[2], a[3], a[4], a[5]);
    LOCKED (raw () (number, a[0], a[1], a[2], a[3]))
    if (rv < FILES)
        note_open ((int)rv, (int)*(const uint64_t *)a[2]);
    DONE;
}

/* Define an open function. 'at' is its directory; the rest are the parameters before the path. */
#define OPENER(name, at, ...)                                                                      \
    int name (__VA_ARGS__ const char *path, int flags, ...)                                        \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
        va_list ap;                                                                                \
        va_start (ap, flags);                                                                      \
        if (flags & (O_CREAT | __O_TMPFILE))                                                       \
            mode = va_arg (ap, mode_t);                                                            \
        va_end (ap);                                                                               \
        return opened (at, path, flags, mode);                                                     \
    }
OPENER (open, AT_FDCWD, )
OPENER (open64, AT_FDCWD, )
OPENER (openat, at, int at, )
OPENER (openat64, at, int at, )

#define WRITER(name)                                                                               \
    ssize_t name (int fd, const void *buf, size_t n, off_t at)                                     \
    {                                                                                              \
        LOCKED (raw () (SYS_pwrite64, fd, buf, n, at))                                             \
        if (file_of (fd))                                                                          \
            put (WRITE, file_of (fd), at, buf, (size_t)rv);                                        \
        DONE;                                                                                      \
    }
WRITER (pwrite)
WRITER (pwrite64)

static void put_write (int fd, const void *buf, size_t n)
{
    if (fd == 1)
        put (SAY, 0, 0, buf, n);
    else if (file_of (fd))
        put (WRITE, file_of (fd), lseek (fd, 0, SEEK_CUR) - (off_t)n, buf, n);
}

ssize_t write (int fd, const void *buf, size_t n)
{
    LOCKED (raw () (SYS_write, fd, buf, n))
    put_write (fd, buf, (size_t)rv);
    DONE;
}

#define CUTTER(name)                                                                               \
    int name (int fd, off_t n)                                                                     \
    {                                                                                              \
        LOCKED (raw () (SYS_ftruncate, fd, n))                                                     \
        if (file_of (fd))                                                                          \
            put (TRUNCATE, file_of (fd), n, NULL, 0);                                              \
        pthread_mutex_unlock (&lock);                                                              \
        return (int)rv;                                                                            \
    }
CUTTER (ftruncate)
CUTTER (ftruncate64)

static void put_sync (int fd)
{
    char path[PATH_SIZE];
    struct stat st;

    if (file_of (fd))
        put (SYNC, file_of (fd), 0, NULL, 0);
    else if (is_traced (path_of (fd, path)) && fstat (fd, &st) == 0 && S_ISDIR (st.st_mode))
        put (SYNC_FOLDER, 0, 0, path, strlen (path));
}

#define SYNCER(name, number)                                                                       \
    int name (int fd)                                                                              \
    {                                                                                              \
        LOCKED (raw () (number, fd))                                                               \
        put_sync (fd);                                                                             \
        pthread_mutex_unlock (&lock);                                                              \
        return (int)rv;                                                                            \
    }
SYNCER (fsync, SYS_fsync)
SYNCER (fdatasync, SYS_fdatasync)

int linkat (int at, const char *from, int to_at, const char *to, int flags)
{
    LOCKED (raw () (SYS_linkat, at, from, to_at, to, flags))
    put_paths (LINK, at, from, to_at, to);
    pthread_mutex_unlock (&lock);
    return (int)rv;
}

int link (const char *from, const char *to)
{
    return linkat (AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdirat (int at, const char *path, mode_t mode)
{
    LOCKED (raw () (SYS_mkdirat, at, path, mode))
    put_paths (MKDIR, at, path, AT_FDCWD, "");
    pthread_mutex_unlock (&lock);
    return (int)rv;
}

int mkdir (const char *path, mode_t mode)
{
    return mkdirat (AT_FDCWD, path, mode);
}

int renameat (int at, const char *from, int to_at, const char *to)
{
    LOCKED (raw () (SYS_renameat, at, from, to_at, to))
    put_paths (RENAME, at, from, to_at, to);
    pthread_mutex_unlock (&lock);
    return (int)rv;
}

int rename (const char *from, const char *to)
{
    return renameat (AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat (int at, const char *path, int flags)
{
    LOCKED (raw () (SYS_unlinkat, at, path, flags))
    put_paths (UNLINK, at, path, AT_FDCWD, "");
    pthread_mutex_unlock (&lock);
    return (int)rv;
}

int unlink (const char *path)
{
    return unlinkat (AT_FDCWD, path, 0);
}

int close (int fd)
{
    pthread_mutex_lock (&lock);
    if (fd >= 0 && fd < FILES)
        files[fd] = 0;
    pthread_mutex_unlock (&lock);
    return (int)raw () (SYS_close, fd);
}
