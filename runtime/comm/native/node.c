/* SPDX-License-Identifier: Apache-2.0 */
/* Set up the shared memory of the ranks of a node. */
#include "runtime/comm/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"

/* The first rank's description of its memory. */
struct node_offer {
    int64_t pid;
    int64_t fd; /* -1: no memory */
    uint64_t nonce, bytes;
};

static size_t chunk_of (long size)
{
    return (size_t)(size <= 8 ? 256 : size <= 32 ? 128 : 64) << 10;
}

static size_t head_bytes (long size)
{
    size_t all = sizeof (struct node_head) + (size_t)size * sizeof (struct node_rank);

    return (all + 4095) & ~(size_t)4095;
}

static size_t node_memory (long size)
{
    return head_bytes (size) + (size_t)(size + 1) * NODE_SLOTS * chunk_of (size);
}

/* Find the ranks of the mesh that are on our node. */
static int find_node_ranks (struct node_group *n)
{
    struct mesh *m = n->mesh;
    long own = mesh_rank (m), node = mesh_node_of (m, own), found = 0;

    n->size = mesh_local_size (m, node);
    n->rank = mesh_local_rank (m, own);
    n->world = calloc ((size_t)n->size, sizeof (*n->world));
    n->parts = calloc ((size_t)n->size, sizeof (*n->parts));
    if (!n->world || !n->parts)
        return -1;
    for (long r = 0; r < mesh_size (m) && found < n->size; r++)
        if (mesh_node_of (m, r) == node)
            n->world[found++] = r;
    return 0;
}

/* Allocate all memory now, so that no store into it raises SIGBUS. */
static int make_shared_memory (size_t bytes)
{
    int fd = memfd_create ("slurmdl", MFD_CLOEXEC);

    if (fd >= 0 && (errno = posix_fallocate (fd, 0, (off_t)bytes)) != 0) {
        close (fd);
        fd = -1;
    }
    return fd;
}

static int map_node_memory (struct node_group *n, int fd)
{
    void *p = mmap (NULL, n->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED)
        return -1;
    n->head = p;
    return 0;
}

static bool is_node_memory_wanted (void)
{
    const char *value = getenv ("DL_COMM_SHARED");

    return !value || strcmp (value, "0") != 0;
}

/* The first rank's part.  Returns its file descriptor, or -1 if it has no memory. */
static int make_node_offer (struct node_group *n, struct node_offer *o)
{
    int fd = is_node_memory_wanted () ? make_shared_memory (n->bytes) : -1;

    if (fd >= 0 && map_node_memory (n, fd) < 0) {
        close (fd);
        fd = -1;
    }
    if (fd >= 0) {
        if (getrandom (&o->nonce, sizeof (o->nonce), 0) < 0)
            o->nonce = (uint64_t)getpid ();
        n->head->nonce = o->nonce;
    }
    o->pid = getpid ();
    o->fd = fd;
    o->bytes = n->bytes;
    return fd;
}

/* The other ranks' part.  The nonce proves that this PID is the process we mean: we
 * may be in another container.
 */
static bool map_peer (struct node_group *n, const struct node_offer *o)
{
    char path[64];
    struct stat st;
    bool ok = false;
    int fd;

    snprintf (path, sizeof (path), "/proc/%lld/fd/%lld", (long long)o->pid, (long long)o->fd);
    if (o->fd < 0 || o->bytes != n->bytes || (fd = open (path, O_RDWR | O_CLOEXEC)) < 0)
        return false;
    if (fstat (fd, &st) == 0 && S_ISREG (st.st_mode) && (uint64_t)st.st_size == o->bytes
        && map_node_memory (n, fd) == 0)
        ok = n->head->nonce == o->nonce;
    close (fd);
    return ok;
}

/* Whether all ranks of the node have mapped the memory. */
enum node_memory { NODE_MEMORY_FAILED = -1, NODE_MEMORY_NONE, NODE_MEMORY_SHARED };

static enum node_memory offer_node_memory (struct node_group *n, struct slurmdl_error *err)
{
    struct node_offer o = { 0 };
    enum node_memory result = NODE_MEMORY_FAILED;
    int fd = make_node_offer (n, &o);
    char all = fd >= 0;

    for (long r = 1; r < n->size; r++)
        if (mesh_send (n->mesh, n->world[r], &o, sizeof (o), err) < 0)
            goto out;
    for (long r = 1; r < n->size; r++) {
        char ok = 0;

        if (mesh_recv (n->mesh, n->world[r], &ok, 1, err) < 0)
            goto out;
        all = all && ok;
    }
    for (long r = 1; r < n->size; r++)
        if (mesh_send (n->mesh, n->world[r], &all, 1, err) < 0)
            goto out;
    result = all ? NODE_MEMORY_SHARED : NODE_MEMORY_NONE;
out:
    if (fd >= 0)
        close (fd);
    return result;
}

static enum node_memory join_node_memory (struct node_group *n, struct slurmdl_error *err)
{
    struct node_offer o;
    char ok, all = 0;

    if (mesh_recv (n->mesh, n->world[0], &o, sizeof (o), err) < 0)
        return NODE_MEMORY_FAILED;
    ok = map_peer (n, &o);
    if (mesh_send (n->mesh, n->world[0], &ok, 1, err) < 0
        || mesh_recv (n->mesh, n->world[0], &all, 1, err) < 0)
        return NODE_MEMORY_FAILED;
    return all ? NODE_MEMORY_SHARED : NODE_MEMORY_NONE;
}

static void set_up (struct node_group *n)
{
    n->chunk = chunk_of (n->size);
    n->slots = (char *)n->head + head_bytes (n->size);
    n->results = n->slots + (size_t)n->size * NODE_SLOTS * n->chunk;
}

struct node_group *node_open (struct mesh *m, struct slurmdl_error *err)
{
    struct node_group *n = calloc (1, sizeof (*n));
    enum node_memory memory;

    if (!n)
        goto fail;
    n->mesh = m;
    if (find_node_ranks (n) < 0)
        goto fail;
    n->bytes = node_memory (n->size);
    memory = n->rank == 0 ? offer_node_memory (n, err) : join_node_memory (n, err);
    if (memory == NODE_MEMORY_NONE)
        errno = ENOTSUP;
    if (memory != NODE_MEMORY_SHARED)
        goto fail;
    set_up (n);
    return n;
fail:
    errorf (err, "memory of the node's ranks: %s", strerror (errno));
    node_close (n);
    return NULL;
}

void node_close (struct node_group *n)
{
    int keep = errno;

    if (!n)
        return;
    if (n->head)
        munmap (n->head, n->bytes);
    free (n->world);
    free (n->parts);
    free (n);
    errno = keep;
}
