/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen code: one archive, a tar file compressed by zstd, and the folder in which trials run. */
#pragma once

#include <stddef.h>

#include "launcher/code/frozen_files.h"
#include "launcher/sys/digest.h"

enum { ARCHIVE_MAX = 128 << 20 }; /* bytes of one that is read */

struct code_archive {
    char *data;
    size_t size;
    char digest[DIGEST_SIZE]; /* the same for the same files */
};

/* Pack the files, as they are now. */
int code_archive_pack (const struct code_files *c, struct code_archive *a,
                       struct slurmdl_error *err);
void code_archive_free (struct code_archive *a);

/* Make what is in an archive below the folder 'dir', which is there and empty.
 * Names that would lead out of it, also by a link, are refused: EBADMSG.
 */
int code_archive_unpack (const void *data, size_t size, const char *dir, struct slurmdl_error *err);

/* Call 'f' for each file and link; 'text' is its content, or a link's target.
 */
int code_archive_each (const void *data, size_t size,
                       void (*f) (const char *path, const void *text, size_t size, void *arg),
                       void *arg, struct slurmdl_error *err);

/* ---- the folder in which trials run: the frozen files, and links beside them ---- */

/* Where an archive is unpacked. */
struct code_copy {
    const char *base; /* a folder that only this user may write to */
    const char *root; /* what was frozen */
    const char *dir;  /* the folder of the experiment file */
};

/* The folder that stands for 'dir': BASE with the last three names of the root, so that the two
 * folders above it have the same entries as the original ones, as links.  Returns -1 with errno:
 * EBADMSG if the experiment file was elsewhere, ENAMETOOLONG.
 */
int code_copy_path (const struct code_copy *c, char *buf, size_t size);

/* Check that it exists and is this user's. */
int code_copy_check (const struct code_copy *c, struct slurmdl_error *err);

/* Unpack an archive there, in a folder beside it that is renamed when it is complete.  If somebody
 * else was faster, that copy will do.
 */
int code_copy_make (const struct code_copy *c, const struct code_archive *a,
                    struct slurmdl_error *err);
