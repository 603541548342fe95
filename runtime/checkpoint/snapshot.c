/* SPDX-License-Identifier: Apache-2.0 */
/* Copy protected memory, so that training can continue while the copy is written. */
#include "runtime/checkpoint/commit.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/array.h"
#include "runtime/base/device_memory.h"
#include "runtime/base/environment.h"
#include "runtime/base/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { LINE = 64, ROUND = 128, FAR = 1024, MANY = 64 << 10 };

__attribute__ ((target ("avx2"))) static void stream (unsigned char *to, const unsigned char *from,
                                                      size_t rounds)
{
    for (; rounds > 0; rounds--, to += ROUND, from += ROUND) {
        const __m256i *x = (const __m256i *)from;
        __m256i *y = (__m256i *)to;
        _mm_prefetch (from + FAR, _MM_HINT_NTA);
        _mm_prefetch (from + FAR + LINE, _MM_HINT_NTA);
        __m256i a = _mm256_loadu_si256 (x);
        __m256i b = _mm256_loadu_si256 (x + 1);
        __m256i c = _mm256_loadu_si256 (x + 2);
        __m256i d = _mm256_loadu_si256 (x + 3);
        _mm256_stream_si256 (y, a);
        _mm256_stream_si256 (y + 1, b);
        _mm256_stream_si256 (y + 2, c);
        _mm256_stream_si256 (y + 3, d);
    }
    _mm_sfence ();
}
#endif

/* Like memcpy(), but bypass the caches if the processor can.  The destination is
 * not read first, and nothing useful is evicted.
 */
static void copy_past_caches (void *to, const void *from, size_t n)
{
#if defined(__x86_64__)
    unsigned char *y = to;
    const unsigned char *x = from;
    size_t first = -(uintptr_t)y % LINE;

    if (n >= MANY && __builtin_cpu_supports ("avx2")) {
        size_t most = (n - first) / ROUND * ROUND;
        memcpy (y, x, first);
        stream (y + first, x + first, most / ROUND);
        memcpy (y + first + most, x + first + most, n - first - most);
        return;
    }
#endif
    memcpy (to, from, n);
}

enum { PAGE = 4096 };

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Rank 0 writes what all ranks have in common. */
static bool is_mine (const struct slurmdl *run, const struct region *r)
{
    return run->rank == 0 || r->shard;
}

static struct piece *add_piece (struct save_job *job)
{
    struct piece *list = array_grow (job->list, job->n, sizeof (*list));

    if (!list)
        return NULL;
    job->list = list;
    return &job->list[job->n++];
}

struct cutting {
    struct save_job *job;
    const struct region *r;
    const struct memory_ops *device;
    uint64_t done; /* bytes of the region already cut */
};

static int add_part (const struct slab *part, void *arg)
{
    struct cutting *c = arg;
    const struct region *r = c->r;
    struct piece *p = add_piece (c->job);

    if (!p)
        return -1;
    *p = (struct piece){ .type = r->type,
                         .slab = *part,
                         .data = (unsigned char *)r->data + c->done,
                         .device = c->device,
                         .shard = true,
                         .offset = UINT64_MAX };
    memcpy (p->name, r->name, sizeof (p->name));
    memcpy (p->dims, r->dims, sizeof (p->dims));
    p->bytes = r->bytes ? slab_elements (part) * slurmdl_type_size (r->type) : 0;
    c->done += p->bytes;
    return 0;
}

/* Cut a region into parts with a checksum each, so that a reader can skip parts it
 * does not want, and several threads can read one tensor.
 */
int job_add (struct save_job *job, const struct region *r)
{
    struct cutting c = { job, r, NULL, 0 };

    if (r->bytes && !r->state)
        c.device = memory_ops_of (r->data);
    if (r->bytes > PART_BYTES)
        return slab_cut (&r->slab, PART_BYTES / slurmdl_type_size (r->type), add_part, &c);
    if (add_part (&r->slab, &c) < 0)
        return -1;
    job->list[job->n - 1].shard = r->shard;
    return 0;
}

int job_create (struct save_job *job, const struct slurmdl *run, int64_t step)
{
    int rv = 0;

    *job = (struct save_job){ .step = step };
    job->shared = run->size > 1 && regions_shared (&run->regions);
    for (size_t i = 0; rv == 0 && i < run->regions.n; i++)
        if (is_mine (run, &run->regions.list[i]))
            rv = job_add (job, &run->regions.list[i]);
    if (rv < 0)
        job_free (job);
    return rv;
}

void job_free (struct save_job *job)
{
    free (job->list);
    job->list = NULL;
    job->n = 0;
}

