/* SPDX-License-Identifier: Apache-2.0 */
/* Take the registration of a worker or server. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/ps/ps.h"

const char *ps_role_name (const struct slurmdl_ps *ps)
{
    return ps->role == PS_WORKER ? "worker" : "server";
}

/* What another number of servers has saved is spread again, but not while they
 * serve.
 */
static int fits_group (const struct slurmdl_ps *ps,
                       const struct ps_entry *before,
                       struct slurmdl_error *err)
{
    if (ps->role == PS_WORKER || before->servers == ps->servers
        || (before->state != PS_SERVING && before->state != PS_RESTORING)
        || !pshandshake_is_served (before))
        return 0;
    errno = EPROTO;
    return errorf (err,
                   "%.150s: %" PRId64 " servers are at work there, one on %s; "
                   "this one is of %ld",
                   ps->name,
                   before->servers,
                   before->host,
                   ps->servers);
}

enum { TRIES = 100 };

int ps_claim (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    const char *role = ps_role_name (ps);
    struct ps_entry before;
    uint64_t number;
    int rv = 1;

    for (int i = 0; rv > 0 && i < TRIES; i++) {
        rv = psregistration_newest (ps->dir, role, ps->index, &number, &before);
        if (rv > 0) {
            if (fits_group (ps, &before, err) < 0)
                return -1;
            ps->entry.nsaved = before.nsaved;
            memcpy (ps->entry.saved, before.saved, sizeof (before.saved));
        }
        ps->entry.claim = number + 1;
        if (rv >= 0)
            rv = psregistration_put (
                ps->dir, role, ps->index, number + 1, &ps->entry);
    }
    if (rv == 0) {
        ps->number = ps->entry.claim;
        return 0;
    }
    return errorf (err,
                   "%.150s: cannot take the place of %s %ld: %s",
                   ps->name,
                   role,
                   ps->index,
                   rv > 0 ? "others take it all the time" : strerror (errno));
}
