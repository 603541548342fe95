/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a registry of models, which a group may share. */
#include "launcher/model/registry.h"
#include "launcher/model/model.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static const char *const names[] = { "net", "net@best", "net/2" };
    char dir[4096];
    struct settings st = { .models = dir, .nargs = 1 };
    struct slurmdl_error err = { "" };
    struct model_reference ref;
    struct registry r;

    snprintf (dir, sizeof (dir), "%s", fuzz_files ("registry", data, size, NULL));
    st.args = (char *[]){ (char *)"ls", NULL };
    model_ls (&st);
    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++) {
        if (registry_open (&r, &st, false, &err) < 0
            || registry_resolve (&r, names[i], &ref, &err) < 0)
            fuzz_failed (&err);
        st.args = (char *[]){ (char *)"show", (char *)names[i], NULL };
        st.nargs = 2;
        model_show (&st);
    }
    return 0;
}
