/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in which the trials run: the frozen files, and links beside. */
#pragma once

#include <stddef.h>

#include "launcher/code/archive.h"

/* Where an archive is unpacked. */
struct code_copy {
    const char *base; /* a folder that only this user may write to */
    const char *root; /* what was frozen */
    const char *dir;  /* the folder of the experiment file */
};

/* The folder that stands for 'dir': BASE with the last three names of the root,
 * so that two of the folders above it have the entries of theirs, as links.
 * Returns -1 with errno: EBADMSG if the experiment file was elsewhere,
 * ENAMETOOLONG.
 */
int code_copy_path (const struct code_copy *c, char *buf, size_t size);

/* Whether it is there, and this user's. */
int code_copy_check (const struct code_copy *c, struct slurmdl_error *err);

/* Unpack an archive there: a folder beside it gets the name when it is
 * complete. One that somebody else was faster to make will do.
 */
int code_copy_make (const struct code_copy *c, const struct code_archive *a,
                    struct slurmdl_error *err);
