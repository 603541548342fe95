/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations of parameter servers and workers. */
#include "runtime/ps/registration.h"
#include "tests/fuzz/fuzz.h"

/* Read, so that sanitizers see it. */
volatile size_t fuzz_sum;

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const char *dir = fuzz_files ("ps", data, size, fuzz_put_message);
    static const char *const roles[] = { "server", "worker" };
    struct ps_entry e;
    uint64_t number;
    int64_t servers;

    for (int r = 0; r < 2; r++)
        for (long i = 0; i < 2; i++) {
            if (psregistration_newest (dir, roles[r], i, &number, &e) != 1)
                continue;
            fuzz_sum += strlen (e.host);
            for (int a = 0; a < PS_ADDRESSES && *e.address[a]; a++)
                fuzz_sum += strlen (e.address[a]);
            psregistration_saved (&e, 1, 1);
        }
    psregistration_common (dir, true, &servers);
    psregistration_common (dir, false, &servers);
    return 0;
}
