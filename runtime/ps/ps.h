/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the parameter server share. */
#pragma once

#include <limits.h>

#include "runtime/ps/table.h"
#include "runtime/storage/own_folder.h"

struct ps_client;

enum ps_role { PS_WORKER, PS_SERVER, PS_SPARE };

struct slurmdl_ps {
    enum ps_role role;
    long index, servers, workers;
    enum slurmdl_ps_mode mode;
    int64_t staleness; /* of what a pull may miss: 0 in mode sync */
    int64_t save_every;
    long long log_bytes;
    double timeout, grace;
    char *address;
    char name[PATH_MAX]; /* for messages: others may exchange it */
    struct own_folder folder;
    const char *dir;       /* leads to what is in it */
    struct ps_entry entry; /* this process's, as it was put last */
    uint64_t number;       /* of it */
    int stop;              /* eventfd of a server */
    struct ps_client *client;
    struct slurmdl_ps_stats stats;
};

extern const char *const ps_modes[]; /* by enum slurmdl_ps_mode */

/* open.c: take the place of this role and index; what 'ps->entry' has is
 * put.
 */
int ps_claim (struct slurmdl_ps *ps, struct slurmdl_error *err);
const char *ps_role_name (const struct slurmdl_ps *ps);

/* handshake.c: whether the process of this entry still serves; and what those
 * who have read the entry know of its listener.
 */
bool pshandshake_is_served (const struct ps_entry *e);
struct handshake pshandshake_with (const struct ps_entry *e);

/* client.c: ps->client; also after a failure it is to be closed. */
int psclient_open (struct slurmdl_ps *ps, struct slurmdl_error *err);
int psclient_close (struct slurmdl_ps *ps); /* as slurmdl_ps_close() */
