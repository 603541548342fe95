/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that call different collectives. */
#include <errno.h>

#include "runtime/comm/mesh/channel.h"
#include "runtime/comm/mesh/tag.h"

int mesh_clash (struct mesh *m, long peer, uint32_t tag, struct slurmdl_error *err)
{
    char theirs[64];
    char ours[64];

    tag_text (tag, theirs, sizeof (theirs));
    tag_text (atomic_load (&m->root->tag), ours, sizeof (ours));
    return mesh_fail (m, EPROTO, err, "rank %ld on %s calls %s, rank %ld %s",
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
