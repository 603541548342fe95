/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to learn who the ranks are, and where rank 0 listens. */
#pragma once

#include "runtime/comm/bootstrap/tcp.h"

struct boot_method {
    const char *name;
    /* Whether the launcher of this process offers it. */
    bool (*is_there) (void);
    /* Fill in p->rank, size, host, port and key, and open p->listener on rank
     * 0.  The timeout and the own name are set before.  All ranks call it.
     */
    int (*find) (struct boot_place *p, const struct slurmdl_comm_options *o,
                 struct slurmdl_error *err);
    void (*leave) (void); /* once for each find() that succeeded */
};

extern const struct boot_method boot_pmix, boot_pmi, boot_tcp;

/* Draw a key, and open rank 0's listener. */
int boot_prepare (struct boot_place *p, struct slurmdl_error *err);

/* Which rank is on which host, if the ranks are those of Slurm's step; the
 * caller frees it.  NULL: unknown.
 */
struct rank_layout *boot_layout (const struct boot_place *p);
