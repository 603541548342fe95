/* SPDX-License-Identifier: Apache-2.0 */
/* Which collective a message belongs to, in 32 bits. */
#include "runtime/comm/mesh/tag.h"

#include <stdio.h>

/* bits: number 12, root 8, type 5, operation 3, collective 4 */
uint32_t tag_of (enum collective_kind what, enum slurmdl_type type, enum slurmdl_op op, long root,
                 uint32_t call)
{
    uint32_t kind = what <= COMM_REDUCE_SCATTER ? (uint32_t)type << 3 | (uint32_t)op : 0;

    return call << 20 | ((uint32_t)root & 0xff) << 12 | (kind & 0xff) << 4 | (uint32_t)what;
}

bool tag_clash (uint32_t a, uint32_t b)
{
    return a != b && a >> 20 == b >> 20;
}

void tag_text (uint32_t tag, char *buf, size_t size)
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
