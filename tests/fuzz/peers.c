/* SPDX-License-Identifier: Apache-2.0 */
/* Files of workers and claims in an experiment's folder. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/membership/peer.h"
#include "tests/fuzz/fuzz.h"

/* For others peer_dead() waits, as a network file system may be late. */
static bool is_there (const char *dir, const char *nonce)
{
    char path[4096];

    snprintf (path, sizeof (path), "%.3000s/workers/%.99s", dir, nonce);
    return access (path, F_OK) == 0;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const char *dir = fuzz_files ("experiment", data, size, NULL);
    struct slurmdl_error err = { "" };
    struct peer_info *list = NULL;
    struct peer_membership *self;

    if (peer_list (dir, &list, &err) < 0)
        fuzz_failed (&err);
    free (list);
    if (!(self = peer_create (dir, "7_0", &err)))
        return 0;
    for (long trial = 1; trial < 3; trial++) {
        const char *nonce = peer_claimant (self, trial, 1);
        if (nonce && is_there (dir, nonce) && !peer_dead (self, nonce, 60))
            peer_preceded (self, nonce);
    }
    peer_destroy (self);
    return 0;
}
