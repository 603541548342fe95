/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen files as one archive: a tar file, compressed by zstd. */
#pragma once

#include <stddef.h>

#include "launcher/code/select.h"
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
