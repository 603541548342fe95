/* SPDX-License-Identifier: Apache-2.0 */
/* Experiment files: dl run, dl preview.  "---" first is YAML. */
#include <stdlib.h>
#include <string.h>

#include "launcher/config/diagnostics.h"
#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    bool is_yaml = size > 3 && !memcmp (data, "---", 3);
    const char *path =
        fuzz_file (is_yaml ? "exp.yaml" : "exp.conf", data, size);
    struct experiment *e;
    struct problems p;
    char name[64];

    if (problems_open (&p) < 0)
        return 0;
    e = is_yaml ? experiment_read_edited (path, NULL, &p)
                : experiment_read (path, &p);
    problems_close (&p);
    if (!e && p.count == 0)
        abort ();
    if (e && e->entrypoint)
        hparams_unknown (e, e->entrypoint, name, sizeof (name));
    experiment_destroy (e);
    free (p.text);
    return 0;
}
