/* SPDX-License-Identifier: Apache-2.0 */
/* Which profile of the site a task gets. */
#include "runtime/network/nccl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/rank/variables.h"

void nccl_path (char path[static NCCL_PATH], const char *dir, const char *name)
{
    snprintf (path, NCCL_PATH, "%s/%s.conf", dir, name);
}

/* Whether nobody but root and the owner of 'dir' may put a file there, or
 * another folder in its place.
 */
static bool is_closed (const char *dir)
{
    char path[NCCL_PATH];
    struct stat st;
    uid_t owner;
    char *slash;

    if (stat (dir, &st) < 0)
        return true; /* there is nothing */
    owner = st.st_uid;
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return false;
    snprintf (path, sizeof (path), "%s", dir);
    while ((slash = strrchr (path, '/'))) {
        slash[slash == path] = '\0';
        if (stat (path, &st) < 0 || (st.st_uid != 0 && st.st_uid != owner)
            || (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX)))
            return false;
        if (slash == path)
            break;
    }
    return true;
}

/* The file is of root, or of who has the folder. */
static bool is_theirs (const char *dir, const char *path)
{
    struct stat folder, file;

    return stat (dir, &folder) < 0 || stat (path, &file) < 0 || file.st_uid == 0
           || file.st_uid == folder.st_uid;
}

static int read_profile (const char *dir, const char *path, struct nccl_profile *p, nccl_say_f *say,
                         void *arg)
{
    if (is_closed (dir) && is_theirs (dir, path))
        return nccl_read (path, p, say, arg);
    errno = EPERM;
    return -1;
}

static void read_named (const char *dir, const char *name, struct nccl_profile *p, nccl_say_f *say,
                        void *arg)
{
    char path[NCCL_PATH];
    char line[NCCL_LINE + NCCL_PATH];

    nccl_path (path, dir, name);
    if (read_profile (dir, path, p, say, arg) >= 0 || !say)
        return;
    snprintf (line, sizeof (line), "--dl-nccl=%s: nothing is set: %s: %s", name, path,
              errno == EPERM ? "others than root and its owner may write there" : strerror (errno));
    say (arg, line);
}

/* What the administrator gave NCCL itself is not overridden by our defaults. */
static void drop_configured (const char *file, struct nccl_profile *p)
{
    struct nccl_profile conf = { .n = 0 };
    int n = 0;

    if (nccl_read (file, &conf, NULL, NULL) < 0)
        return;
    for (int i = 0; i < p->n; i++) {
        bool is_there = false;
        for (int j = 0; j < conf.n; j++)
            if (!strcmp (conf.settings[j].name, p->settings[i].name))
                is_there = true;
        if (!is_there)
            p->settings[n++] = p->settings[i];
    }
    p->n = n;
}

void nccl_choose (const char *dir, const char *conf, const char *name, const struct fabric *f,
                  struct nccl_profile *p, nccl_say_f *say, void *arg)
{
    char path[NCCL_PATH];

    if (!strcmp (name, "auto")) {
        nccl_path (path, dir, fabric_names[f->kind]);
        if (access (path, F_OK) < 0) {
            nccl_defaults (f, p);
            drop_configured (conf, p);
            return;
        }
        name = fabric_names[f->kind];
    }
    read_named (dir, name, p, say, arg);
}

void nccl_set (const struct variables *v, const struct nccl_profile *p)
{
    struct given g;

    given_begin (&g, v, "DL_NCCL_SET");
    for (int i = 0; i < p->n; i++)
        given_set (&g, p->settings[i].name, p->settings[i].value);
    given_end (&g, "DL_NCCL_SET");
}
