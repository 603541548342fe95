/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD: crash a program at one file-system call, or make that call fail.
 *
 * FAULT_DIR=DIR     count the calls on paths in this folder, starting at 1
 * FAULT_CALL=NAME   ... only calls with this name
 * FAULT_PATH=TEXT   ... only calls whose path contains this
 * FAULT_AT=N        hit call number N (0 or unset: none)
 * FAULT_MODE=MODE   what happens to it:
 *     before, after   the process exits (status 137) before or after the call
 *     EIO, ENOSPC...  the call fails without doing anything
 *     lost            the call succeeds, but returns ETIMEDOUT
 *     again           the call succeeds, but returns the error of a second try
 *                     (EEXIST, ENOENT), as a retransmission to an NFS server may
 *     short           a read or write moves half of the bytes
 * FAULT_NOLINK=1    every link() fails with EPERM
 * FAULT_COUNT=FILE  append a line for each call: its number, name and path, with
 *                   "hit" in front if it was hit
 *
 * Only the process that was started with LD_PRELOAD is hit, not its children.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

enum { CRASH = 137, PATH_SIZE = 4096 };

enum act { PASS, FAIL, LOST, SHORT, DIE };

/* Kinds of calls: they change a name, move data, or close a file. */
enum { CHANGES = 1, MOVES = 2, CLOSES = 4 };

static const struct {
    const char *name;
    int e;
} errnos[] = {
    { "EIO", EIO },       { "ENOSPC", ENOSPC }, { "EDQUOT", EDQUOT },
    { "ESTALE", ESTALE }, { "EINTR", EINTR },   { "EACCES", EACCES },
};

static struct {
    char dir[PATH_SIZE];
    char mode[16];
    char call[16];
    char path[64];
    long at;
    int nolink;
    int out;
    pid_t pid;
    long count;
} plan = { .out = -1 };

