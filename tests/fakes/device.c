/* SPDX-License-Identifier: Apache-2.0 */
/* A fake slurmdl-cuda.so.  Its memory is scrambled, so a test notices if the host reads it
 * directly.
 */
#include "runtime/base/device_memory.h"

#include <stdlib.h>

static unsigned char arena[1 << 20];
static int later;  /* copies that have started */
static int pinned; /* buffers that are allocated */

static bool is_device (const void *p)
{
    const unsigned char *c = p;

    return c >= arena && c < arena + sizeof (arena);
}

static int mangle (void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i] ^ 0x5a;
    return 0;
}

/* A copy happens only in end(), so that a test notices if its result is used too early. */
static struct {
    void *to;
    const void *from;
    size_t n;
} waiting[16];

static int begin (void)
{
    later = 0;
    return 0;
}

static int to_host_later (void *host, const void *device, size_t n)
{
    if (later == 16)
        return -1;
    waiting[later].to = host;
    waiting[later].from = device;
    waiting[later++].n = n;
    return 0;
}

static int end (void)
{
    for (int i = 0; i < later; i++)
        mangle (waiting[i].to, waiting[i].from, waiting[i].n);
    later = 0;
    return 0;
}

static void *alloc_pinned (size_t n)
{
    void *p;

    if (getenv ("FAKE_NO_PINNED") || posix_memalign (&p, 4096, n))
        return NULL;
    pinned++;
    return p;
}

static void free_pinned (void *p)
{
    pinned--;
    free (p);
}

extern const struct memory_ops slurmdl_memory_cuda;
const struct memory_ops slurmdl_memory_cuda = {
    .name = "fake",
    .is_device = is_device,
    .to_host = mangle,
    .to_device = mangle,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .begin = begin,
    .to_host_later = to_host_later,
    .end = end,
};

void *fake_device_memory (void);
void *fake_device_memory (void)
{
    return arena;
}

int fake_pinned (void);
int fake_pinned (void)
{
    return pinned;
}
