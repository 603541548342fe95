/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen code: an archive (tar compressed with zstd), and the folder in which trials run. */
#pragma once

#include <stddef.h>

#include "launcher/code/frozen_files.h"
#include "launcher/sys/digest.h"

enum { ARCHIVE_MAX = 128 << 20 }; /* larger archives are not read; bytes */

struct code_archive {
    char *data;
    size_t size;
    char digest[DIGEST_SIZE]; /* equal if the files are equal */
};

/* Pack the files in their current state; -1 with 'err'. */
int code_archive_pack (const struct code_files *c, struct code_archive *a,
                       struct slurmdl_error *err);
void code_archive_free (struct code_archive *a);

/* Unpack an archive into 'dir', an existing, empty folder.  Rejects names that would lead out of
 * it, even through a link.  Returns -1 with 'err' and errno: EBADMSG for a bad archive, EFBIG for
 * one that holds far more than dl ever freezes.
 */
int code_archive_unpack (const void *data, size_t size, const char *dir, struct slurmdl_error *err);

/* Call 'f' for each file and link.  'text' is the content of the file, or the target of the link.
 * Returns -1 with 'err'.
 */
int code_archive_each (const void *data, size_t size,
                       void (*f) (const char *path, const void *text, size_t size, void *arg),
                       void *arg, struct slurmdl_error *err);

/* ---- the folder in which trials run: frozen files with links beside them ---- */

/* Where to unpack an archive. */
struct code_copy {
    const char *base; /* a folder that only this user may write to */
    const char *root; /* the folder that was frozen */
    const char *dir;  /* the folder of the experiment file */
};

/* Write the path of the folder that stands for 'dir': BASE, the last three names of the root, and
 * the rest of 'dir'.  The two folders above the root's copy contain links to the entries of the
 * original ones, so that relative paths to these still work.  Returns -1 with errno: EBADMSG if the
 * experiment file is not below the root, or ENAMETOOLONG.
 */
int code_copy_path (const struct code_copy *c, char *buf, size_t size);

/* Check that the base exists and that only this user can write to it; -1 with 'err'. */
int code_copy_check (const struct code_copy *c, struct slurmdl_error *err);

/* Unpack an archive into a new folder beside the base, and rename that folder to the base when it
 * is complete.  If another process was faster, use its copy.  Returns -1 with 'err'.
 */
int code_copy_make (const struct code_copy *c, const struct code_archive *a,
                    struct slurmdl_error *err);
