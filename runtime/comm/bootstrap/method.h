/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to learn who the ranks are, and where rank 0 listens. */
#pragma once

#include "runtime/comm/bootstrap/tcp.h"

struct boot_method {
    const char *name;
    /* Whether what started this process offers it. */
    bool (*is_there) (void);
    /* Fill p->rank, size, host, port, key; rank 0's p->listener is open then.
     * Set before: the time-out and own name.  All ranks call it.
     */
    int (*find) (struct boot_place *p, const struct slurmdl_comm_options *o,
                 struct slurmdl_error *err);
    void (*leave) (void); /* once for each find() that succeeded */
};

extern const struct boot_method boot_pmix, boot_pmi, boot_tcp;

/* Draw a key, and open rank 0's listener. */
int boot_prepare (struct boot_place *p, struct slurmdl_error *err);

/* Which rank is where, if Slurm's step is what the ranks are; the caller frees
 * it.  NULL: not known.
 */
struct rank_layout *boot_layout (const struct boot_place *p);
