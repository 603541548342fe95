/* SPDX-License-Identifier: Apache-2.0 */
/* FUSE: emulate an NFS client of a folder that other clients use, too.
 *
 * usage: nfs -o OPTION,... MOUNTPOINT     (stays in the foreground)
 *
 *     backing=DIR   the server's folder; each mount of it is one client
 *     negative=S    cache names for S seconds: a missing name stays missing,
 *                   although readdir and an exclusive create see it, and a
 *                   removed name gives ESTALE
 *     attr=S        cache attributes for S seconds; open() refreshes them
 *     writeback=S   keep written data for at most S seconds, until this client
 *                   syncs, closes or reads the file
 *     lost=P        lose P percent of the replies to link, symlink, mkdir,
 *                   rename, unlink and exclusive open: the call succeeds, but
 *                   returns EIO or the error of a second try (EEXIST, ENOENT)
 *     seed=N        random seed for lost replies
 *     full=FILE     while this file exists the server's disk is full: writes
 *                   succeed, but sync, close and creating files return ENOSPC
 *
 * A file that another client has unlinked gives ESTALE.  There is one thread, so
 * that the same calls always give the same results.
 */
#define FUSE_USE_VERSION 31
#include <fuse.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ATTRS = 4096 };

/* Data not yet sent to the server. */
struct piece {
    struct piece *next;
    off_t at;
    size_t size;
    char data[];
};

struct handle {
    struct handle *next;
    int fd;
    ino_t ino;
    int ours; /* unlinked by this client, which still has it open */
    double since;
    int error; /* of a delayed write; sync or close returns it */
    struct piece *pieces, **end;
};

static struct client {
    char *backing;
    char *full;
    double negative;
    double attr;
    double writeback;
    double lost;
    unsigned seed;
    uint64_t random;
    struct handle *open;
    struct {
        struct stat st;
        double since;
    } attrs[ATTRS];
} client;

