/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of the experiment that the nodes do not see. */
#include "launcher/executor/unseen.h"

#include <dirent.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "launcher/trust/trust.h"

/* linux/magic.h lacks these two. */
enum { XFS_MAGIC = 0x58465342, ZFS_MAGIC = 0x2fc12fc1 };

/* ext2 and ext3 have the number of ext4. */
static const struct {
    uint32_t magic;
    const char *name;
} own[] = {
    { EXT4_SUPER_MAGIC, "ext4" },
    { XFS_MAGIC, "xfs" },
    { BTRFS_SUPER_MAGIC, "btrfs" },
    { ZFS_MAGIC, "zfs" },
    { TMPFS_MAGIC, "tmpfs" },
    { RAMFS_MAGIC, "ramfs" },
    { OVERLAYFS_SUPER_MAGIC, "overlay" },
};

const char *unseen_file_system (const char *dir)
{
    struct statfs fs;

    if (statfs (dir, &fs) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof (own) / sizeof (*own); i++)
        if ((uint32_t)fs.f_type == own[i].magic)
            return own[i].name;
    return NULL;
}

/* slurmd makes the file of a task before it starts it. */
static bool has_output (const char *folder, const char *job)
{
    size_t n = strcspn (job, ",");
    DIR *d = opendir (folder);
    bool found = false;

    for (struct dirent *e; d && !found && (e = readdir (d));) {
        size_t length = strlen (e->d_name);
        found = !strncmp (e->d_name, job, n) && e->d_name[n] == '_'
                && length > 4 && !strcmp (e->d_name + length - 4, ".log");
    }
    if (d)
        closedir (d);
    return found;
}

void unseen_text (const struct sweep *s,
                  const char *jobs,
                  const char *state,
                  char *buf,
                  size_t size)
{
    struct slurmdl_error err = { "" };
    const char *type = unseen_file_system (s->dir);
    char folder[PATH_MAX];

    *buf = '\0';
    if (trust_folder (s, folder, sizeof (folder), &err) < 0)
        return;
    for (const char *job = jobs; *job; job += strspn (job, ",")) {
        if (has_output (folder, job))
            return;
        job += strcspn (job, ",");
    }
    if (!strncmp (state, "CANCELLED", 9))
        snprintf (buf, size, "job %.100s was cancelled before it began", jobs);
    else
        snprintf (buf,
                  size,
                  "job %.100s%s%.20s%s has left no output in %.300s: its nodes "
                  "do not see that folder%s%s%s%s",
                  jobs,
                  *state ? " (" : "",
                  state,
                  *state ? ")" : "",
                  folder,
                  type ? " (" : "",
                  type ? type : "",
                  type ? ", this machine's own)" : "",
                  *state ? "" : ", or it was cancelled before it began");
}
