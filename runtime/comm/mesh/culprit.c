/* SPDX-License-Identifier: Apache-2.0 */
/* A rank did not come: find out which one it is that all wait for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mesh/channel.h"
#include "runtime/comm/mesh/socket.h"
#include "runtime/comm/mesh/tag.h"

/* The listener of a process that computes answers at once. */
static double patience (const struct mesh *m)
{
    double t = m->timeout / 4;

    return t < 0.5 ? 0.5 : t > 2 ? 2 : t;
}

static int ask (const struct mesh *m, long peer, struct mesh_report *r)
{
    int fd = mesh_call (m, peer, DIAL_QUERY, patience (m));
    int rv;

    if (fd < 0)
        return -1;
    rv = socket_recv (fd, r, sizeof (*r), monotonic () + patience (m));
    close (fd);
    return rv;
}

static long rank_of (const struct mesh *m, int64_t world)
{
    for (long r = 0; r < m->size; r++)
        if (m->world[r] == world)
            return r;
    return -1;
}

/* 'peer' waits for nobody, or for one that is not among us. */
static void say_absent (const struct mesh *m,
                        long peer,
                        const struct mesh_report *r,
                        char *text,
                        size_t size)
{
    unsigned long ours = atomic_load (&m->calls);

    snprintf (text,
              size,
              "rank %ld on %s did not come within %g s: it has called %lu "
              "collectives, rank %ld %lu",
              mesh_world_rank (m, peer),
              mesh_host (m, peer),
              m->timeout,
              (unsigned long)r->calls,
              m->home->rank,
              ours);
}

static void
say_silent (const struct mesh *m, long peer, int code, char *text, size_t size)
{
    if (code == ECONNREFUSED)
        snprintf (
            text, size, "rank %ld on %s has gone", peer, mesh_host (m, peer));
    else
        snprintf (text,
                  size,
                  "rank %ld on %s did not come within %g s: its process is "
                  "stopped, or its host does not answer",
                  mesh_world_rank (m, peer),
                  mesh_host (m, peer),
                  m->timeout);
}

long mesh_blame (struct mesh *part, long peer, char *text, size_t size)
{
    const struct mesh *m = part->root;
    struct mesh_report r = { .waits = -1 };
    long who = mesh_name (part, peer);
    long next = who;

    for (long hops = 0; next >= 0 && next != m->rank && hops < m->size;
         hops++) {
        who = next;
        if (ask (m, who, &r) < 0) {
            say_silent (m, who, errno, text, size);
            return m->world[who];
        }
        next = r.waits < 0 ? -1 : rank_of (m, r.waits);
    }
    say_absent (m, who, &r, text, size);
    return m->world[who];
}

int mesh_clash (struct mesh *m,
                long peer,
                uint32_t tag,
                struct slurmdl_error *err)
{
    char theirs[64];
    char ours[64];

    tag_text (tag, theirs, sizeof (theirs));
    tag_text (atomic_load (&m->root->tag), ours, sizeof (ours));
    return mesh_fail (m,
                      EPROTO,
                      err,
                      "rank %ld on %s calls %s, rank %ld %s",
                      mesh_world_rank (m, peer),
                      mesh_host (m, peer),
                      theirs,
                      m->home->rank,
                      ours);
}

int mesh_compare (struct mesh *m,
                  long peer,
                  uint32_t tag,
                  struct slurmdl_error *err)
{
    return tag_clash (tag, mesh_called (m)) ? mesh_clash (m, peer, tag, err)
                                            : 0;
}

int mesh_ask (struct mesh *m, long peer, struct slurmdl_error *err)
{
    struct mesh_report r = { .waits = -1 };

    if (ask (m->root, mesh_name (m, peer), &r) < 0)
        return 0;
    return mesh_compare (m, peer, r.tag, err);
}
