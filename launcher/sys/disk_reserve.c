/* SPDX-License-Identifier: Apache-2.0 */
/* Reserve, spend and measure disk space. */
#include "launcher/sys/disk_reserve.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "launcher/sys/publish_file.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

/* Bytes; enough for a hundred results. */
enum { RESERVE = 64 << 10 };

static const char content[RESERVE];

bool disk_is_full (int e)
{
    return e == ENOSPC || e == EDQUOT;
}

static void reserve_path (char *buf, size_t size, const char *dir)
{
    snprintf (buf, size, "%s/reserve", dir);
}

int disk_reserve_make (const char *dir, struct slurmdl_error *err)
{
    char path[PATH_MAX];

    reserve_path (path, sizeof (path), dir);
    if (access (path, F_OK) == 0)
        return 0;
    return publish_if_absent (path, content, sizeof (content), err) < 0 ? -1 : 0;
}

int disk_reserve_spend (const char *dir)
{
    char path[PATH_MAX];

    reserve_path (path, sizeof (path), dir);
    return inside_unlink (path, 0);
}

bool disk_reserve_is_spent (const char *dir)
{
    char path[PATH_MAX];

    reserve_path (path, sizeof (path), dir);
    return access (path, F_OK) < 0 && errno == ENOENT;
}

int disk_error (const char *dir)
{
    char path[PATH_MAX];
    char probe[PATH_MAX];
    int e = 0;

    snprintf (path, sizeof (path), "%s/probe", dir);
    link_tmp_name (probe, sizeof (probe), path);
    if (publish_if_absent (probe, content, sizeof (content), NULL) < 0)
        e = errno;
    inside_unlink (probe, 0);
    return disk_is_full (e) ? e : 0;
}
