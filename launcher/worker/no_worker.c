/* SPDX-License-Identifier: Apache-2.0 */
/* Why no worker of an array has begun: what it printed, or that the nodes do
 * not see the folder.
 */
#include "launcher/worker/no_worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "launcher/config/log_policy.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/storage/inside.h"

enum { TAIL = 16384 };

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

/* Whether 'name' is the output of a task of one of the arrays. */
static bool is_output (const char *name, const char *jobs)
{
    size_t length = strlen (name);

    if (length < 4 || strcmp (name + length - 4, ".log") || !word_fits (name))
        return false;
    for (size_t n; *jobs; jobs += n + (jobs[n] == ',')) {
        n = strcspn (jobs, ",");
        if (!strncmp (name, jobs, n) && name[n] == '_')
            return true;
    }
    return false;
}

/* The output that was written last; slurmd makes the file of a task before it
 * starts it.  Returns -1 if there is none.
 */
static int newest_output (const char *folder, const char *jobs, char *name, size_t size)
{
    struct timespec newest = { 0 };
    DIR *d = opendir (folder);
    int rv = -1;

    for (struct dirent *e; d && (e = readdir (d));) {
        struct stat st;
        if (!is_output (e->d_name, jobs)
            || fstatat (dirfd (d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0
            || st.st_mtim.tv_sec < newest.tv_sec
            || (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec < newest.tv_nsec))
            continue;
        newest = st.st_mtim;
        snprintf (name, size, "%s", e->d_name);
        rv = 0;
    }
    if (d)
        closedir (d);
    return rv;
}

/* Slurm's own words of the end of a step. */
static bool is_slurms (const char *line)
{
    return !strncmp (line, "srun: ", 6) || !strncmp (line, "slurmstepd: ", 12);
}

/* The last line that says something, without "dl: "; NULL: there is none. */
static char *last_line (char *text)
{
    char *found = NULL;
    char *save = NULL;

    for (char *line = strtok_r (text, "\r\n", &save); line; line = strtok_r (NULL, "\r\n", &save))
        if (line[strspn (line, " \t")] && !is_slurms (line))
            found = line;
    return found && !strncmp (found, "dl: ", 4) ? found + 4 : found;
}

void last_words_text (const struct sweep *s, const char *jobs, char *buf, size_t size)
{
    char folder[PATH_MAX], name[NAME_MAX + 1], path[2 * PATH_MAX];
    char text[TAIL + 1];
    char *line;

    *buf = '\0';
    if (trust_folder (s, folder, sizeof (folder), NULL) < 0
        || newest_output (folder, jobs, name, sizeof (name)) < 0)
        return;
    snprintf (path, sizeof (path), "%s/%s", folder, name);
    text[file_tail (inside_open_any (path, O_RDONLY, 0, NULL), text, TAIL)] = '\0';
    if (!(line = last_line (text)))
        return;
    snprintf (buf, size, "%.300s", line);
    policy_text (buf);
    snprintf (buf + strlen (buf), size - strlen (buf), "; see %s", path);
}

void unseen_text (const struct sweep *s, const char *jobs, const char *state, char *buf,
                  size_t size)
{
    const char *type = unseen_file_system (s->dir);
    char folder[PATH_MAX], name[NAME_MAX + 1];

    last_words_text (s, jobs, buf, size);
    if (*buf || trust_folder (s, folder, sizeof (folder), NULL) < 0
        || newest_output (folder, jobs, name, sizeof (name)) == 0)
        return;
    if (!strncmp (state, "CANCELLED", 9))
        snprintf (buf, size, "job %.100s was cancelled before it began", jobs);
    else
        snprintf (buf, size,
                  "job %.100s%s%.20s%s has left no output in %.300s: its nodes "
                  "do not see that folder%s%s%s%s",
                  jobs, *state ? " (" : "", state, *state ? ")" : "", folder, type ? " (" : "",
                  type ? type : "", type ? ", this machine's own)" : "",
                  *state ? "" : ", or it was cancelled before it began");
}
