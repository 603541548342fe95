/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations of servers and workers: numbered files, put if absent. */
#include "runtime/ps/registration.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/ps/wire.h"
#include "runtime/storage/link.h"
#include "runtime/storage/whole_file.h"

enum { KEEP = 4, LOOKS = 100 };

static void psregistration_path (
    char *path, const char *dir, const char *role, long index, uint64_t number)
{
    snprintf (
        path, PATH_MAX, "%.3900s/%s-%ld.%08" PRIu64, dir, role, index, number);
}

/* The highest number of a place; 0: none. */
static int
highest (const char *dir, const char *role, long index, uint64_t *number)
{
    DIR *d = opendir (dir);
    char prefix[64];
    struct dirent *e;
    char *end;

    *number = 0;
    if (!d)
        return errno == ENOENT ? 0 : -1;
    snprintf (prefix, sizeof (prefix), "%s-%ld.", role, index);
    while ((e = readdir (d)))
        if (!strncmp (e->d_name, prefix, strlen (prefix))) {
            const char *digits = e->d_name + strlen (prefix);
            uint64_t n = strtoull (digits, &end, 10);
            if (end != digits && !*end && n > *number)
                *number = n;
        }
    closedir (d);
    return 0;
}

/* Whether its texts end, whoever has written them. */
static bool is_sane (const struct ps_entry *e)
{
    for (int i = 0; i < PS_ADDRESSES; i++)
        if (!memchr (e->address[i], '\0', sizeof (e->address[i])))
            return false;
    return e->version == PS_VERSION && e->nsaved <= PS_SAVES
           && memchr (e->host, '\0', sizeof (e->host))
           && memchr (e->member.boot, '\0', sizeof (e->member.boot));
}

static int read_entry (const char *path, struct ps_entry *e)
{
    void *data;
    size_t n;

    if (message_get (path, &data, &n) < 0)
        return -1;
    if (n == sizeof (*e))
        memcpy (e, data, n);
    free (data);
    if (n == sizeof (*e) && is_sane (e))
        return 0;
    errno = EPROTO;
    return -1;
}

/* An entry that went while we looked has a successor. */
int psregistration_newest (const char *dir,
                           const char *role,
                           long index,
                           uint64_t *number,
                           struct ps_entry *e)
{
    char path[PATH_MAX];

    for (int i = 0; i < LOOKS; i++) {
        if (highest (dir, role, index, number) < 0)
            return -1;
        if (!*number)
            return 0;
        psregistration_path (path, dir, role, index, *number);
        if (read_entry (path, e) == 0)
            return 1;
        if (errno != ENOENT)
            return -1;
    }
    return -1;
}

static int write_synced (const char *tmp, const struct ps_entry *e)
{
    int fd;
    int rv;

    if (message_put (tmp, e, sizeof (*e)) < 0)
        return -1;
    if ((fd = open (tmp, O_RDONLY | O_CLOEXEC)) < 0)
        return -1;
    rv = fsync (fd);
    close (fd);
    return rv;
}

int psregistration_put (const char *dir,
                        const char *role,
                        long index,
                        uint64_t number,
                        const struct ps_entry *e)
{
    char path[PATH_MAX];
    char tmp[PATH_MAX];
    uint64_t newest;
    int rv;
    int saved;

    psregistration_path (path, dir, role, index, number);
    link_tmp_name (tmp, sizeof (tmp), path);
    rv = write_synced (tmp, e);
    if (rv == 0)
        rv = link_if_absent (tmp, path);
    if (rv) {
        saved = errno;
        unlink (tmp);
        errno = saved;
        return rv;
    }
    if (highest (dir, role, index, &newest) < 0)
        return -1;
    if (number > KEEP) {
        psregistration_path (path, dir, role, index, number - KEEP);
        unlink (path);
    }
    return newest > number;
}

void psregistration_lose (const char *dir,
                          const char *role,
                          long index,
                          uint64_t number,
                          const struct ps_entry *e)
{
    struct ps_entry lost = *e;

    lost.state = PS_LOST;
    psregistration_put (dir, role, index, number + 1, &lost);
}

const struct ps_saved *
psregistration_saved (const struct ps_entry *e, int64_t clock, int64_t servers)
{
    for (uint32_t i = 0; i < e->nsaved; i++)
        if (e->saved[i].clock == clock && e->saved[i].servers == servers)
            return &e->saved[i];
    return NULL;
}

static bool all_saved (const char *dir, const struct ps_saved *s, bool serving)
{
    struct ps_entry e;
    uint64_t number;

    for (long i = 0; i < s->servers; i++)
        if (psregistration_newest (dir, "server", i, &number, &e) != 1
            || (serving && e.state == PS_RESTORING)
            || !psregistration_saved (&e, s->clock, s->servers))
            return false;
    return true;
}

/* Server 0 has a part in each. */
int64_t psregistration_common (const char *dir, bool serving, int64_t *servers)
{
    struct ps_entry e;
    uint64_t number;

    if (psregistration_newest (dir, "server", 0, &number, &e) != 1)
        return -1;
    for (uint32_t i = e.nsaved; i > 0; i--)
        if (all_saved (dir, &e.saved[i - 1], serving)) {
            *servers = e.saved[i - 1].servers;
            return e.saved[i - 1].clock;
        }
    return -1;
}

void psregistration_describe (struct ps_entry *e)
{
    memset (e, 0, sizeof (*e));
    e->version = PS_VERSION;
    e->state = PS_SERVING;
    process_id_describe (&e->member);
    /* without one, of zeros, nobody is let in */
    if (getrandom (e->token, sizeof (e->token), 0) != sizeof (e->token))
        memset (e->token, 0, sizeof (e->token));
    if (gethostname (e->host, sizeof (e->host)) < 0)
        strcpy (e->host, "unknown host");
    e->host[sizeof (e->host) - 1] = '\0';
}

char *psregistration_save_path (char *path,
                                size_t size,
                                const char *dir,
                                long server,
                                const struct ps_saved *s)
{
    snprintf (path,
              size,
              "%.3900s/%08" PRId64 ".server-%ld.%" PRIu64 ".h5",
              dir,
              s->clock,
              server,
              s->claim);
    return path;
}
