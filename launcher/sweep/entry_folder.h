/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that entries of the log are put into, open from one to the next.
 */
#pragma once

#include <stdbool.h>

#include "launcher/sys/background_sync.h"
#include "launcher/sys/publish.h"

struct entry_folder {
    int fd;                            /* -1: none is open */
    char name[24];                     /* of it */
    bool unsettled;                    /* a name in it may be lost with the machine's power */
    bool defers;                       /* entry_put() leaves it so */
    bool begun;                        /* it is being synced */
    struct background_sync *sync;      /* NULL: not needed yet */
    const struct publish_after *after; /* of each entry, or NULL */
};

/* Put the entry 'path' into 'folder', which is made if it is 'new'.  Returns as
 * publish_if_absent().
 */
int entry_put (struct entry_folder *f, const char *folder, bool new, const char *path,
               const char *text, struct slurmdl_error *err);

/* Sync what was put. */
int entry_settle (struct entry_folder *f, struct slurmdl_error *err);

/* Begin with that, beside what the caller does next. */
void entry_begin_to_settle (struct entry_folder *f);

/* Close the descriptor of the folder; it may be closed already. */
void entry_close (struct entry_folder *f);
