/* SPDX-License-Identifier: Apache-2.0 */
/* Open and split communicators. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/api/comm.h"

static const char *wanted_backend (const struct slurmdl_comm_options *o, struct slurmdl_error *err)
{
    static const char *const names[] = { "native", "mpi", "nccl" };
    const char *name = o && o->backend ? o->backend : NULL;

    if (!name)
        name = getenv ("DL_COMM_BACKEND");
    if (!name || !*name)
        return "";
    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (strcmp (names[i], name) == 0)
            return names[i];
    errno = EINVAL;
    errorf (err, "'%s' is not a back end: native, mpi or nccl", name);
    return NULL;
}

struct slurmdl_comm *comm_open_boot (struct boot *b, const struct slurmdl_comm_options *o,
                                     struct slurmdl_error *err)
{
    const char *name = b ? wanted_backend (o, err) : NULL;
    struct mesh *m = name ? mesh_open (b, err) : NULL;
    struct slurmdl_comm *c = m ? comm_of_mesh (m, NULL, err) : NULL;

    if (!c) {
        boot_close (b);
        return NULL;
    }
    c->boot = b;
    c->wanted = *name ? name : NULL;
    if (comm_open_host (c, err) == 0
        && (!c->wanted || strcmp (c->wanted, "nccl") || comm_find_device (c, NULL, err) == 0))
        return c;
    slurmdl_comm_close (c, NULL);
    return NULL;
}

struct slurmdl_comm *slurmdl_comm_open (const struct slurmdl_comm_options *o,
                                        struct slurmdl_error *err)
{
    static const struct slurmdl_comm_options none;

    if (err)
        *err->text = '\0';
    return comm_open_boot (boot_open (o ? o : &none, err), o, err);
}

/* A rank's arguments to a split. */
struct split_choice {
    int64_t color, key, rank;
};

static int by_key (const void *a, const void *b)
{
    const struct split_choice *x = a;
    const struct split_choice *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* List the ranks of our color in their new order.  Returns their number. */
static long choose_color (struct split_choice *all, long size, int64_t color, long *ranks)
{
    long n = 0;

    qsort (all, (size_t)size, sizeof (*all), by_key);
    for (long i = 0; i < size; i++)
        if (all[i].color == color)
            ranks[n++] = (long)all[i].rank;
    return n;
}

struct slurmdl_comm *slurmdl_comm_split (struct slurmdl_comm *c, long color, long key,
                                         struct slurmdl_error *err)
{
    long size = mesh_size (c->mesh);
    struct split_choice mine = { color, key, mesh_rank (c->mesh) };
    struct split_choice *all = calloc ((size_t)size, sizeof (*all));
    long *ranks = calloc ((size_t)size, sizeof (*ranks));
    unsigned channel = c->next_channel++;
    struct slurmdl_comm *part = NULL;

    if (err)
        *err->text = '\0';
    if (!all || !ranks)
        errorf (err, "out of memory");
    else if (slurmdl_allgather (c, &mine, sizeof (mine), all, NULL, err) == 0 && color < 0)
        errno = 0;
    else if (!c->broken)
        part = comm_of_mesh (
            mesh_subset (c->mesh, ranks, choose_color (all, size, color, ranks), channel, err), c,
            err);
    free (all);
    free (ranks);
    return part;
}
