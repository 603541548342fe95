/* SPDX-License-Identifier: Apache-2.0 */
/* The files of workers and claims in the folder of an experiment. */
#include "launcher/sweep/peer.h"
#include "tests/fuzz/fuzz.h"

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
        if (nonce && !peer_dead (self, nonce, 60))
            peer_preceded (self, nonce);
    }
    peer_destroy (self);
    fuzz_forget (dir); /* remove this worker's file */
    return 0;
}