static uint64_t free_memory (void)
{
    unsigned long long kib = 0;
    char line[128];
    FILE *f = fopen ("/proc/meminfo", "re");

    while (f && fgets (line, sizeof (line), f))
        if (sscanf (line, "MemAvailable: %llu", &kib) == 1)
            break;
    if (f)
        fclose (f);
    return kib * 1024;
}

/* Divide by the ranks on this machine, which share its memory. */
static uint64_t snapshot_limit (void)
{
    long long given = environment_number ("DL_SNAPSHOT_MAX", -1);
    long long ranks =
        environment_number ("LOCAL_WORLD_SIZE", environment_number ("SLURM_NTASKS_PER_NODE", 1));

    if (given >= 0)
        return (uint64_t)given;
    return free_memory () / 2 / (uint64_t)(ranks > 0 ? ranks : 1);
}

void buffer_free (struct buffer *b)
{
    if (b->data && b->pinned)
        b->device->free_pinned (b->data);
    else if (b->data)
        munmap (b->data, b->size);
    *b = (struct buffer){ 0 };
}

static void *get_pages (size_t size)
{
    void *p = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    madvise (p, size, MADV_HUGEPAGE);
    /* otherwise the first snapshot pays for each page fault */
    if (madvise (p, size, MADV_POPULATE_WRITE) < 0 && errno == EINVAL)
        for (size_t i = 0; i < size; i += PAGE)
            ((volatile char *)p)[i] = 0;
    return p;
}

static int get_buffer (struct buffer *b, size_t size, const struct memory_ops *device)
{
    if (b->size >= size && b->device == device)
        return 0;
    buffer_free (b);
    if (size > snapshot_limit ()) {
        errno = ENOMEM;
        return -1;
    }
    b->device = device;
    if (device && (b->data = device->alloc_pinned (size)))
        b->pinned = true;
    else
        b->data = get_pages (size);
    b->size = b->data ? size : 0;
    return b->data ? 0 : -1;
}

static size_t reserve_copy (uint64_t bytes)
{
    return (size_t)((bytes + PAGE - 1) / PAGE * PAGE);
}

enum { COPIERS = 4, ALONE = 32 << 20 };

struct copying {
    const struct save_job *job;
    unsigned char *const *places;
    atomic_size_t next;
};

static void *copy_some (void *arg)
{
    struct copying *c = arg;
    size_t i;

    while ((i = atomic_fetch_add (&c->next, 1)) < c->job->n) {
        const struct piece *p = &c->job->list[i];
        if (p->bytes && !p->device)
            copy_past_caches (c->places[i], p->data, p->bytes);
    }
    return NULL;
}

/* Only start the copies from a device; they run while host memory is copied. */
static int copy_pieces (const struct save_job *job, unsigned char *const *places,
                        const struct memory_ops *device)
{
    struct copying c = { .job = job, .places = places };
    uint64_t bytes = 0;
    /* a copy first waits for the device, because its running work belongs to the
     * snapshot
     */
    int rv = device ? device->begin () : 0;

    for (size_t i = 0; rv == 0 && i < job->n; i++) {
        const struct piece *p = &job->list[i];
        if (p->bytes && p->device)
            rv = p->device->to_host_later (places[i], p->data, p->bytes);
        else
            bytes += p->bytes;
    }
    if (rv == 0)
        thread_pool_run (bytes < ALONE ? 1 : thread_pool_size (COPIERS), copy_some, &c);
    if (device && device->end () < 0)
        rv = -1;
    return rv;
}

static void move_job (struct save_job *job, unsigned char *const *places)
{
    for (size_t i = 0; i < job->n; i++) {
        job->list[i].data = places[i];
        job->list[i].device = NULL;
    }
}

/* The device whose memory a job contains, or NULL. */
static const struct memory_ops *job_device (const struct save_job *job)
{
    const struct memory_ops *device = NULL;

    for (size_t i = 0; i < job->n; i++)
        if (job->list[i].device)
            device = job->list[i].device;
    return device;
}

int snapshot_prepare (struct buffer *b, const struct save_job *job)
{
    size_t size = PAGE;

    for (size_t i = 0; i < job->n; i++)
        size += reserve_copy (job->list[i].bytes);
    return get_buffer (b, size, job_device (job));
}

int snapshot_take (struct buffer *b, struct save_job *job)
{
    unsigned char **places = malloc ((job->n + 1) * sizeof (*places));
    size_t size = 0;
    int rv = -1;
    int e;

    if (places && snapshot_prepare (b, job) == 0) {
        for (size_t i = 0; i < job->n; i++) {
            places[i] = b->data + size;
            size += reserve_copy (job->list[i].bytes);
        }
        rv = copy_pieces (job, places, job_device (job));
    }
    if (rv == 0)
        move_job (job, places);
    e = errno;
    free (places);
    errno = e;
    return rv;
}
