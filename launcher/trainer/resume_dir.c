/* SPDX-License-Identifier: Apache-2.0 */
/* The folders in which a trial's files outlive an attempt. */
#include "launcher/trainer/resume_dir.h"

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void trial_dir (const struct trial_attempt *a, char *path, size_t size)
{
    snprintf (
        path, size, "%.*s", (int)(strrchr (a->dir, '/') - a->dir), a->dir);
}

/* What dl writes there by itself. */
static bool is_ours (const char *name)
{
    return *name == '.' || !strcmp (name, "log")
           || !strcmp (name, "hparams.json") || !strcmp (name, "bad-nodes")
           || fnmatch ("metrics*.h5", name, 0) == 0;
}

static bool has_checkpoint (const char *dir)
{
    char path[PATH_MAX];

    return snprintf (path, sizeof (path), "%s/ckpt", dir) < (int)sizeof (path)
           && folder_has_files (path, NULL);
}

bool folder_has_files (const char *dir, const char *file)
{
    char path[PATH_MAX];
    bool has = false;
    DIR *d;

    if (file)
        return snprintf (path, sizeof (path), "%s/%s", dir, file)
                   < (int)sizeof (path)
               && access (path, F_OK) == 0;
    if (!(d = opendir (dir)))
        return false;
    for (struct dirent *e; !has && (e = readdir (d));)
        has = !strcmp (e->d_name, "ckpt") ? has_checkpoint (dir)
                                          : !is_ours (e->d_name);
    closedir (d);
    return has;
}

int each_trainer_file (const char *dir,
                       void (*f) (const char *dir, const char *name))
{
    DIR *d = opendir (dir);
    int n = 0;

    for (struct dirent *e; d && (e = readdir (d));) {
        bool is_attempt =
            !strncmp (e->d_name, "a.", 2) || !strncmp (e->d_name, "claim.", 6);
        if (is_ours (e->d_name) || is_attempt
            || (!strcmp (e->d_name, "ckpt") && !has_checkpoint (dir)))
            continue;
        f (dir, e->d_name);
        n++;
    }
    if (d)
        closedir (d);
    return n;
}

int attempt_with_files (const struct trial_attempt *a,
                        const char *file,
                        char *path,
                        size_t size)
{
    int len = (int)(strrchr (a->dir, '/') - a->dir);

    for (long k = a->number - 1; k >= 1; k--) {
        snprintf (path, size, "%.*s/a.%ld", len, a->dir, k);
        if (folder_has_files (path, file))
            return 0;
    }
    return -1;
}
