/* SPDX-License-Identifier: Apache-2.0 */
/* Write, copy and compare memory of each GPU through the CUDA driver, multiply
 * matrices by cuBLAS, and measure both.
 */
#include "launcher/node/checks.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/node/diagnosis.h"
#include "runtime/base/clock.h"
#include "runtime/base/symbols.h"

/* ---- products of matrices ---- */

typedef unsigned long long device_pointer;

enum { PRODUCT_MAX = 8192 }; /* rows and columns */

struct gpu_product {
    device_pointer a, b, c; /* n x n each, of bfloat16 */
    size_t n;
    int (*finish) (void); /* wait for the GPU; not 0: an error of CUDA's */
    double rate;          /* found: TFLOP/s */
    enum severity severity;
    char why[128]; /* that it was not measured */
};

enum { PRODUCT_ROUNDS = 50 };

/* cuBLAS 11 and later, whose numbers are documented. */
enum { NOT_TRANSPOSED = 0, BFLOAT16 = 14, IN_FLOAT32 = 68, DEFAULT = -1 };
enum { FIRST_RELEASE = 11, LAST_RELEASE = 13 };
enum { EXECUTION_FAILED = 13 };

static struct blas {
    int (*create) (void **handle);
    int (*destroy) (void *handle);
    int (*product) (void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                    device_pointer a, int atype, int lda, device_pointer b, int btype, int ldb,
                    const void *beta, device_pointer c, int ctype, int ldc, int compute,
                    int algorithm);
} blas;

static const struct symbol product_symbols[] = {
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
            snprintf (pattern, sizeof (pattern), "%.*s/../lib/python3*/site-packages/nvidia/*/lib/",
                      n, path);
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
    return symbols_load (&blas, library, product_symbols) ? -1 : 0;
}

/* Random numbers of bfloat16, of either sign, from 0.5 to 2. */
static void gpu_product_fill (unsigned *words, size_t size)
{
    uint64_t x = 88172645463325252;

    for (size_t i = 0; i < size / sizeof (*words); i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = 0x3f003f00 | ((unsigned)(x >> 16) & 0x80ff80ff);
    }
}

static int run_product (const struct gpu_product *g, void *handle)
{
    static const float one = 1, zero = 0;
    int n = (int)g->n;

    return blas.product (handle, NOT_TRANSPOSED, NOT_TRANSPOSED, n, n, n, &one, g->a, BFLOAT16, n,
                         g->b, BFLOAT16, n, &zero, g->c, BFLOAT16, n, IN_FLOAT32, DEFAULT);
}

static int say (struct gpu_product *g, enum severity severity, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

static int say (struct gpu_product *g, enum severity severity, const char *fmt, ...)
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

    for (int i = 0; rv == 0 && i <= PRODUCT_ROUNDS; i++) {
        rv = run_product (g, handle);
        if (i > 0 || rv != 0)
            continue;
        if ((cuda = g->finish ()) != 0)
            break;
        start = monotonic ();
    }
    if (rv == EXECUTION_FAILED)
        return say (g, SEVERITY_BAD, "it cannot multiply matrices (cuBLAS error %d)", rv);
    if (rv != 0)
        return say (g, SEVERITY_NOTE, "products of matrices are not measured (cuBLAS error %d)",
                    rv);
    if (cuda != 0 || (cuda = g->finish ()) != 0)
        return say (g, SEVERITY_BAD, "it cannot multiply matrices (CUDA error %d)", cuda);
    g->rate = 2.0 * PRODUCT_ROUNDS * (double)g->n * (double)g->n * (double)g->n
              / (monotonic () - start) / 1e12;
    return 0;
}

/* On the current context.  On failure -1 with 'severity' and 'why'. */
static int gpu_product_measure (struct gpu_product *g)
{
    void *handle = NULL;
    int rv;

    if (load () < 0)
        return say (g, SEVERITY_NOTE,
                    "products of matrices are not measured: no "
                    "libcublas.so.%d to .%d",
                    FIRST_RELEASE, LAST_RELEASE);
    if ((rv = blas.create (&handle)) != 0)
        return say (g, SEVERITY_NOTE, "products of matrices are not measured (cuBLAS error %d)",
                    rv);
    rv = run (g, handle);
    blas.destroy (handle);
    return rv;
}

/* ---- memory ---- */

