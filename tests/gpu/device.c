/* SPDX-License-Identifier: Apache-2.0 */
/* Print TAP and figures, and use the CUDA runtime that the module loaded. */
#include "tests/gpu/device.h"

#include <dlfcn.h>
#include <stdarg.h>

static int count, failed;

bool tap_ok (bool condition, const char *format, ...)
{
    va_list ap;

    va_start (ap, format);
    printf ("%s %d - ", condition ? "ok" : "not ok", ++count);
    vprintf (format, ap);
    va_end (ap);
    putchar ('\n');
    failed += !condition;
    return condition;
}

void tap_skip (const char *name, const char *why)
{
    printf ("ok %d - %s # SKIP %s\n", ++count, name, why);
}

void tap_figure (const char *name, double value, const char *unit)
{
    printf ("# figure %s %.4g %s\n", name, value, unit);
}

int tap_end (void)
{
    printf ("1..%d\n", count);
    fflush (stdout);
    return failed ? 1 : 0;
}

struct cuda_runtime cuda;

/* clang-format off */
static const struct {
    void *at;
    const char *name;
    bool needed;
} symbols[] = {
    { &cuda.malloc,     "cudaMalloc",                true },
    { &cuda.free,       "cudaFree",                  true },
    { &cuda.copy,       "cudaMemcpy",                true },
    { &cuda.copy_later, "cudaMemcpyAsync",           true },
    { &cuda.stream,     "cudaStreamCreateWithFlags", true },
    { &cuda.query,      "cudaStreamQuery",           true },
    { &cuda.finish,     "cudaStreamSynchronize",     true },
    { &cuda.call_host,  "cudaLaunchHostFunc",        false },
};
/* clang-format on */

bool cuda_find (void)
{
    static const char *const names[] = { "libcudart.so.13", "libcudart.so.12", "libcudart.so" };
    void *h = NULL;

    for (int i = 0; !h && i < 3; i++)
        h = dlopen (names[i], RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; h && i < sizeof (symbols) / sizeof (*symbols); i++) {
        void *f = dlsym (h, symbols[i].name);
        if (!f && symbols[i].needed)
            return false;
        memcpy (symbols[i].at, &f, sizeof (f));
    }
    return h;
}

void cuda_need (int error, const char *what)
{
    if (!error)
        return;
    printf ("Bail out! %s: CUDA error %d\n", what, error);
    exit (1);
}

void *cuda_copy_of (const void *bytes, size_t n)
{
    void *p;

    cuda_need (cuda.malloc (&p, n), "cudaMalloc");
    if (bytes)
        cuda_need (cuda.copy (p, bytes, n, TO_DEVICE), "cudaMemcpy");
    return p;
}

bool cuda_has (const char *what, const void *device, const void *want, size_t n)
{
    unsigned char *got = malloc (n);
    const unsigned char *w = want;
    size_t i = 0;

    cuda_need (cuda.copy (got, device, n, TO_HOST), "cudaMemcpy");
    while (i < n && got[i] == w[i])
        i++;
    if (i < n)
        printf ("# %s: byte %zu of %zu is 0x%02x, expected 0x%02x\n", what, i, n, got[i], w[i]);
    free (got);
    return i == n;
}
