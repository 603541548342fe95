/* SPDX-License-Identifier: Apache-2.0 */
/* Batch scripts and options of Slurm: dl env. */
#include "launcher/env/slurm_options.h"
#include "launcher/sys/slurm_time.h"
#include "tests/fuzz/fuzz.h"

static int take (void *arg, const struct ask_step *s)
{
    struct ask copy;
    int *n = arg;

    if (ask_copy (&copy, s->ask) < 0)
        return 1;
    for (int i = 0; i < ASK_KEYS; i++)
        if (copy.value[i])
            slurm_seconds (copy.value[i]);
    ask_free (&copy);
    return ++*n > 100;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const char *path = fuzz_file ("job.sh", data, size);
    struct slurmdl_error err = { "" };
    int n = 0;

    if (ask_script (path, take, &n, &err) < 0)
        fuzz_failed (&err);
    return 0;
}
