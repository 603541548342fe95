/* SPDX-License-Identifier: Apache-2.0 */
/* What a node's file of `srun --dl-monitor` says of ranks and GPUs. */
#include <hdf5.h>

#include "launcher/monitor/advise.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const struct pattern_row *rows[8];
    struct slurmdl_error err = { "" };
    struct usage u;
    char text[512];

    fuzz_file ("n1.h5", data, size);
    if (usage_read (&u, fuzz_folder (), &err) < 0) {
        fuzz_failed (&err);
        return 0;
    }
    for (int i = advise (&u, rows, 8) - 1; i >= 0; i--)
        advice_text (&u, rows[i], text, sizeof (text));
    usage_free (&u);
    return 0;
}
