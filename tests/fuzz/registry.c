/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a model registry, which a group may share. */
#include "launcher/model/model.h"
#include "launcher/sys/command_line.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static const char *const names[] = { "net", "net@best", "net/2" };
    char dir[4096];
    const struct model_options opt = { .models = dir, .step = -1 };
    struct command_line line = { .dir = ".", .nargs = 1, .options = &opt };

    snprintf (dir, sizeof (dir), "%s", fuzz_files ("registry", data, size, NULL));
    line.args = (char *[]){ (char *)"ls", NULL };
    cmd_model (&line);
    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++) {
        line.args = (char *[]){ (char *)"show", (char *)names[i], NULL };
        line.nargs = 2;
        cmd_model (&line);
    }
    return 0;
}
