/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen code: pack it into an archive, and unpack that into the folder in which trials run. */
#include "launcher/code/code.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/user.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/base/symbols.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

/* ---- libarchive, loaded on first use: it costs 2 ms, and few commands pack or unpack code ---- */

/* clang-format off */
#define LIBARCHIVE_FUNCTIONS(X) \
    X (archive_entry_filetype) X (archive_entry_free) \
    X (archive_entry_hardlink) X (archive_entry_new) \
    X (archive_entry_pathname) X (archive_entry_perm) \
    X (archive_entry_set_filetype) X (archive_entry_set_mtime) \
    X (archive_entry_set_pathname) X (archive_entry_set_perm) \
    X (archive_entry_set_size) X (archive_entry_set_symlink) \
    X (archive_entry_size) X (archive_entry_symlink) \
    X (archive_error_string) X (archive_read_data) X (archive_read_free) \
    X (archive_read_new) X (archive_read_next_header) \
    X (archive_read_open_memory) X (archive_read_support_filter_zstd) \
    X (archive_read_support_format_tar) \
    X (archive_write_add_filter_zstd) X (archive_write_close) \
    X (archive_write_data) X (archive_write_free) X (archive_write_header) \
    X (archive_write_new) X (archive_write_open2) \
    X (archive_write_set_bytes_in_last_block) \
    X (archive_write_set_format_pax_restricted)

struct libarchive {
#define LIBARCHIVE_FIELD(name) __typeof__ (name) *name;
    LIBARCHIVE_FUNCTIONS (LIBARCHIVE_FIELD)
#undef LIBARCHIVE_FIELD
};
/* clang-format on */

static struct libarchive libarchive;
static bool libarchive_is_loaded;

#define ENTRY(name) { #name, offsetof (struct libarchive, name) },
static const struct symbol libarchive_symbols[] = { LIBARCHIVE_FUNCTIONS (ENTRY){ NULL } };

static void load_libarchive (void)
{
    libarchive_is_loaded = !symbols_load (
        &libarchive, dlopen (ARCHIVE_SONAME, RTLD_LAZY | RTLD_LOCAL), libarchive_symbols);
}

/* Call this before any function of the library. */
static int libarchive_load (struct slurmdl_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once (&once, load_libarchive);
    if (libarchive_is_loaded)
        return 0;
    errno = ELIBACC;
    return errorf (err, "frozen code needs libarchive (" ARCHIVE_SONAME "): install it");
}

/* All files get the time 2000-01-01, so that equal files make equal archives. */
enum { FILE_TIME = 946684800, CONTENT_MAX = 80 << 20 };

/* Far more than dl ever freezes (code.h).  A small archive that unpacks to more was made to
 * fill a disk, or to keep its reader busy for days.
 */
enum { TOTAL_MAX = 256 << 20, ENTRIES_MAX = 100000 };

/* ---- packing ---- */

struct archive_packing {
    struct code_archive *archive;
    size_t capacity;
};

static la_ssize_t append_packed (struct archive *a, void *arg, const void *data, size_t size)
{
    struct archive_packing *p = arg;
    struct code_archive *c = p->archive;

    (void)a;
    if (array_reserve (&c->data, &p->capacity, c->size, size, 1) < 0)
        out_of_memory ();
    memcpy (c->data + c->size, data, size);
    c->size += size;
    return (la_ssize_t)size;
}

/* Read the whole file before packing it, because its size may change meanwhile, and the archive
 * needs the size first.
 */
