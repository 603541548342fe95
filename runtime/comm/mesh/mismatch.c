/* SPDX-License-Identifier: Apache-2.0 */
/* Detect ranks that call different collectives: each message carries a tag of its
 * call.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/comm/mesh/channel.h"
#include "runtime/comm/mesh/collective.h"

/* bits: call number 12, root 8, type 5, operation 3, collective 4 */
uint32_t tag_of (enum collective_kind what, enum slurmdl_type type, enum slurmdl_op op, long root,
                 uint32_t call)
{
    uint32_t kind = what <= COMM_REDUCE_SCATTER ? (uint32_t)type << 3 | (uint32_t)op : 0;

    return call << 20 | ((uint32_t)root & 0xff) << 12 | (kind & 0xff) << 4 | (uint32_t)what;
}

/* Whether two tags have the same call number but different collectives. */
static bool tag_clash (uint32_t a, uint32_t b)
{
    return a != b && a >> 20 == b >> 20;
}

/* Print a tag, as in "allreduce of f32, sum (number 5)". */
static void tag_text (uint32_t tag, char *buf, size_t size)
{
    static const char *const names[] = { "something else", "allreduce", "reduce",
                                         "reduce_scatter", "allgather", "broadcast",
                                         "alltoall",       "barrier" };
    static const char *const ops[] = { "sum", "average", "min", "max", "product" };
    unsigned what = tag & 0xf;
    unsigned op = tag >> 4 & 7;
    const char *type = slurmdl_type_name ((enum slurmdl_type) (tag >> 7 & 0x1f));
    const char *name = what <= COMM_BARRIER ? names[what] : names[0];

    if (what >= COMM_ALLREDUCE && what <= COMM_REDUCE_SCATTER)
        snprintf (buf, size, "%s of %s, %s (number %u)", name, type ? type : "?",
                  op < 5 ? ops[op] : "?", tag >> 20);
    else if (what == COMM_BROADCAST)
        snprintf (buf, size, "%s from %u (number %u)", name, tag >> 12 & 0xff, tag >> 20);
    else
        snprintf (buf, size, "%s (number %u)", name, tag >> 20);
}

int mesh_clash (struct mesh *m, long peer, uint32_t tag, struct slurmdl_error *err)
{
    char theirs[64];
    char ours[64];

    tag_text (tag, theirs, sizeof (theirs));
    tag_text (atomic_load (&m->root->tag), ours, sizeof (ours));
    return mesh_fail (m, EPROTO, err, "rank %ld on %s calls %s, rank %ld calls %s",
                      mesh_world_rank (m, peer), mesh_host (m, peer), theirs, m->endpoint->rank,
                      ours);
}

int mesh_compare (struct mesh *m, long peer, uint32_t tag, struct slurmdl_error *err)
{
    return tag_clash (tag, mesh_called (m)) ? mesh_clash (m, peer, tag, err) : 0;
}

int mesh_check_call (struct mesh *m, long peer, struct slurmdl_error *err)
{
    struct mesh_report r = { .waits = -1 };

    if (mesh_query (m->root, mesh_root_rank (m, peer), &r) < 0)
        return 0;
    return mesh_compare (m, peer, r.tag, err);
}