__attribute__ ((constructor)) static void read_plan (void)
{
    const char *dir = getenv ("FAULT_DIR");
    const char *at = getenv ("FAULT_AT");
    const char *mode = getenv ("FAULT_MODE");
    const char *out = getenv ("FAULT_COUNT");
    const char *call = getenv ("FAULT_CALL");
    const char *path = getenv ("FAULT_PATH");

    if (out)
        plan.out = (int)syscall (SYS_openat, AT_FDCWD, out,
                                 O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    snprintf (plan.mode, sizeof (plan.mode), "%s", mode ? mode : "");
    snprintf (plan.call, sizeof (plan.call), "%s", call ? call : "");
    snprintf (plan.path, sizeof (plan.path), "%s", path ? path : "");
    plan.at = at ? atol (at) : 0;
    plan.nolink = getenv ("FAULT_NOLINK") != NULL;
    plan.pid = dir ? getpid () : 0;
    snprintf (plan.dir, sizeof (plan.dir), "%s", dir ? dir : "");
    unsetenv ("LD_PRELOAD");
}

static void *next (void **real, const char *name)
{
    if (!*real)
        *real = dlsym (RTLD_NEXT, name);
    return *real;
}

/* ---- which calls count ---- */

static const char *of_fd (int fd, char *buf)
{
    char link[64];
    long n;

    snprintf (link, sizeof (link), "/proc/self/fd/%d", fd);
    n = syscall (SYS_readlinkat, AT_FDCWD, link, buf, PATH_SIZE - 1);
    buf[n > 0 ? n : 0] = '\0';
    return buf;
}

static const char *of_name (const char *name, char *buf)
{
    if (!name || *name == '/')
        return name ? name : "";
    if (syscall (SYS_getcwd, buf, PATH_SIZE) < 0)
        return name;
    strncat (buf, "/", PATH_SIZE - strlen (buf) - 1);
    strncat (buf, name, PATH_SIZE - strlen (buf) - 1);
    return buf;
}

/* The same for a name relative to an open directory. */
static const char *of_at (int at, const char *name, char *buf)
{
    size_t n;

    if (at == AT_FDCWD || *name == '/')
        return of_name (name, buf);
    n = strlen (of_fd (at, buf));
    snprintf (buf + n, PATH_SIZE - n, "/%s", name);
    return buf;
}

static int counts (const char *path)
{
    size_t n = strlen (plan.dir);

    return plan.pid && plan.pid == getpid () && !strncmp (path, plan.dir, n)
           && (path[n] == '/' || !path[n]);
}

static void note (const char *what, long n, const char *call, const char *path)
{
    char line[PATH_SIZE + 64];
    int len;

    if (plan.out < 0)
        return;
    len = snprintf (line, sizeof (line), "%s%ld %s %s\n", what, n, call, path);
    if (syscall (SYS_write, plan.out, line, (size_t)len) < 0)
        plan.out = -1;
}

/* ---- what happens ---- */

static int errno_of_mode (void)
{
    for (size_t i = 0; i < sizeof (errnos) / sizeof (*errnos); i++)
        if (!strcmp (plan.mode, errnos[i].name))
            return errnos[i].e;
    return 0;
}

static enum act act_of_mode (int kind)
{
    int e = errno_of_mode ();

    if (!strcmp (plan.mode, "after"))
        return DIE;
    if (kind & CHANGES && (!strcmp (plan.mode, "lost") || !strcmp (plan.mode, "again")))
        return LOST;
    if (kind & MOVES && !strcmp (plan.mode, "short"))
        return SHORT;
    if (e == 0)
        return PASS;
    errno = e;
    return kind & CLOSES ? LOST : FAIL;
}

static enum act look (const char *call, const char *path, int kind)
{
    int e = errno;
    enum act act;
    long n;

    if (!counts (path) || (*plan.call && strcmp (plan.call, call)) || !strstr (path, plan.path))
        return PASS;
    n = __atomic_add_fetch (&plan.count, 1, __ATOMIC_SEQ_CST);
    if (n != plan.at) {
        note ("", n, call, path);
        errno = e;
        return PASS;
    }
    note ("hit ", n, call, path);
    if (!strcmp (plan.mode, "before"))
        _exit (CRASH);
    errno = e;
    act = act_of_mode (kind);
    return act;
}

/* Apply the fault after the call. Returns 1 if the call must report failure. */
static int after (enum act act, int done, int again)
{
    if (act == DIE)
        _exit (CRASH);
    if (act != LOST || !done)
        return 0;
    errno = !strcmp (plan.mode, "again") ? again : errno_of_mode () ? errno_of_mode () : ETIMEDOUT;
    return 1;
}

/* clang-format off */
#define WRAP(type, name, params, args, path, kind, bad, good, again) \
    type name params                                                 \
    {                                                                \
        static void *real;                                           \
        char buf[PATH_SIZE];                                         \
        enum act act = look (#name, path, kind);                     \
        type rv;                                                     \
        (void)buf;                                                   \
        if (act == FAIL)                                             \
            return bad;                                              \
        rv = ((type (*) params)next (&real, #name)) args;            \
        return after (act, good, again) ? bad : rv;                  \
    }

/* returns -1 on failure */
#define CALL(type, name, params, args, path, kind, again) \
    WRAP (type, name, params, args, path, kind, (type)-1, rv != (type)-1, again)
/* returns NULL on failure */
#define POINTER(type, name, params, args, path) \
    WRAP (type, name, params, args, path, 0, NULL, rv != NULL, 0)

CALL (int, symlink, (const char *to, const char *p), (to, p), of_name (p, buf), CHANGES, EEXIST)
CALL (int, unlink, (const char *p), (p), of_name (p, buf), CHANGES, ENOENT)
CALL (int, rmdir, (const char *p), (p), of_name (p, buf), CHANGES, ENOENT)
CALL (int, rename, (const char *p, const char *to), (p, to), of_name (to, buf), CHANGES, ENOENT)
CALL (int, mkdir, (const char *p, mode_t mode), (p, mode), of_name (p, buf), CHANGES, EEXIST)
CALL (int, stat, (const char *p, struct stat *st), (p, st), of_name (p, buf), 0, 0)
CALL (int, lstat, (const char *p, struct stat *st), (p, st), of_name (p, buf), 0, 0)
CALL (int, stat64, (const char *p, struct stat64 *st), (p, st), of_name (p, buf), 0, 0)
CALL (int, lstat64, (const char *p, struct stat64 *st), (p, st), of_name (p, buf), 0, 0)
CALL (int, access, (const char *p, int mode), (p, mode), of_name (p, buf), 0, 0)
CALL (ssize_t, readlink, (const char *p, char *b, size_t n), (p, b, n), of_name (p, buf), 0, 0)
CALL (int, truncate, (const char *p, off_t n), (p, n), of_name (p, buf), 0, 0)
CALL (int, fstat, (int fd, struct stat *st), (fd, st), of_fd (fd, buf), 0, 0)
CALL (int, fstat64, (int fd, struct stat64 *st), (fd, st), of_fd (fd, buf), 0, 0)
CALL (int, fsync, (int fd), (fd), of_fd (fd, buf), 0, 0)
CALL (int, fdatasync, (int fd), (fd), of_fd (fd, buf), 0, 0)
CALL (int, ftruncate, (int fd, off_t n), (fd, n), of_fd (fd, buf), 0, 0)
CALL (int, ftruncate64, (int fd, off64_t n), (fd, n), of_fd (fd, buf), 0, 0)
CALL (int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), of_fd (fd, buf), 0, 0)
CALL (int, fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n), of_fd (fd, buf), 0, 0)
CALL (int, close, (int fd), (fd), of_fd (fd, buf), CLOSES, 0)
POINTER (FILE *, fopen, (const char *p, const char *mode), (p, mode), of_name (p, buf))
POINTER (FILE *, fopen64, (const char *p, const char *mode), (p, mode), of_name (p, buf))
POINTER (DIR *, opendir, (const char *p), (p), of_name (p, buf))
POINTER (struct dirent *, readdir, (DIR *d), (d), of_fd (dirfd (d), buf))
POINTER (struct dirent64 *, readdir64, (DIR *d), (d), of_fd (dirfd (d), buf))

/* Count the *at() calls under the names of the calls that take a path. */
#define CALL_AT(name, old, params, args, path, again)              \
    int name params                                                \
    {                                                              \
        static void *real;                                         \
        char buf[PATH_SIZE];                                       \
        enum act act = look (old, path, again ? CHANGES : 0);      \
        int rv;                                                    \
        if (act == FAIL)                                           \
            return -1;                                             \
        rv = ((int (*) params)next (&real, #name)) args;           \
        return after (act, rv == 0, again) ? -1 : rv;              \
    }

CALL_AT (symlinkat, "symlink", (const char *to, int at, const char *p), (to, at, p), of_at (at, p, buf), EEXIST)
CALL_AT (unlinkat, "unlink", (int at, const char *p, int flags), (at, p, flags), of_at (at, p, buf), ENOENT)
CALL_AT (renameat, "rename", (int from, const char *p, int at, const char *to), (from, p, at, to), of_at (at, to, buf), ENOENT)
CALL_AT (mkdirat, "mkdir", (int at, const char *p, mode_t mode), (at, p, mode), of_at (at, p, buf), EEXIST)
CALL_AT (fstatat, "stat", (int at, const char *p, struct stat *st, int flags), (at, p, st, flags), of_at (at, p, buf), 0)
CALL (ssize_t, readlinkat, (int at, const char *p, char *b, size_t n), (at, p, b, n), of_at (at, p, buf), 0, 0)

#define HALF (n = act == SHORT && n > 1 ? n / 2 : n)
#define MOVE(name, params, args)                                        \
    ssize_t name params                                                 \
    {                                                                   \
        static void *real;                                              \
        char buf[PATH_SIZE];                                            \
        enum act act = look (#name, of_fd (fd, buf), MOVES);            \
        ssize_t rv;                                                     \
        if (act == FAIL)                                                \
            return -1;                                                  \
        HALF;                                                           \
        rv = ((ssize_t (*) params)next (&real, #name)) args;            \
        after (act, 1, 0);                                              \
        return rv;                                                      \
    }

MOVE (read, (int fd, void *b, size_t n), (fd, b, n))
MOVE (write, (int fd, const void *b, size_t n), (fd, b, n))
MOVE (pread, (int fd, void *b, size_t n, off_t at), (fd, b, n, at))
MOVE (pwrite, (int fd, const void *b, size_t n, off_t at), (fd, b, n, at))
MOVE (pread64, (int fd, void *b, size_t n, off64_t at), (fd, b, n, at))
MOVE (pwrite64, (int fd, const void *b, size_t n, off64_t at), (fd, b, n, at))

#define OPEN(name)                                                      \
    int name (const char *p, int flags, ...)                            \
    {                                                                   \
        static void *real;                                              \
        char buf[PATH_SIZE];                                            \
        int kind = flags & O_CREAT && flags & O_EXCL ? CHANGES : 0;     \
        enum act act = look (#name, of_name (p, buf), kind);            \
        mode_t mode = 0;                                                \
        va_list ap;                                                     \
        int fd;                                                         \
        va_start (ap, flags);                                           \
        if (flags & (O_CREAT | __O_TMPFILE))                            \
            mode = va_arg (ap, mode_t);                                 \
        va_end (ap);                                                    \
        if (act == FAIL)                                                \
            return -1;                                                  \
        fd = ((int (*) (const char *, int, ...))next (&real, #name)) (  \
            p, flags, mode);                                            \
        if (!after (act, fd >= 0, EEXIST))                              \
            return fd;                                                  \
        syscall (SYS_close, fd);                                        \
        return -1;                                                      \
    }

OPEN (open)
OPEN (open64)
/* clang-format on */

static int open_done (enum act act, int fd)
{
    if (!after (act, fd >= 0, EEXIST))
        return fd;
    syscall (SYS_close, fd);
    return -1;
}

int openat (int at, const char *p, int flags, ...)
{
    static void *real;
    char buf[PATH_SIZE];
    int kind = flags & O_CREAT && flags & O_EXCL ? CHANGES : 0;
    enum act act = look ("open", of_at (at, p, buf), kind);
    mode_t mode = 0;
    va_list ap;

    va_start (ap, flags);
    if (flags & (O_CREAT | __O_TMPFILE))
        mode = va_arg (ap, mode_t);
    va_end (ap);
    if (act == FAIL)
        return -1;
    return open_done (
        act, ((int (*) (int, const char *, int, ...))next (&real, "openat")) (at, p, flags, mode));
}

/* libc has no openat2(). The flags are the first member of its structure. */
static long open_how (long at, const char *p, const uint64_t *how, long size)
{
    char buf[PATH_SIZE];
    int kind = how[0] & O_CREAT && how[0] & O_EXCL ? CHANGES : 0;
    enum act act = look ("open", of_at ((int)at, p, buf), kind);
    static void *real;
    long fd;

    if (act == FAIL)
        return -1;
    fd = ((long (*) (long, ...))next (&real, "syscall")) (SYS_openat2, at, p, how, size);
    return open_done (act, (int)fd);
}

long syscall (long number, ...)
{
    static void *real;
    long a[6];
    va_list ap;

    va_start (ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg (ap, long);
    va_end (ap);
    if (number == SYS_openat2)
        return open_how (a[0], (const char *)a[1], (const uint64_t *)a[2], a[3]);
    return ((long (*) (long, ...))next (&real, "syscall")) (number, a[0], a[1], a[2], a[3], a[4],
                                                            a[5]);
}

static int link_to (int old, const char *from, int at, const char *to, int flags)
{
    static void *real;
    char buf[PATH_SIZE];
    enum act act = look ("link", of_at (at, to, buf), CHANGES);
    int rv;

    if (act == FAIL)
        return -1;
    if (plan.nolink) {
        errno = EPERM;
        return -1;
    }
    rv = ((int (*) (int, const char *, int, const char *, int))next (&real, "linkat")) (
        old, from, at, to, flags);
    return after (act, rv == 0, EEXIST) ? -1 : rv;
}

int link (const char *from, const char *to)
{
    return link_to (AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat (int old, const char *from, int at, const char *to, int flags)
{
    return link_to (old, from, at, to, flags);
}
