/* SPDX-License-Identifier: Apache-2.0 */
/* Link or copy files, depending on who owns them. */
#include "launcher/sys/take_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/user.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"
#include "runtime/storage/origin.h"

static int copy_data (int from, int to)
{
    static const size_t size = 1 << 20;
    char *buf = xmalloc (size);
    ssize_t n;

    while ((n = read (from, buf, size)) > 0)
        for (ssize_t at = 0, k; at < n; at += k)
            if ((k = write (to, buf + at, (size_t)(n - at))) < 0)
                goto fail;
    free (buf);
    return n < 0 ? -1 : 0;
fail:
    free (buf);
    return -1;
}

static int copy_file (int in, int folder, const char *name, bool keep)
{
    char tmp[64];
    uint32_t owner;
    int out;
    int rv;
    int e;

    link_tmp_name (tmp, sizeof (tmp), "");
    out = inside_open_at (folder, tmp, O_RDWR | O_CREAT | O_EXCL, 0644, NULL);
    if (out < 0)
        return -1;
    rv = copy_data (in, out);
    if (rv == 0 && keep)
        rv = origin_keep (in, out, &owner) < 0 ? -1 : 0;
    if (rv == 0)
        rv = fsync (out);
    if (close (out) < 0)
        rv = -1;
    if (rv == 0)
        rv = link_replace_at (folder, tmp, name);
    if (rv < 0) {
        e = errno;
        unlinkat (folder, tmp, 0);
        errno = e;
    }
    return rv;
}

/* Link the open file itself, because another file may have its name by now. */
static int link_file (int in, int folder, const char *name)
{
    char opened[32];

    snprintf (opened, sizeof (opened), "/proc/self/fd/%d", in);
    return linkat (AT_FDCWD, opened, folder, name, AT_SYMLINK_FOLLOW);
}

static int take_open_file (int in, const char *to, bool may_link, bool keep)
{
    const char *name;
    int folder = inside_parent (to, &name);
    int rv = -1;

    if (folder >= 0 && (!may_link || (rv = link_file (in, folder, name)) < 0))
        rv = copy_file (in, folder, name, keep);
    return inside_close (folder, rv);
}

int file_take (const char *from, const char *to)
{
    struct stat st = { 0 };
    int in = inside_open_any (from, O_RDONLY, 0, &st);
    int rv = in < 0 ? -1 : take_open_file (in, to, st.st_uid == geteuid (), true);

    return inside_close (in, rv);
}

static bool is_of (int fd, const struct stat *st, uid_t owner)
{
    uint32_t whose;

    if (owner == (uid_t)ANYBODY)
        return true;
    return (user_writes_alone (st) || inside_is_of (st, owner))
           && (origin_mark_is_own (fd, (uint64_t)st->st_size, &whose) || whose == owner);
}

static int take_of (const char *from, const char *to, uid_t owner, bool may_link)
{
    struct stat st;
    int in = inside_open_any (from, O_RDONLY, 0, &st);
    int rv = -1;

    if (in >= 0 && !is_of (in, &st, owner))
        errno = EPERM;
    else if (in >= 0)
        rv = take_open_file (in, to, may_link, false);
    return inside_close (in, rv);
}

int file_take_of (const char *from, const char *to, uid_t owner)
{
    return take_of (from, to, owner, true);
}

int file_copy_of (const char *from, const char *to, uid_t owner)
{
    return take_of (from, to, owner, false);
}

void complain_owner (const char *name, uint32_t owner)
{
    const struct passwd *pw = owner == ORIGIN_OTHERS ? NULL : getpwuid ((uid_t)owner);
    char whose[64];

    snprintf (whose, sizeof (whose), "user %lu", (unsigned long)owner);
    complain ("%s has data of %s, and slurmdl unpickles nothing of it without "
              "trust=True; --trust makes it your own",
              name,
              owner == ORIGIN_OTHERS ? "a file that others may write to"
              : pw                   ? pw->pw_name
                                     : whose);
}

enum origin_result file_keep_owner (int from, int to, const char *name, bool trust)
{
    struct stat st;
    uint32_t owner;
    enum origin_result rv;

    if (trust)
        return fstat (to, &st) < 0
                       || ftruncate (to, (off_t)origin_at (to, (uint64_t)st.st_size)) < 0
                   ? ORIGIN_FAILED
                   : ORIGIN_OWN;
    rv = origin_keep (from, to, &owner);
    if (rv == ORIGIN_MARKED)
        complain_owner (name, owner);
    return rv;
}
