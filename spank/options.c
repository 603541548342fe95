/* SPDX-License-Identifier: Apache-2.0 */
/* The options that the plugin adds to srun, sbatch and salloc. */
#include "spank/options.h"

#include <string.h>

#include "spank/check.h"
#include "spank/context.h"
#include "spank/policy.h"

/* How an option without its value arrives in an inner srun; and --dl=$NAME of a
 * NAME that is not set.
 */
static bool is_absent (const char *value)
{
    return !value || !*value || !strcmp (value, "(null)");
}

/* May be called twice with the same value.  An error here refuses the command
 * at submission; on a node it could only come from a forged environment, and
 * must not fail the job.
 */
static int set_option (int row, const char *value, int remote)
{
    const struct plugin_option *o = &plugin_options[row];
    struct plugin_context *context = context_own ();
    char why[WHY_SIZE] = "";

    if (is_absent (value) && !(value = o->bare)) {
        if (!remote)
            plugin_complain ("--%s=: the value is missing; see dl-spank(7)",
                             o->name);
        return remote ? 0 : -1;
    }
    if (option_check (row, value, why, sizeof (why)) < 0
        || policy_check (&context->policy, row, value, why, sizeof (why)) < 0) {
        plugin_complain ("--%s=%.64s: %s", o->name, value, why);
        return remote ? 0 : -1;
    }
    memcpy (context->value[row], value, strlen (value) + 1);
    return 0;
}

int options_register (spank_t sp)
{
    for (int i = 0; i < PLUGIN_OPTIONS; i++) {
        struct spank_option o = {
            .name = (char *)plugin_options[i].name,
            .arginfo = (char *)plugin_options[i].arginfo,
            .usage = (char *)plugin_options[i].help,
            .has_arg = plugin_options[i].bare ? 2 : 1,
            .val = i,
            .cb = set_option,
        };
        if (policy_has (&context_own ()->policy, i)
            && spank_option_register (sp, &o) != ESPANK_SUCCESS)
            return -1;
    }
    return 0;
}

void options_begin (int ac, char **av)
{
    struct plugin_context *context = context_own ();

    memset (context, 0, sizeof (*context));
    policy_read (&context->policy, ac, av);
    memcpy (context->value, context->policy.fallback, sizeof (context->value));
}
