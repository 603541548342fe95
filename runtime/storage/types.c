/* SPDX-License-Identifier: Apache-2.0 */
/* The types of elements: names and sizes. */
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
