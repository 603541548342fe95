/* SPDX-License-Identifier: Apache-2.0 */
/* Reduce any number of arrays, block by block. */
#include "runtime/comm/reduce/reduce.h"

#include "runtime/comm/reduce/kernels.h"

/* A block of an input and its intermediate result fit into the first-level cache. */
enum { BLOCK_BYTES = 4096, BLOCK_FLOATS = 1024 };

static bool is_type (enum slurmdl_type type, enum slurmdl_op op)
{
    return (unsigned)type <= SLURMDL_F8_E5M2 && (unsigned)op < KERNEL_OPS;
}

bool reduce_defined (enum slurmdl_type type, enum slurmdl_op op)
{
    return is_type (type, op) && (kernel_narrow (type) || kernel_pair (type, op));
}

static const char *offset_in (const void *in, size_t offset)
{
    return (const char *)in + offset;
}

static void many_narrow (void *out, const void *const *in, size_t k, size_t n,
                         enum slurmdl_type type, enum slurmdl_op op)
{
    const struct kernel_narrow *t = kernel_narrow (type);
    size_t size = slurmdl_type_size (type);
    float acc[BLOCK_FLOATS];

    for (size_t done = 0; done < n; done += BLOCK_FLOATS) {
        size_t part = n - done < BLOCK_FLOATS ? n - done : BLOCK_FLOATS;

        t->widen (acc, offset_in (in[0], done * size), part);
        for (size_t i = 1; i < k; i++)
            t->fold[op](acc, offset_in (in[i], done * size), part);
        t->narrow ((char *)out + done * size, acc, part);
    }
}

static void many_plain (void *out, const void *const *in, size_t k, size_t n,
                        enum slurmdl_type type, enum slurmdl_op op)
{
    kernel_pair_f pair = kernel_pair (type, op);
    size_t size = slurmdl_type_size (type), block = BLOCK_BYTES / size;
    char acc[BLOCK_BYTES] __attribute__ ((aligned (64)));

    for (size_t done = 0; done < n; done += block) {
        size_t part = n - done < block ? n - done : block, offset = done * size;
        const void *so_far = offset_in (in[0], offset);

        for (size_t i = 1; i < k; i++) {
            void *to = i == k - 1 ? (char *)out + offset : acc;

            pair (to, so_far, offset_in (in[i], offset), part);
            so_far = to;
        }
    }
}

void reduce_many (void *out, const void *const *in, size_t k, size_t n, enum slurmdl_type type,
                  enum slurmdl_op op)
{
    if (k == 1)
        memmove (out, in[0], n * slurmdl_type_size (type));
    else if (kernel_narrow (type))
        many_narrow (out, in, k, n, type, op);
    else if (k == 2)
        kernel_pair (type, op) (out, in[0], in[1], n);
    else
        many_plain (out, in, k, n, type, op);
}

void reduce_pair (void *out, const void *a, const void *b, size_t n, enum slurmdl_type type,
                  enum slurmdl_op op)
{
    const void *const in[] = { a, b };

    reduce_many (out, in, 2, n, type, op);
}
