/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a container: a file, a folder, or a reference. */
#include "launcher/code/image.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_with (const char *text, const char *end)
{
    size_t n = strlen (text);
    size_t k = strlen (end);

    return n >= k && !strcmp (text + n - k, end);
}

static bool must_be_file (const char *image)
{
    static const char *const ends[] = { ".sif", ".simg", ".sqsh", ".squashfs", ".img", NULL };

    for (const char *const *e = ends; *e; e++)
        if (ends_with (image, *e))
            return !strstr (image, "://");
    return *image == '/' || *image == '.';
}

char *container_image (const struct software *s, const char *dir)
{
    char path[PATH_MAX];
    char full[PATH_MAX];

    snprintf (path, sizeof (path), "%s%s%s", *s->image == '/' ? "" : dir,
              *s->image == '/' ? "" : "/", s->image);
    if (realpath (path, full) && access (full, R_OK) == 0)
        return strdup (full);
    return must_be_file (s->image) ? NULL : strdup (s->image);
}

enum image_kind image_kind_of (const char *image)
{
    struct stat st;

    if (*image != '/' || stat (image, &st) < 0)
        return REFERENCE;
    if (S_ISDIR (st.st_mode))
        return FOLDER;
    return ends_with (image, ".sqsh") || ends_with (image, ".squashfs") ? SQUASHFS : SIF;
}
