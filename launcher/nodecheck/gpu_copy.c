/* SPDX-License-Identifier: Apache-2.0 */
/* Write, copy and compare memory of each GPU through the CUDA driver, and
 * measure it.
 */
#include "launcher/nodecheck/gpu_copy.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodecheck/gpu_product.h"
#include "launcher/nodecheck/gpus.h"
#include "runtime/base/clock.h"
#include "runtime/base/symbols.h"

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
    for (size_t i = 0; rv == 0 && i < sizeof (patterns) / sizeof (*patterns);
         i++) {
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

static void put_rate (const struct check_place *p,
                      const struct gpu_memory *m,
                      const char *kind,
                      double rate)
{
    char name[64];

    snprintf (name, sizeof (name), "%s %s", kind, m->bus);
    check_fact (p, "rates", name, json_real (rate));
}

static int
time_rounds (const struct gpu_memory *m, const struct gpu_rate *r, double *time)
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
static int measure (const struct check_place *p,
                    const struct gpu_memory *m,
                    const struct gpu_rate *r)
{
    double time = INFINITY;
    int rv = 0;

    for (int i = 0; rv == 0 && i < TRIES; i++)
        rv = time_rounds (m, r, &time);
    if (rv == 0)
        put_rate (
            p, m, r->name, r->bytes * ROUNDS * (double)m->size / time / 1e9);
    return rv;
}

/* Matrices of random numbers: on zeros a GPU is faster than in any training. */
static int multiply (const struct check_place *p, const struct gpu_memory *m)
{
    struct gpu_product g = {
        m->a, m->a + m->size / 2, m->b, .finish = cuda.finish
    };
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
        check_finding (p,
                       SEVERITY_NOTE,
                       "GPU %s: no rates are measured: too little memory is "
                       "free",
                       m->bus);
        return 0;
    }
    for (size_t i = 0; rv == 0 && i < sizeof (gpu_rates) / sizeof (*gpu_rates);
         i++)
        rv = measure (p, m, &gpu_rates[i]);
    return rv != 0 ? rv : multiply (p, m);
}

static int test (const struct check_place *p, const struct gpu_memory *m)
{
    bool same = true;
    int rv = compare (m, &same);

    if (rv == 0 && !same)
        check_finding (p,
                       SEVERITY_BAD,
                       "GPU %s: its memory gives back other than was written",
                       m->bus);
    return rv != 0 ? rv : measure_all (p, m);
}

/* Less where this job may not have so much of the host's memory. */
static int pin (struct gpu_memory *m)
{
    int rv;

    while ((rv = cuda.pin ((void **)&m->host, m->size, 0)) != 0
           && m->size > 1 << 20)
        m->size /= 2;
    return rv;
}

static int
test_memory (const struct check_place *p, const char *bus, size_t size)
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
    if ((rv = cuda.retain (&context, device)) == 0
        && (rv = cuda.use (context)) == 0
        && (rv = cuda.memory (&available, &total)) == 0) {
        while (size > 1 << 20 && 3 * size > available)
            size /= 2;
        rv = test_memory (p, bus, size);
    }
    if (rv != 0)
        check_finding (p,
                       SEVERITY_BAD,
                       "GPU %s: it cannot compute (CUDA error %d)",
                       bus,
                       rv);
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
    if (symbols_load (
            &cuda, dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), symbols))
        return;
    if ((rv = cuda.init (0)) != 0 || (rv = cuda.count (&n)) != 0) {
        check_finding (
            p, SEVERITY_BAD, "GPUs: CUDA does not start (error %d)", rv);
        return;
    }
    for (int i = 0; i < n; i++)
        if (gpu_is_mine (p, i))
            test_device (p, i);
}
