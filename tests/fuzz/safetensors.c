/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files, as dl ckpt import reads them. */
#include "launcher/model/model.h"
#include "tests/fuzz/fuzz.h"

enum { DATA_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const char *path = fuzz_file ("model.safetensors", data, size);
    struct slurmdl_error err = { "" };
    struct safetensors s;

    if (safetensors_open (&s, path, &err) < 0) {
        fuzz_failed (&err);
        return 0;
    }
    for (size_t i = 0; i < s.n; i++) {
        void *to = s.list[i].bytes > DATA_MAX ? NULL : malloc (s.list[i].bytes + 1);
        if (to && safetensors_read (&s, i, to, &err) < 0)
            fuzz_failed (&err);
        free (to);
    }
    safetensors_close (&s);
    return 0;
}
