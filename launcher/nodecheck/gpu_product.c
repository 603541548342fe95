/* SPDX-License-Identifier: Apache-2.0 */
/* Measure products of matrices on a GPU with cuBLAS, loaded where it is there.
 */
#include "launcher/nodecheck/gpu_product.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/symbols.h"

enum { ROUNDS = 50 };

/* cuBLAS 11 and later, whose numbers are documented. */
enum { NOT_TRANSPOSED = 0, BFLOAT16 = 14, IN_FLOAT32 = 68, DEFAULT = -1 };
enum { FIRST_RELEASE = 11, LAST_RELEASE = 13 };
enum { EXECUTION_FAILED = 13 };

static struct blas {
    int (*create) (void **handle);
    int (*destroy) (void *handle);
    int (*product) (void *handle,
                    int transa,
                    int transb,
                    int m,
                    int n,
                    int k,
                    const void *alpha,
                    device_pointer a,
                    int atype,
                    int lda,
                    device_pointer b,
                    int btype,
                    int ldb,
                    const void *beta,
                    device_pointer c,
                    int ctype,
                    int ldc,
                    int compute,
                    int algorithm);
} blas;

static const struct symbol symbols[] = {
    { "cublasCreate_v2", offsetof (struct blas, create) },
    { "cublasDestroy_v2", offsetof (struct blas, destroy) },
    { "cublasGemmEx", offsetof (struct blas, product) },
    { NULL },
};

/* The library that it needs is beside it, where the loader may not look. */
static void *load_from (const char *folder, int release)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%slibcublasLt.so.%d", folder, release);
    dlopen (path, RTLD_LAZY | RTLD_GLOBAL);
    snprintf (path, sizeof (path), "%slibcublas.so.%d", folder, release);
    return dlopen (path, RTLD_LAZY | RTLD_LOCAL);
}

static void *load_matching (const char *pattern, int release)
{
    void *library = NULL;
    glob_t list;

    if (glob (pattern, 0, NULL, &list) != 0)
        return NULL;
    for (size_t i = 0; i < list.gl_pathc && !library; i++)
        library = load_from (list.gl_pathv[i], release);
    globfree (&list);
    return library;
}

/* The packages beside the python3 that the user's PATH finds, which trains. */
static void *load_of_python (int release)
{
    const char *path = getenv ("PATH");
    char program[PATH_MAX], pattern[PATH_MAX + 64];
    void *library = NULL;

    while (path && *path && !library) {
        int n = (int)strcspn (path, ":");
        snprintf (program, sizeof (program), "%.*s/python3", n, path);
        if (*path == '/' && access (program, X_OK) == 0) {
            snprintf (pattern,
                      sizeof (pattern),
                      "%.*s/../lib/python3*/site-packages/nvidia/*/lib/",
                      n,
                      path);
            return load_matching (pattern, release);
        }
        path += n + (path[n] == ':');
    }
    return library;
}

static int load (void)
{
    void *library = NULL;

    for (int r = LAST_RELEASE; r >= FIRST_RELEASE && !library; r--)
        if (!(library = load_from ("", r)) && !(library = load_of_python (r)))
            library = load_matching ("/usr/local/cuda*/lib*/", r);
    return symbols_load (&blas, library, symbols) ? -1 : 0;
}

void gpu_product_fill (unsigned *words, size_t size)
{
    uint64_t x = 88172645463325252;

    for (size_t i = 0; i < size / sizeof (*words); i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = 0x3f003f00 | ((unsigned)(x >> 16) & 0x80ff80ff);
    }
}

static int multiply (const struct gpu_product *g, void *handle)
{
    static const float one = 1, zero = 0;
    int n = (int)g->n;

    return blas.product (handle,
                         NOT_TRANSPOSED,
                         NOT_TRANSPOSED,
                         n,
                         n,
                         n,
                         &one,
                         g->a,
                         BFLOAT16,
                         n,
                         g->b,
                         BFLOAT16,
                         n,
                         &zero,
                         g->c,
                         BFLOAT16,
                         n,
                         IN_FLOAT32,
                         DEFAULT);
}

static int
say (struct gpu_product *g, enum severity severity, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

static int
say (struct gpu_product *g, enum severity severity, const char *fmt, ...)
{
    va_list ap;

    g->severity = severity;
    va_start (ap, fmt);
    vsnprintf (g->why, sizeof (g->why), fmt, ap);
    va_end (ap);
    return -1;
}

/* The first product loads what it needs. */
static int run (struct gpu_product *g, void *handle)
{
    double start = 0;
    int rv = 0, cuda = 0;

    for (int i = 0; rv == 0 && i <= ROUNDS; i++) {
        rv = multiply (g, handle);
        if (i > 0 || rv != 0)
            continue;
        if ((cuda = g->finish ()) != 0)
            break;
        start = monotonic ();
    }
    if (rv == EXECUTION_FAILED)
        return say (g,
                    SEVERITY_BAD,
                    "it cannot multiply matrices (cuBLAS error %d)",
                    rv);
    if (rv != 0)
        return say (g,
                    SEVERITY_NOTE,
                    "products of matrices are not measured (cuBLAS error %d)",
                    rv);
    if (cuda != 0 || (cuda = g->finish ()) != 0)
        return say (g,
                    SEVERITY_BAD,
                    "it cannot multiply matrices (CUDA error %d)",
                    cuda);
    g->rate = 2.0 * ROUNDS * (double)g->n * (double)g->n * (double)g->n
              / (monotonic () - start) / 1e12;
    return 0;
}

int gpu_product_measure (struct gpu_product *g)
{
    void *handle = NULL;
    int rv;

    if (load () < 0)
        return say (g,
                    SEVERITY_NOTE,
                    "products of matrices are not measured: no "
                    "libcublas.so.%d to .%d",
                    FIRST_RELEASE,
                    LAST_RELEASE);
    if ((rv = blas.create (&handle)) != 0)
        return say (g,
                    SEVERITY_NOTE,
                    "products of matrices are not measured (cuBLAS error %d)",
                    rv);
    rv = run (g, handle);
    blas.destroy (handle);
    return rv;
}
