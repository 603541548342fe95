/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of the site: what srun tells the tasks of them. */
#include "spank/defaults.h"

#include <stdlib.h>
#include <string.h>

#include "spank/context.h"
#include "spank/facts.h"
#include "spank/variable.h"

static const char variable[] = "DL_DEFAULTS";
static const char binds[] = "bind";

void defaults_tell (void)
{
    bool any = false;

    unsetenv (variable);
    for (int row = 0; row < PLUGIN_OPTIONS; row++)
        any = any || (!option_is_given (row) && option_is_on (row));
    if (any)
        setenv (variable,
                *option_value (PLUGIN_BIND) && !option_is_given (PLUGIN_BIND)
                        && !facts_user_binds ()
                    ? binds
                    : "none",
                1);
}

bool defaults_take (spank_t sp, bool acts)
{
    char text[16];

    if (variable_text (sp, variable, text, sizeof (text)) < 0)
        return false;
    spank_unsetenv (sp, variable);
    if (!acts) {
        spank_unsetenv (sp, "DL_SECRET");
        spank_unsetenv (sp, "DL_GATHER");
    }
    return !strcmp (text, binds);
}
