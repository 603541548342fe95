/* SPDX-License-Identifier: Apache-2.0 */
/* Convert arrays to another type, or scale them. */
#include "runtime/comm/reduce/kernels.h"

KERNEL_OPTIONS

enum { BLOCK_FLOATS = 1024 };

/* Multiply in F64, so that a third of three times x is x. */
KERNEL static void scale_f32 (void *data, size_t n, double factor)
{
    any_f32 *d = data;

    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        d[i] = (float)(d[i] * factor);
}

KERNEL static void scale_f64 (void *data, size_t n, double factor)
{
    any_f64 *d = data;

    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        d[i] *= factor;
}

static void scale_narrow (void *data, size_t n, enum slurmdl_type type, double factor)
{
    const struct kernel_narrow *t = kernel_narrow (type);
    size_t size = slurmdl_type_size (type);
    float wide[BLOCK_FLOATS];

    for (size_t done = 0; done < n; done += BLOCK_FLOATS) {
        size_t part = n - done < BLOCK_FLOATS ? n - done : BLOCK_FLOATS;
        char *at = (char *)data + done * size;

        t->widen (wide, at, part);
        scale_f32 (wide, part, factor);
        t->narrow (at, wide, part);
    }
}

void reduce_scale (void *data, size_t n, enum slurmdl_type type, double factor)
{
    if (factor == 1)
        return;
    if (kernel_narrow (type))
        scale_narrow (data, n, type, factor);
    else if (type == SLURMDL_F32 || type == SLURMDL_C64)
        scale_f32 (data, type == SLURMDL_C64 ? 2 * n : n, factor);
    else if (type == SLURMDL_F64 || type == SLURMDL_C128)
        scale_f64 (data, type == SLURMDL_C128 ? 2 * n : n, factor);
}

KERNEL static void f64_from_f32 (void *out, const void *in, size_t n)
{
    any_f64 *o = out;
    const any_f32 *l = in;

    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        o[i] = l[i];
}

KERNEL static void f32_from_f64 (void *out, const void *in, size_t n)
{
    any_f32 *o = out;
    const any_f64 *l = in;

    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        o[i] = (float)l[i];
}

/* Round to odd, so that the rounding to F16 or BF16 that follows gives the same
 * result as rounding the F64 (Boldo and Melquiond 2008, doi:10.1109/TC.2007.70819).
 */
KERNEL static void odd_from_f64 (void *out, const void *in, size_t n)
{
    any_f32 *o = out;
    const any_f64 *l = in;

    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        double x = l[i], back, size = __builtin_fabs (x);
        float f = (float)x;
        uint32_t bits, odd;

        back = __builtin_fabs ((double)f);
        memcpy (&bits, &f, sizeof (bits));
        odd = bits + (back < size) - (back > size);
        bits = bits & 1 ? bits : odd;
        memcpy (&f, &bits, sizeof (f));
        o[i] = f;
    }
}

/* Convert a block by way of F32. */
static void convert_block (void *out, enum slurmdl_type to, const void *in, enum slurmdl_type from,
                           size_t n)
{
    float wide[BLOCK_FLOATS];
    const void *middle = wide;

    if (kernel_narrow (from))
        kernel_narrow (from)->widen (wide, in, n);
    else if (from == SLURMDL_F64)
        odd_from_f64 (wide, in, n);
    else
        middle = in;
    if (kernel_narrow (to))
        kernel_narrow (to)->narrow (out, middle, n);
    else if (to == SLURMDL_F64)
        f64_from_f32 (out, middle, n);
    else
        memcpy (out, middle, n * sizeof (float));
}

void reduce_convert (void *out, enum slurmdl_type to, const void *in, enum slurmdl_type from,
                     size_t n)
{
    size_t to_size = slurmdl_type_size (to);
    size_t from_size = slurmdl_type_size (from);

    if (to == from) {
        memmove (out, in, n * to_size);
    } else if (to == SLURMDL_F32 && from == SLURMDL_F64) {
        f32_from_f64 (out, in, n);
    } else {
        for (size_t done = 0; done < n; done += BLOCK_FLOATS)
            convert_block ((char *)out + done * to_size, to, (const char *)in + done * from_size,
                           from, n - done < BLOCK_FLOATS ? n - done : BLOCK_FLOATS);
    }
}
