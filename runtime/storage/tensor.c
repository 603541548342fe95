/* SPDX-License-Identifier: Apache-2.0 */
/* Which names and shapes a checkpoint's tensor may have. */
#include "runtime/storage/tensor.h"

#include <errno.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/slurmdl.h"

/* Each part of the path is a link's name: "." and "" are not. */
bool tensor_name_ok (const char *name)
{
    size_t n = strlen (name);

    if (n == 0 || n >= SLURMDL_NAME_SIZE || name[0] == '/' || name[n - 1] == '/'
        || strstr (name, "//") || name[0] == '.' || strstr (name, "/./")
        || (n > 1 && !strcmp (name + n - 2, "/.")) || !is_utf8 (name))
        return false;
    return strcmp (name, "manifest") && strncmp (name, "manifest/", 9) && strcmp (name, "shards")
           && strncmp (name, "shards/", 7);
}

int tensor_bytes (enum slurmdl_type type, int ndims, const uint64_t *dims, uint64_t *bytes)
{
    *bytes = slurmdl_type_size (type);
    if (*bytes == 0 || ndims < 0 || ndims > SLURMDL_DIMS_MAX) {
        errno = EINVAL;
        return -1;
    }
    for (int i = 0; i < ndims; i++)
        if (__builtin_mul_overflow (*bytes, dims[i], bytes)) {
            errno = EOVERFLOW;
            return -1;
        }
    return 0;
}
