/* SPDX-License-Identifier: Apache-2.0 */
/* Cheap copies of a sweep's searcher: only pages that change take memory. */
#include "launcher/sweep/snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "searcher/searcher.h"

/* The state of a searcher contains no pointers into itself, so that it works at any address.  The
 * sweep maps it from a file in memory, and each snapshot is a private mapping of that file.
 */
enum { PAGE = 4096 };

static void *map_searcher (int fd, size_t size, int how)
{
    void *at = mmap (NULL, size, PROT_READ | PROT_WRITE, how, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* The room for trials that have not begun is zero; do not touch these pages, so that they take no
 * memory.
 */
static void copy_sparsely (char *to, const char *from, size_t size)
{
    static const char zero[PAGE];

    for (size_t at = 0; at < size; at += PAGE) {
        size_t n = size - at < PAGE ? size - at : PAGE;
        if (memcmp (from + at, zero, n))
            memcpy (to + at, from + at, n);
    }
}

/* Returns 0 on failure, because descriptor 0 is never a searcher's. */
static int open_searcher_file (size_t size)
{
    int fd = memfd_create ("searcher", MFD_CLOEXEC);

    if (fd > 0 && ftruncate (fd, (off_t)size) == 0)
        return fd;
    if (fd >= 0)
        close (fd);
    return 0;
}

static int share_searcher (struct sweep *s)
{
    size_t size = searcher_size (s->searcher);
    int fd = s->searcher_file ? 0 : open_searcher_file (size);
    void *at = fd ? map_searcher (fd, size, MAP_SHARED) : NULL;

    if (at) {
        copy_sparsely (at, (const char *)s->searcher, size);
        searcher_destroy (s->searcher);
        s->searcher = at;
        s->searcher_file = fd;
    } else if (fd)
        close (fd);
    return s->searcher_file ? 0 : -1;
}

struct searcher *sweep_snapshot (struct sweep *s)
{
    struct searcher *copy =
        share_searcher (s) < 0
            ? searcher_copy (s->searcher)
            : map_searcher (s->searcher_file, searcher_size (s->searcher), MAP_PRIVATE);

    if (!copy)
        out_of_memory ();
    return copy;
}

void sweep_end_snapshot (const struct sweep *s, struct searcher *snapshot)
{
    if (snapshot && s->searcher_file)
        munmap (snapshot, searcher_size (snapshot));
    else
        searcher_destroy (snapshot);
}

void sweep_destroy_searcher (struct sweep *s)
{
    sweep_end_snapshot (s, s->searcher);
    if (s->searcher_file)
        close (s->searcher_file);
    s->searcher_file = 0;
    s->searcher = NULL;
}

void sweep_unshare_searcher (struct sweep *s)
{
    struct searcher *own;

    if (!s->searcher_file)
        return;
    if (!(own = searcher_copy (s->searcher)))
        out_of_memory ();
    sweep_destroy_searcher (s);
    s->searcher = own;
}
