/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the plugin's options.  The first byte of each line selects the option. */
#include "runtime/rank/binding.h"
#include "runtime/rank/plugin_options.h"
#include "runtime/rank/roles.h"
#include "tests/fuzz/fuzz.h"

static void roles (const char *value)
{
    struct rank_roles r;
    char why[200];
    long at;

    if (roles_parse (value, &r, why, sizeof (why)) < 0
        || roles_resolve (&r, 8, why, sizeof (why)) < 0)
        return;
    for (long rank = 0; rank < 8; rank++)
        roles_count (&r, roles_of (&r, rank, &at), NULL);
}

static void bind (const char *value)
{
    static struct binding b;

    memset (&b, 0, sizeof (b));
    binding_words (&b, value);
    binding_is_wanted (&b);
}

static void one (char *line)
{
    const char *value = *line ? line + 1 : line;
    unsigned id = (unsigned char)*line % PLUGIN_OPTIONS;
    struct hang_options h;
    char why[200] = "";

    if (plugin_option_check (id, value, why, sizeof (why)) < 0) {
        if (!*why)
            abort ();
        return;
    }
    if (id == PLUGIN_ROLES)
        roles (value);
    if (id == PLUGIN_BIND)
        bind (value);
    if (id == PLUGIN_DEBUG)
        hang_options_parse (value, &h);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    char *rest = text;

    while (*rest)
        one (fuzz_line (&rest));
    free (text);
    return 0;
}