/* The driver's interface, which has kept these names since CUDA 3.2. */
static struct cuda {
    int (*init) (unsigned);
    int (*count) (int *);
    int (*get) (int *, int);
    int (*bus) (char *, int, int);
    int (*retain) (void **, int);
    int (*release) (int);
    int (*use) (void *);
    int (*memory) (size_t *, size_t *);
    int (*alloc) (device_pointer *, size_t);
    int (*free) (device_pointer);
    int (*set) (device_pointer, unsigned, size_t);
    int (*copy) (device_pointer, device_pointer, size_t);
    int (*fetch) (void *, device_pointer, size_t);
    int (*send) (device_pointer, const void *, size_t);
    int (*pin) (void **, size_t, unsigned);
    int (*unpin) (void *);
    int (*finish) (void);
} cuda;

/* clang-format off */
#define AT(member) offsetof (struct cuda, member)
static const struct symbol symbols[] = {
    { "cuInit",                      AT (init) },
    { "cuDeviceGetCount",            AT (count) },
    { "cuDeviceGet",                 AT (get) },
    { "cuDeviceGetPCIBusId",         AT (bus) },
    { "cuDevicePrimaryCtxRetain",    AT (retain) },
    { "cuDevicePrimaryCtxRelease",   AT (release) },
    { "cuCtxSetCurrent",             AT (use) },
    { "cuMemGetInfo_v2",             AT (memory) },
    { "cuMemAlloc_v2",               AT (alloc) },
    { "cuMemFree_v2",                AT (free) },
    { "cuMemsetD32_v2",              AT (set) },
    { "cuMemcpyDtoD_v2",             AT (copy) },
    { "cuMemcpyDtoH_v2",             AT (fetch) },
    { "cuMemcpyHtoD_v2",             AT (send) },
    { "cuMemHostAlloc",              AT (pin) },
    { "cuMemFreeHost",               AT (unpin) },
    { "cuCtxSynchronize",            AT (finish) },
    { NULL },
};
/* clang-format on */

enum { SIZE = 256 << 20, ROUNDS = 5, TRIES = 3 };
enum { MEASURED = 16 << 20 }; /* what is smaller is slower on a good GPU, too */

/* The memory that one GPU is tested with. */
struct gpu_memory {
    const char *bus;
    device_pointer a, b;
    unsigned *host; /* pinned */
    size_t size;    /* of each, bytes */
};

static const unsigned patterns[] = { 0x55555555, 0xaaaaaaaa, 0, 0xffffffff };

/* Each pattern is written, copied on the GPU and read back. */
static int compare (const struct gpu_memory *m, bool *same)
{
    int rv = 0;

    *same = true;
    for (size_t i = 0; rv == 0 && i < sizeof (patterns) / sizeof (*patterns); i++) {
        if ((rv = cuda.set (m->a, patterns[i], m->size / 4)) != 0
            || (rv = cuda.copy (m->b, m->a, m->size)) != 0
            || (rv = cuda.fetch (m->host, m->b, m->size)) != 0)
            return rv;
        for (size_t k = 0; k < m->size / 4; k++)
            *same &= m->host[k] == patterns[i];
    }
    return rv;
}

/* ---- rates ---- */

static int copy (const struct gpu_memory *m)
{
    return cuda.copy (m->b, m->a, m->size);
}

static int fetch (const struct gpu_memory *m)
{
    return cuda.fetch (m->host, m->a, m->size);
}

static int send_back (const struct gpu_memory *m)
{
    return cuda.send (m->a, m->host, m->size);
}

/* clang-format off */
static const struct gpu_rate {
    const char *name; /* as in the table of diagnosis.c */
    int (*once) (const struct gpu_memory *m);
    double bytes;     /* that one byte of 'size' moves */
} gpu_rates[] = {
    { "GPU copy",    copy,      2 },
    { "GPU to host", fetch,     1 },
    { "host to GPU", send_back, 1 },
};
/* clang-format on */

static void put_rate (const struct check_place *p, const struct gpu_memory *m, const char *kind,
                      double rate)
{
    char name[64];

    snprintf (name, sizeof (name), "%s %s", kind, m->bus);
    check_fact (p, "rates", name, json_real (rate));
}

static int time_rounds (const struct gpu_memory *m, const struct gpu_rate *r, double *time)
{
    double start;
    int rv = cuda.finish ();

    start = monotonic ();
    for (int i = 0; rv == 0 && i < ROUNDS; i++)
        rv = r->once (m);
    if (rv == 0)
        rv = cuda.finish ();
    *time = fmin (*time, monotonic () - start);
    return rv;
}

