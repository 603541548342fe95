/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: their ranks, back ends and end. */
#include "runtime/comm/api/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"

int comm_open_host (struct slurmdl_comm *c, struct slurmdl_error *err)
{
    c->host = &comm_backend_native;
    if (c->wanted && strcmp (c->wanted, "mpi") == 0)
        c->host = comm_backend_load (c->wanted, err);
    if (!c->host)
        return -1;
    /* a single rank needs no back end */
    if (mesh_size (c->mesh) == 1)
        return 0;
    return c->host->probe (err) < 0 ? -1 : c->host->open (c->mesh, &c->host_self, err);
}

struct slurmdl_comm *comm_of_mesh (struct mesh *m, const struct slurmdl_comm *parent,
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