static char *read_file_to_pack (const char *root, const char *path, size_t *size)
{
    char full[PATH_MAX];
    struct stat st;
    char *text = NULL;
    ssize_t n = -1;
    int fd;

    snprintf (full, sizeof (full), "%s/%s", root, path);
    if ((fd = open (full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) < 0)
        return NULL;
    *size = 0;
    if (fstat (fd, &st) == 0 && S_ISREG (st.st_mode) && st.st_size <= CONTENT_MAX) {
        text = xmalloc ((size_t)st.st_size + 1);
        while (*size < (size_t)st.st_size
               && (n = read (fd, text + *size, (size_t)st.st_size - *size)) > 0)
            *size += (size_t)n;
    }
    if (text && n < 0 && st.st_size > 0) {
        free (text);
        text = NULL;
    }
    close (fd);
    return text;
}

static int pack_file (struct archive *a, const struct code_files *c, const struct code_file *f)
{
    struct archive_entry *entry = libarchive.archive_entry_new ();
    size_t size = 0;
    bool is_folder = !f->target && S_ISDIR (f->mode);
    char *text = f->target || is_folder ? NULL : read_file_to_pack (c->root, f->path, &size);
    int rv = entry && (text || f->target || is_folder) ? 0 : -1;

    libarchive.archive_entry_set_pathname (entry, f->path);
    libarchive.archive_entry_set_mtime (entry, FILE_TIME, 0);
    libarchive.archive_entry_set_filetype (entry, f->target   ? AE_IFLNK
                                                  : is_folder ? AE_IFDIR
                                                              : AE_IFREG);
    libarchive.archive_entry_set_perm (entry, f->target ? 0777 : f->mode & S_IXUSR ? 0755 : 0644);
    libarchive.archive_entry_set_size (entry, (la_int64_t)size);
    if (f->target)
        libarchive.archive_entry_set_symlink (entry, f->target);
    if (rv == 0
        && (libarchive.archive_write_header (a, entry) < ARCHIVE_WARN
            || (size > 0 && libarchive.archive_write_data (a, text, size) < 0)))
        rv = -1;
    libarchive.archive_entry_free (entry);
    free (text);
    return rv;
}

static int pack_files (struct archive *a, const struct code_files *c, struct slurmdl_error *err)
{
    for (size_t i = 0; i < c->n; i++)
        if (pack_file (a, c, &c->list[i]) < 0)
            return errorf (err, "%s/%s: cannot be frozen: %s", c->root, c->list[i].path,
                           libarchive.archive_error_string (a) ?: strerror (errno));
    return 0;
}

int code_archive_pack (const struct code_files *c, struct code_archive *archive,
                       struct slurmdl_error *err)
{
    struct archive_packing p = { .archive = archive };
    struct archive *a;
    int rv = -1;

    *archive = (struct code_archive){ .data = NULL };
    if (libarchive_load (err) < 0)
        return -1;
    if (!(a = libarchive.archive_write_new ()))
        out_of_memory ();
    if (libarchive.archive_write_add_filter_zstd (a) < ARCHIVE_WARN
        || libarchive.archive_write_set_format_pax_restricted (a) < ARCHIVE_WARN
        || libarchive.archive_write_set_bytes_in_last_block (a, 1) < ARCHIVE_WARN
        || libarchive.archive_write_open2 (a, &p, NULL, append_packed, NULL, NULL) < ARCHIVE_WARN)
        errorf (err, "cannot create an archive: %s", libarchive.archive_error_string (a));
    else if (pack_files (a, c, err) == 0 && libarchive.archive_write_close (a) == ARCHIVE_OK)
        rv = 0;
    else
        errorf (err, "%s: cannot be frozen", c->root);
    libarchive.archive_write_free (a);
    if (rv == 0)
        digest_of (archive->digest, archive->data, archive->size);
    else
        code_archive_free (archive);
    return rv;
}

void code_archive_free (struct code_archive *a)
{
    free (a->data);
    *a = (struct code_archive){ .data = NULL };
}

/* ---- reading ---- */

static bool is_good_name (const char *path)
{
    if (!path || !*path || *path == '/')
        return false;
    while (*path) {
        size_t n = strcspn (path, "/");
        if (n == 0 || (n <= 2 && strspn (path, ".") >= n))
            return false;
        path += n + (path[n] == '/');
    }
    return true;
}

/* A file's content, or a link's target; the caller frees it. */
static char *entry_content (struct archive *a, struct archive_entry *entry, size_t *size)
{
    la_int64_t wanted = libarchive.archive_entry_size (entry);
    char *text;

    if (libarchive.archive_entry_filetype (entry) == AE_IFLNK) {
        const char *target = libarchive.archive_entry_symlink (entry);
        *size = target ? strlen (target) : 0;
        return target ? xstrdup (target) : NULL;
    }
    if (libarchive.archive_entry_filetype (entry) == AE_IFDIR) {
        *size = 0;
        return xstrdup ("");
    }
    if (libarchive.archive_entry_filetype (entry) != AE_IFREG || wanted < 0 || wanted > CONTENT_MAX
        || libarchive.archive_entry_hardlink (entry))
        return NULL;
    text = xmalloc ((size_t)wanted + 1);
    *size = (size_t)wanted;
    if (wanted == 0 || libarchive.archive_read_data (a, text, *size) == wanted)
        return text;
    free (text);
    return NULL;
}

typedef int (*entry_f) (struct archive_entry *entry, const char *text, size_t size, void *arg);

static int read_archive_entries (struct archive *a, entry_f f, void *arg)
{
    struct archive_entry *entry;
    size_t total = 0;
    long n = 0;
    int rv;

    while ((rv = libarchive.archive_read_next_header (a, &entry)) == ARCHIVE_OK) {
        size_t size = 0;
        char *text = is_good_name (libarchive.archive_entry_pathname (entry))
                         ? entry_content (a, entry, &size)
                         : NULL;
        bool fits = (total += size) <= TOTAL_MAX && ++n <= ENTRIES_MAX;
        errno = !text ? EBADMSG : fits ? errno : EFBIG;
        rv = text && fits ? f (entry, text, size, arg) : -1;
        free (text);
        if (rv < 0)
            return -1;
    }
    errno = rv == ARCHIVE_EOF ? errno : EBADMSG;
    return rv == ARCHIVE_EOF ? 0 : -1;
}

/* Enable only the one format that dl writes, so that bugs in libarchive's other readers do not
 * matter.
 */
static int read_archive (const void *data, size_t size, entry_f f, void *arg,
                         struct slurmdl_error *err)
{
    struct archive *a;
    int rv = -1;

    if (libarchive_load (err) < 0)
        return -1;
    a = libarchive.archive_read_new ();
    errno = EBADMSG;
    if (a && libarchive.archive_read_support_filter_zstd (a) >= ARCHIVE_WARN
        && libarchive.archive_read_support_format_tar (a) >= ARCHIVE_WARN
        && libarchive.archive_read_open_memory (a, data, size) == ARCHIVE_OK)
        rv = read_archive_entries (a, f, arg);
    libarchive.archive_read_free (a);
    return rv;
}

/* ---- unpacking ---- */

static int make_parents (char *path, size_t root)
{
    for (char *slash = path + root; (slash = strchr (slash + 1, '/'));) {
        *slash = '\0';
        int rv = inside_mkdir (path, 0777);
        *slash = '/';
        if (rv < 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

static int make_file (int folder, const char *name, mode_t mode, const char *text, size_t size)
{
    int fd = inside_open_at (folder, name, O_WRONLY | O_CREAT | O_EXCL, mode & 0777, NULL);
    ssize_t n = 0;

    if (fd < 0)
        return -1;
    for (size_t at = 0; at < size; at += (size_t)n)
        if ((n = write (fd, text + at, size - at)) <= 0)
            break;
    return close (fd) < 0 || n < 0 ? -1 : 0;
}

static int make_entry (struct archive_entry *entry, const char *text, size_t size, void *arg)
{
    bool is_folder = libarchive.archive_entry_filetype (entry) == AE_IFDIR;
    const char *dir = arg;
    char path[PATH_MAX];
    const char *name;
    int folder;
    int rv;

    if (snprintf (path, sizeof (path), "%s/%s", dir, libarchive.archive_entry_pathname (entry))
        >= (int)sizeof (path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (is_folder && path[strlen (path) - 1] == '/')
        path[strlen (path) - 1] = '\0';
    folder = inside_parent (path, &name);
    if (folder < 0 && errno == ENOENT && make_parents (path, strlen (dir)) == 0)
        folder = inside_parent (path, &name);
    if (folder < 0)
        return -1;
    rv = is_folder ? mkdirat (folder, name, 0777)
         : libarchive.archive_entry_filetype (entry) == AE_IFLNK
             ? symlinkat (text, folder, name)
             : make_file (folder, name, libarchive.archive_entry_perm (entry), text, size);
    return inside_close (folder, rv);
}

int code_archive_unpack (const void *data, size_t size, const char *dir, struct slurmdl_error *err)
{
    if (read_archive (data, size, make_entry, (void *)dir, err) == 0)
        return 0;
    return errorf (err, "%s: cannot unpack the frozen code: %s", dir, inside_error (errno));
}

/* ---- showing ---- */

struct looking {
    void (*f) (const char *path, const void *text, size_t size, void *arg);
    void *arg;
};

static int show_entry (struct archive_entry *entry, const char *text, size_t size, void *arg)
{
    const struct looking *l = arg;

    if (libarchive.archive_entry_filetype (entry) == AE_IFDIR)
        return 0;
    l->f (libarchive.archive_entry_pathname (entry), text, size, l->arg);
    return 0;
}

int code_archive_each (const void *data, size_t size,
                       void (*f) (const char *path, const void *text, size_t size, void *arg),
                       void *arg, struct slurmdl_error *err)
{
    struct looking l = { f, arg };

    if (read_archive (data, size, show_entry, &l, err) == 0)
        return 0;
    return errorf (err, "cannot read the frozen code: %s", strerror (errno));
}

/* ---- the folder in which trials run ---- */

enum { LEVELS = 2, SIBLINGS_MAX = 1000 };

/* The last three names of a path: of "/a/b/c/d", return "/b/c/d". */
static const char *last_names (const char *root)
{
    const char *from = root + strlen (root);

    for (int i = 0; i <= LEVELS && from > root; i++)
        do
            from--;
        while (from > root && *from != '/');
    return from;
}

int code_copy_path (const struct code_copy *c, char *buf, size_t size)
{
    size_t n = strlen (c->root);

    if (strncmp (c->dir, c->root, n) || (c->dir[n] && c->dir[n] != '/')) {
        errno = EBADMSG;
        return -1;
    }
    if (snprintf (buf, size, "%s%s%s", c->base, last_names (c->root), c->dir + n) < (int)size)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

int code_copy_check (const struct code_copy *c, struct slurmdl_error *err)
{
    if (user_folder_check (c->base) == 0)
        return 0;
    if (errno != EPERM)
        return errorf (err, "%s: %s", c->base, inside_error (errno));
    return errorf (err, "%s: others may write to this copy of the code: remove it", c->base);
}

/* Link the entries beside a folder into the folder around its copy, so that relative paths to them
 * still work.  Skip a parent that belongs to somebody else or that everybody can write to, and stop
 * after very many entries.
 */
static void link_siblings (const char *parent, const char *copy, const char *own)
{
    char target[PATH_MAX];
    struct dirent *d;
    struct stat st;
    int to = inside_open (copy, O_RDONLY | O_DIRECTORY, 0, NULL);
    DIR *all = to < 0 ? NULL : opendir (parent);
    int n = 0;

    if (all && fstat (dirfd (all), &st) == 0 && st.st_uid == geteuid () && !(st.st_mode & S_IWOTH))
        while (n < SIBLINGS_MAX && (d = readdir (all))) {
            bool is_special = !strcmp (d->d_name, ".") || !strcmp (d->d_name, "..")
                              || !strcmp (d->d_name, own) || !strcmp (d->d_name, "__pycache__");
            snprintf (target, sizeof (target), "%s/%s", parent, d->d_name);
            if (!is_special && symlinkat (target, to, d->d_name) == 0)
                n++;
        }
    if (all)
        closedir (all);
    if (to >= 0)
        close (to);
}

/* Make the copy of the folder root[0..len).  If it is above the root, fill it with links.
 */
static int make_copy_folder (const char *base, const char *root, size_t len)
{
    size_t first = (size_t)(last_names (root) - root);
    char original[PATH_MAX];
    char own[NAME_MAX + 1];
    char copy[PATH_MAX];

    snprintf (copy, sizeof (copy), "%s%.*s", base, (int)(len - first), root + first);
    if (inside_mkdir (copy, 0777) < 0)
        return -1;
    if (!root[len])
        return 0;
    snprintf (original, sizeof (original), "%.*s", (int)len, root);
    snprintf (own, sizeof (own), "%.*s", (int)strcspn (root + len + 1, "/"), root + len + 1);
    link_siblings (original, copy, own);
    return 0;
}

static int make_copy_folders (const char *base, const char *root)
{
    size_t len = (size_t)(last_names (root) - root);

    while (root[len]) {
        len += 1 + strcspn (root + len + 1, "/");
        if (make_copy_folder (base, root, len) < 0)
            return -1;
    }
    return 0;
}

static int fill_copy (const char *base, const struct code_copy *c, const struct code_archive *a,
                      struct slurmdl_error *err)
{
    char path[PATH_MAX];

    if (mkdir (base, 0700) < 0 || make_copy_folders (base, c->root) < 0)
        return errorf (err, "%s: cannot create a copy of the code: %s", base, inside_error (errno));
    snprintf (path, sizeof (path), "%s%s", base, last_names (c->root));
    return code_archive_unpack (a->data, a->size, path, err);
}

int code_copy_make (const struct code_copy *c, const struct code_archive *a,
                    struct slurmdl_error *err)
{
    char tmp[PATH_MAX];
    int rv;
    int e;

    link_tmp_name (tmp, sizeof (tmp), c->base);
    rv = fill_copy (tmp, c, a, err);
    if (rv == 0 && rename (tmp, c->base) < 0 && errno != EEXIST && errno != ENOTEMPTY)
        rv = errorf (err, "%s: %s", c->base, strerror (errno));
    e = errno;
    remove_tree (tmp);
    errno = e;
    return rv < 0 ? -1 : code_copy_check (c, err);
}