/* The best of some: other probes use the host's memory at the same time. */
static int measure (const struct check_place *p, const struct gpu_memory *m,
                    const struct gpu_rate *r)
{
    double time = INFINITY;
    int rv = 0;

    for (int i = 0; rv == 0 && i < TRIES; i++)
        rv = time_rounds (m, r, &time);
    if (rv == 0)
        put_rate (p, m, r->name, r->bytes * ROUNDS * (double)m->size / time / 1e9);
    return rv;
}

/* Matrices of random numbers: on zeros a GPU is faster than in any training. */
static int multiply (const struct check_place *p, const struct gpu_memory *m)
{
    struct gpu_product g = { m->a, m->a + m->size / 2, m->b, .finish = cuda.finish };
    int rv;

    for (g.n = PRODUCT_MAX; g.n * g.n * 4 > m->size; g.n /= 2)
        ;
    gpu_product_fill (m->host, m->size);
    if ((rv = cuda.send (m->a, m->host, m->size)) != 0)
        return rv;
    if (gpu_product_measure (&g) == 0)
        put_rate (p, m, "GPU product", g.rate);
    else
        check_finding (p, g.severity, "GPU %s: %s", m->bus, g.why);
    return 0;
}

static int measure_all (const struct check_place *p, const struct gpu_memory *m)
{
    int rv = 0;

    if (m->size < MEASURED) {
        check_finding (p, SEVERITY_NOTE,
                       "GPU %s: no rates are measured: too little memory is "
                       "free",
                       m->bus);
        return 0;
    }
    for (size_t i = 0; rv == 0 && i < sizeof (gpu_rates) / sizeof (*gpu_rates); i++)
        rv = measure (p, m, &gpu_rates[i]);
    return rv != 0 ? rv : multiply (p, m);
}

static int test (const struct check_place *p, const struct gpu_memory *m)
{
    bool same = true;
    int rv = compare (m, &same);

    if (rv == 0 && !same)
        check_finding (p, SEVERITY_BAD, "GPU %s: its memory gives back other than was written",
                       m->bus);
    return rv != 0 ? rv : measure_all (p, m);
}

/* Less where this job may not have so much of the host's memory. */
static int pin (struct gpu_memory *m)
{
    int rv;

    while ((rv = cuda.pin ((void **)&m->host, m->size, 0)) != 0 && m->size > 1 << 20)
        m->size /= 2;
    return rv;
}

static int test_memory (const struct check_place *p, const char *bus, size_t size)
{
    struct gpu_memory m = { .bus = bus, .size = size };
    int rv;

    if ((rv = pin (&m)) == 0 && (rv = cuda.alloc (&m.a, m.size)) == 0
        && (rv = cuda.alloc (&m.b, m.size)) == 0)
        rv = test (p, &m);
    if (m.a)
        cuda.free (m.a);
    if (m.b)
        cuda.free (m.b);
    if (m.host)
        cuda.unpin (m.host);
    return rv;
}

static void test_device (const struct check_place *p, int i)
{
    size_t available = 0, total = 0, size = SIZE;
    char bus[32] = "";
    void *context = NULL;
    int device, rv;

    if (cuda.get (&device, i) != 0)
        return;
    if (cuda.bus (bus, sizeof (bus), device) != 0)
        snprintf (bus, sizeof (bus), "number %d", i);
    check_stage (p, "GPU %s", bus);
    if ((rv = cuda.retain (&context, device)) == 0 && (rv = cuda.use (context)) == 0
        && (rv = cuda.memory (&available, &total)) == 0) {
        while (size > 1 << 20 && 3 * size > available)
            size /= 2;
        rv = test_memory (p, bus, size);
    }
    if (rv != 0)
        check_finding (p, SEVERITY_BAD, "GPU %s: it cannot compute (CUDA error %d)", bus, rv);
    if (context)
        cuda.release (device);
}

void check_copy (const struct check_place *p)
{
    int n = 0;
    int rv;

    if (gpus_none ())
        return;
    check_stage (p, "the driver");
    if (symbols_load (&cuda, dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), symbols))
        return;
    if ((rv = cuda.init (0)) != 0 || (rv = cuda.count (&n)) != 0) {
        check_finding (p, SEVERITY_BAD, "GPUs: CUDA does not start (error %d)", rv);
        return;
    }
    for (int i = 0; i < n; i++)
        if (gpu_is_mine (p, i))
            test_device (p, i);
}