static double now (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static const char *server (char *buf, const char *path)
{
    snprintf (buf, PATH_MAX, "%s%s", client.backing, path);
    return buf;
}

static int is_full (void)
{
    return client.full && access (client.full, F_OK) == 0;
}

/* ---- lost replies ---- */

static uint64_t draw (void)
{
    client.random = client.random * 6364136223846793005u + 1442695040888963407u;
    return client.random >> 33;
}

/* The reply to a call that returned rv, 0 or -1 with errno; lost replies fail. */
static int reply (int rv, int again)
{
    int rv_now = rv < 0 ? -errno : 0;
    uint64_t roll = draw ();

    if (rv == 0 && (double)(roll % 10000) < client.lost * 100)
        return roll >> 20 & 1 ? -EIO : -again;
    return rv_now;
}

/* ---- attributes ---- */

static void forget (ino_t ino)
{
    client.attrs[ino % ATTRS].since = 0;
}

static void forget_path (const char *p)
{
    struct stat st;

    if (lstat (p, &st) == 0)
        forget (st.st_ino);
}

static int attributes (int rv, struct stat *st)
{
    struct stat *old = &client.attrs[st->st_ino % ATTRS].st;
    double *since = &client.attrs[st->st_ino % ATTRS].since;

    if (rv < 0)
        return -errno;
    if (*since > 0 && old->st_ino == st->st_ino && now () - *since < client.attr) {
        *st = *old;
        return 0;
    }
    *old = *st;
    *since = now ();
    return 0;
}

/* ---- delayed writes ---- */

static int flush_handle (struct handle *h)
{
    int full = h->pieces && is_full ();
    struct piece *p;
    struct stat st;
    int rv = full ? -ENOSPC : 0;

    if (h->pieces && rv == 0 && !h->ours && fstat (h->fd, &st) == 0 && st.st_nlink == 0)
        rv = -ESTALE;
    while ((p = h->pieces)) {
        if (rv == 0 && pwrite (h->fd, p->data, p->size, p->at) < 0)
            rv = -errno;
        h->pieces = p->next;
        free (p);
    }
    h->end = &h->pieces;
    forget (h->ino);
    return rv;
}

/* Write back the data of this file, so that a client sees its own writes, and
 * whatever is older than 'writeback' (ino 0: only that). */
static void flush_file (ino_t ino)
{
    double t = now ();

    for (struct handle *h = client.open; h; h = h->next)
        if (h->pieces && (h->ino == ino || t - h->since > client.writeback)) {
            int rv = flush_handle (h);
            h->error = rv < 0 ? rv : h->error;
        }
}

static struct handle *handle_of (struct fuse_file_info *fi)
{
    return (struct handle *)(uintptr_t)fi->fh;
}

static int stale (const struct handle *h)
{
    struct stat st;

    return fstat (h->fd, &st) < 0 || (st.st_nlink == 0 && !h->ours);
}

/* ---- names ---- */

static int do_getattr (const char *path, struct stat *st, struct fuse_file_info *fi)
{
    char buf[PATH_MAX];
    int rv = fi ? fstat (handle_of (fi)->fd, st) : lstat (server (buf, path), st);

    if (rv == 0) {
        flush_file (st->st_ino);
        rv = fi ? fstat (handle_of (fi)->fd, st) : lstat (buf, st);
    }
    if (fi && stale (handle_of (fi)))
        return -ESTALE;
    return attributes (rv, st);
}

static int do_readlink (const char *path, char *to, size_t size)
{
    char buf[PATH_MAX];
    ssize_t n = readlink (server (buf, path), to, size - 1);

    to[n > 0 ? n : 0] = '\0';
    return n < 0 ? -errno : 0;
}

static int do_mkdir (const char *path, mode_t mode)
{
    char buf[PATH_MAX];

    return is_full () ? -ENOSPC : reply (mkdir (server (buf, path), mode), EEXIST);
}

/* A file that this client has open stays usable: NFS renames it to .nfsXXXX. */
static int do_unlink (const char *path)
{
    char buf[PATH_MAX];
    struct stat st;

    if (lstat (server (buf, path), &st) == 0)
        for (struct handle *h = client.open; h; h = h->next)
            if (h->ino == st.st_ino)
                h->ours = 1;
    forget (st.st_ino);
    return reply (unlink (buf), ENOENT);
}

static int do_rmdir (const char *path)
{
    char buf[PATH_MAX];

    return reply (rmdir (server (buf, path)), ENOENT);
}

static int do_symlink (const char *to, const char *path)
{
    char buf[PATH_MAX];

    return is_full () ? -ENOSPC : reply (symlink (to, server (buf, path)), EEXIST);
}

static int do_link (const char *from, const char *path)
{
    char a[PATH_MAX];
    char b[PATH_MAX];

    if (is_full ())
        return -ENOSPC;
    forget_path (server (a, from));
    return reply (link (a, server (b, path)), EEXIST);
}

static int do_rename (const char *from, const char *path, unsigned flags)
{
    char a[PATH_MAX];
    char b[PATH_MAX];

    if (flags)
        return -EINVAL;
    forget_path (server (a, from));
    forget_path (server (b, path));
    return reply (rename (a, b), ENOENT);
}

static int do_readdir (const char *path, void *list, fuse_fill_dir_t fill, off_t at,
                       struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    char buf[PATH_MAX];
    DIR *dir = opendir (server (buf, path));
    struct dirent *e;

    (void)at;
    (void)fi;
    (void)flags;
    if (!dir)
        return -errno;
    flush_file (0);
    while ((e = readdir (dir)))
        fill (list, e->d_name, NULL, 0, 0);
    closedir (dir);
    return 0;
}

/* ---- open files ---- */

/* Open write-only files for reading, too, and drop O_APPEND, with which pwrite()
 * would ignore the offset. */
static int open_file (const char *p, int flags, mode_t mode, struct fuse_file_info *fi)
{
    struct handle *h = calloc (1, sizeof (*h));
    struct stat st;

    if (!h)
        return -ENOMEM;
    if ((flags & O_ACCMODE) == O_WRONLY)
        flags = (flags & ~O_ACCMODE) | O_RDWR;
    h->fd = open (p, (flags & ~O_APPEND) | O_CLOEXEC, mode);
    if (h->fd < 0 || fstat (h->fd, &st) < 0) {
        free (h);
        return -errno;
    }
    h->ino = st.st_ino;
    h->end = &h->pieces;
    h->next = client.open;
    client.open = h;
    flush_file (h->ino);
    forget (h->ino);
    fi->fh = (uintptr_t)h;
    fi->direct_io = 1;
    return 0;
}

static void close_file (struct handle *h)
{
    struct handle **at = &client.open;

    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    flush_handle (h);
    close (h->fd);
    free (h);
}

static int do_create (const char *path, mode_t mode, struct fuse_file_info *fi)
{
    char buf[PATH_MAX];
    int rv;

    if (is_full ())
        return -ENOSPC;
    rv = open_file (server (buf, path), fi->flags | O_CREAT, mode, fi);
    if (rv < 0 || !(fi->flags & O_EXCL))
        return rv;
    if ((rv = reply (0, EEXIST)) < 0)
        close_file (handle_of (fi));
    return rv;
}

/* The kernel opens only names that it has looked up, so a missing one is stale. */
static int do_open (const char *path, struct fuse_file_info *fi)
{
    char buf[PATH_MAX];
    int rv = open_file (server (buf, path), fi->flags & ~(O_CREAT | O_EXCL), 0, fi);

    return rv == -ENOENT ? -ESTALE : rv;
}

static int do_read (const char *path, char *data, size_t size, off_t at, struct fuse_file_info *fi)
{
    struct handle *h = handle_of (fi);
    ssize_t n;

    (void)path;
    if (stale (h))
        return -ESTALE;
    flush_file (h->ino);
    n = pread (h->fd, data, size, at);
    return n < 0 ? -errno : (int)n;
}

static int do_write (const char *path, const char *data, size_t size, off_t at,
                     struct fuse_file_info *fi)
{
    struct handle *h = handle_of (fi);
    struct piece *p = malloc (sizeof (*p) + size);

    (void)path;
    if (!p)
        return -ENOMEM;
    if (!h->pieces)
        h->since = now ();
    *p = (struct piece){ NULL, at, size };
    memcpy (p->data, data, size);
    *h->end = p;
    h->end = &p->next;
    flush_file (0);
    return (int)size;
}

static int do_truncate (const char *path, off_t size, struct fuse_file_info *fi)
{
    char buf[PATH_MAX];
    struct handle *h = fi ? handle_of (fi) : NULL;

    if (h)
        flush_file (h->ino);
    forget_path (server (buf, path));
    return (h ? ftruncate (h->fd, size) : truncate (buf, size)) < 0 ? -errno : 0;
}

static int do_flush (const char *path, struct fuse_file_info *fi)
{
    struct handle *h = handle_of (fi);
    int rv = flush_handle (h);

    (void)path;
    rv = rv < 0 ? rv : h->error;
    h->error = 0;
    return rv;
}

static int do_fsync (const char *path, int data, struct fuse_file_info *fi)
{
    (void)data;
    return do_flush (path, fi);
}

static int do_release (const char *path, struct fuse_file_info *fi)
{
    (void)path;
    close_file (handle_of (fi));
    return 0;
}

/* ---- the client ---- */

/* The kernel caches names; this process caches attributes and data. */
static void *do_init (struct fuse_conn_info *conn, struct fuse_config *cfg)
{
    conn->want &=
        ~(unsigned)(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_WRITEBACK_CACHE);
    cfg->entry_timeout = cfg->negative_timeout = client.negative;
    cfg->attr_timeout = 0;
    cfg->hard_remove = 1;
    cfg->use_ino = 1;
    return NULL;
}

/* clang-format off */
static const struct fuse_operations operations = {
    .init = do_init,
    .getattr = do_getattr, .readlink = do_readlink, .readdir = do_readdir,
    .mkdir = do_mkdir, .unlink = do_unlink, .rmdir = do_rmdir,
    .symlink = do_symlink, .link = do_link, .rename = do_rename,
    .create = do_create, .open = do_open, .release = do_release,
    .read = do_read, .write = do_write, .truncate = do_truncate,
    .flush = do_flush, .fsync = do_fsync,
};

static const struct fuse_opt options[] = {
    { "backing=%s",    offsetof (struct client, backing),   0 },
    { "full=%s",       offsetof (struct client, full),      0 },
    { "negative=%lf",  offsetof (struct client, negative),  0 },
    { "attr=%lf",      offsetof (struct client, attr),      0 },
    { "writeback=%lf", offsetof (struct client, writeback), 0 },
    { "lost=%lf",      offsetof (struct client, lost),      0 },
    { "seed=%u",       offsetof (struct client, seed),      0 },
    FUSE_OPT_END
};
/* clang-format on */

int main (int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT (argc, argv);
    int rv;

    if (fuse_opt_parse (&args, &client, options, NULL) < 0 || !client.backing) {
        fprintf (stderr, "usage: nfs -o backing=DIR[,...] MOUNTPOINT\n");
        return 2;
    }
    client.random = client.seed * 2654435761u + 1;
    draw ();
    umask (0);
    fuse_opt_add_arg (&args, "-s");
    fuse_opt_add_arg (&args, "-f");
    rv = fuse_main (args.argc, args.argv, &operations, NULL);
    fuse_opt_free_args (&args);
    return rv;
}
