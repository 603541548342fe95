/* SPDX-License-Identifier: Apache-2.0 */
/* Read small files and folders below an open root. */
#include "runtime/host/sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sysfs_file (int root, const char *path, char *buf, int size)
{
    int fd = openat (root, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read (fd, buf, (size_t)size - 1);

    if (fd >= 0)
        close (fd);
    buf[n < 0 ? 0 : n] = '\0';
    return n < 0 ? -1 : 0;
}

int sysfs_line (int root, const char *path, char *buf, int size)
{
    int rv = sysfs_file (root, path, buf, size);

    buf[strcspn (buf, "\n")] = '\0';
    return rv;
}

long sysfs_number (int root, const char *path, long otherwise)
{
    char text[64];
    char *end;
    long n;

    if (sysfs_line (root, path, text, sizeof (text)) < 0)
        return otherwise;
    n = strtol (text, &end, 0);
    return end == text ? otherwise : n;
}

void sysfs_each (int root, const char *folder, struct topology *t,
                 void (*f) (int, struct topology *, const char *))
{
    int fd = openat (root, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    struct dirent *e;

    if (!dir) {
        if (fd >= 0)
            close (fd);
        return;
    }
    while ((e = readdir (dir)))
        if (e->d_name[0] != '.')
            f (root, t, e->d_name);
    closedir (dir);
}
