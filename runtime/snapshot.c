/* SPDX-License-Identifier: Apache-2.0 */
/* Copy protected memory, so that training can go on while it is written. */
#include "runtime/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/memory.h"

enum { PAGE = 4096 };

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* ---- the job ---- */

/* What all ranks have alike is rank 0's to write. */
static bool is_mine (const struct slurmdl *run, const struct region *r)
{
    return run->rank == 0 || r->shard;
}

static void fill (struct piece *p, const struct region *r)
{
    *p = (struct piece){ .type = r->type,
                         .slab = r->slab,
                         .bytes = r->bytes,
                         .data = r->data,
                         .shard = r->shard,
                         .offset = UINT64_MAX };
    memcpy (p->name, r->name, sizeof (p->name));
    memcpy (p->dims, r->dims, sizeof (p->dims));
    if (r->bytes && !r->state)
        p->device = memory_ops_of (r->data);
}

int job_create (struct job *job, const struct slurmdl *run, int64_t step)
{
    *job = (struct job){ .step = step };
    job->shared = run->size > 1 && regions_shared (&run->regions);
    job->list = calloc (run->regions.n + 1, sizeof (*job->list));
    if (!job->list)
        return -1;
    for (size_t i = 0; i < run->regions.n; i++)
        if (is_mine (run, &run->regions.list[i]))
            fill (&job->list[job->n++], &run->regions.list[i]);
    return 0;
}

void job_free (struct job *job)
{
    free (job->list);
    job->list = NULL;
    job->n = 0;
}

/* ---- the buffer ---- */

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

/* The ranks of a machine share its memory. */
static uint64_t most (void)
{
    const char *wish = getenv ("DL_SNAPSHOT_MAX");
    const char *local =
        getenv ("LOCAL_WORLD_SIZE") ?: getenv ("SLURM_NTASKS_PER_NODE");
    long n = local ? atol (local) : 1;

    if (wish)
        return strtoull (wish, NULL, 10);
    return free_memory () / 2 / (uint64_t)(n > 0 ? n : 1);
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
    void *p = mmap (
        NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    madvise (p, size, MADV_HUGEPAGE);
    /* else the first snapshot pays for each page */
    if (madvise (p, size, MADV_POPULATE_WRITE) < 0 && errno == EINVAL)
        for (size_t i = 0; i < size; i += PAGE)
            ((volatile char *)p)[i] = 0;
    return p;
}

static int
get_buffer (struct buffer *b, size_t size, const struct memory_ops *device)
{
    if (b->size >= size && b->device == device)
        return 0;
    buffer_free (b);
    if (size > most ()) {
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

/* ---- to copy ---- */

static size_t room (uint64_t bytes)
{
    return (size_t)((bytes + PAGE - 1) / PAGE * PAGE);
}

static int copy (unsigned char *to, const struct piece *p)
{
    if (p->device)
        return p->device->to_host_later (to, p->data, p->bytes);
    memcpy (to, p->data, p->bytes);
    return 0;
}

int snapshot_take (struct buffer *b, struct job *job)
{
    const struct memory_ops *device = NULL;
    size_t size = PAGE;
    unsigned char *to;
    int rv = 0;

    for (size_t i = 0; i < job->n; i++) {
        size += room (job->list[i].bytes);
        if (job->list[i].device)
            device = job->list[i].device;
    }
    if (get_buffer (b, size, device) < 0)
        return -1;
    /* what the device still computes is part of it */
    if (device)
        rv = device->begin ();
    to = b->data;
    for (size_t i = 0; rv == 0 && i < job->n; i++) {
        if (job->list[i].bytes)
            rv = copy (to, &job->list[i]);
        to += room (job->list[i].bytes);
    }
    if (device && device->end () < 0)
        rv = -1;
    if (rv < 0)
        return -1;
    to = b->data;
    for (size_t i = 0; i < job->n; i++) {
        job->list[i].data = to;
        job->list[i].device = NULL;
        to += room (job->list[i].bytes);
    }
    return 0;
}
