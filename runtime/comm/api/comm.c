/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: their ranks, their back ends, and their end. */
#include "runtime/comm/api/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"

/* Open the back end for host memory. */
static int comm_open_host (struct slurmdl_comm *c, struct slurmdl_error *err)
{
    c->host = &comm_backend_native;
    if (c->wanted && strcmp (c->wanted, "mpi") == 0)
        c->host = comm_backend_load (c->wanted, err);
    if (!c->host)
        return -1;
    /* one rank computes nothing with others */
    if (mesh_size (c->mesh) == 1)
        return 0;
    return c->host->probe (err) < 0 ? -1 : c->host->open (c->mesh, &c->host_self, err);
}

/* Of this mesh alone: the host's back end is opened. */
static struct slurmdl_comm *comm_of_mesh (struct mesh *m, const struct slurmdl_comm *parent,
                                          struct slurmdl_error *err)
{
    struct slurmdl_comm *c = m ? calloc (1, sizeof (*c)) : NULL;

    if (m && !c)
        errorf (err, "out of memory");
    if (!c) {
        mesh_close (m);
        return NULL;
    }
    c->mesh = m;
    c->next_channel = COMM_CHANNEL_PARTS;
    c->wanted = parent ? parent->wanted : NULL;
    if (!parent || comm_open_host (c, err) == 0)
        return c;
    slurmdl_comm_close (c, NULL);
    return NULL;
}

int slurmdl_comm_close (struct slurmdl_comm *c, struct slurmdl_error *err)
{
    int saved = errno;
    int rv = 0;

    error_clear (err);
    if (!c)
        return 0;
    if (c->engine && (rv = c->engine_calls->close (c->engine, err)) < 0)
        saved = errno;
    if (c->device_self)
        c->device->close (c->device_self);
    if (c->host_self)
        c->host->close (c->host_self);
    mesh_close (c->mesh);
    boot_close (c->boot);
    free (c);
    errno = saved;
    return rv;
}

void slurmdl_comm_abort (struct slurmdl_comm *c, const char *why)
{
    void *device;

    if (c->engine)
        c->engine_calls->abort (c->engine, why);
    mesh_abort (c->mesh, why);
    if ((device = atomic_load (&c->device_self)))
        c->device->abort (device);
    if (c->host_self && c->host != &comm_backend_native)
        c->host->abort (c->host_self);
    errorf (&c->why, "aborted: %s", why ? why : "no reason given");
    c->broken = true;
}

int comm_break (struct slurmdl_comm *c, struct slurmdl_error *err)
{
    int saved = errno;

    if (!c->broken && err)
        c->why = *err;
    c->broken = true;
    mesh_abort (c->mesh, c->why.text);
    errno = saved;
    return -1;
}

long slurmdl_comm_rank (const struct slurmdl_comm *c)
{
    return mesh_rank (c->mesh);
}

long slurmdl_comm_size (const struct slurmdl_comm *c)
{
    return mesh_size (c->mesh);
}

long slurmdl_comm_local_rank (const struct slurmdl_comm *c)
{
    return mesh_local_rank (c->mesh, mesh_rank (c->mesh));
}

long slurmdl_comm_local_size (const struct slurmdl_comm *c)
{
    return mesh_local_size (c->mesh, slurmdl_comm_node (c));
}

long slurmdl_comm_node (const struct slurmdl_comm *c)
{
    return mesh_node_of (c->mesh, mesh_rank (c->mesh));
}

long slurmdl_comm_nodes (const struct slurmdl_comm *c)
{
    return mesh_nodes (c->mesh);
}

const char *slurmdl_comm_host (const struct slurmdl_comm *c, long rank)
{
    return rank >= 0 && rank < mesh_size (c->mesh) ? mesh_host (c->mesh, rank) : NULL;
}

const char *slurmdl_comm_backend (const struct slurmdl_comm *c)
{
    return c->device ? c->device->name : c->host->name;
}

const char *slurmdl_comm_bootstrap (const struct slurmdl_comm *c)
{
    return c->boot ? boot_name (c->boot) : "";
}

struct slurmdl_comm *comm_channel (struct slurmdl_comm *c, unsigned channel,
                                   struct slurmdl_error *err)
{
    return comm_of_mesh (mesh_channel (c->mesh, channel, err), c, err);
}

static const char *wanted (const struct slurmdl_comm_options *o, struct slurmdl_error *err)
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
    const char *name = b ? wanted (o, err) : NULL;
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

/* What a rank says when a communicator is split. */
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

/* Those of our color, in their order; returns how many. */
static long choose (struct split_choice *all, long size, int64_t color, long *ranks)
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
            mesh_subset (c->mesh, ranks, choose (all, size, color, ranks), channel, err), c, err);
    free (all);
    free (ranks);
    return part;
}
