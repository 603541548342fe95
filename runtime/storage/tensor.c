/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, and the names and shapes that a checkpointed tensor may have. */
#include "runtime/storage/tensor.h"

#include <errno.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/slurmdl.h"

static const struct element {
    const char *name;
    size_t size;
} elements[] = {
    [SLURMDL_I8] = { "i8", 1 },           [SLURMDL_U8] = { "u8", 1 },
    [SLURMDL_I32] = { "i32", 4 },         [SLURMDL_U32] = { "u32", 4 },
    [SLURMDL_I64] = { "i64", 8 },         [SLURMDL_U64] = { "u64", 8 },
    [SLURMDL_F16] = { "f16", 2 },         [SLURMDL_F32] = { "f32", 4 },
    [SLURMDL_F64] = { "f64", 8 },         [SLURMDL_BF16] = { "bf16", 2 },
    [SLURMDL_BOOL] = { "bool", 1 },       [SLURMDL_C64] = { "c64", 8 },
    [SLURMDL_C128] = { "c128", 16 },      [SLURMDL_I16] = { "i16", 2 },
    [SLURMDL_U16] = { "u16", 2 },         [SLURMDL_F8_E4M3] = { "f8_e4m3", 1 },
    [SLURMDL_F8_E5M2] = { "f8_e5m2", 1 },
};

enum { TYPES = sizeof (elements) / sizeof (*elements) };

const char *slurmdl_type_name (enum slurmdl_type type)
{
    return (unsigned)type < TYPES ? elements[type].name : NULL;
}

size_t slurmdl_type_size (enum slurmdl_type type)
{
    return (unsigned)type < TYPES ? elements[type].size : 0;
}

/* Each component becomes the name of an HDF5 link, which cannot be "." or empty. */
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
