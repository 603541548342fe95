/* SPDX-License-Identifier: Apache-2.0 */
/* The options that the plugin adds to srun, sbatch and salloc. */
#include "spank/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "spank/context.h"
#include "spank/defaults.h"
#include "spank/policy.h"

static const char is_off[] = "this site has disabled this option (options= in plugstack.conf)";

/* An inner srun gets "(null)" for an option without a value.  The value is empty
 * for --dl=$NAME if NAME is not set.
 */
static bool is_absent (const char *value)
{
    return !value || !*value || !strcmp (value, "(null)");
}

/* Slurm may call this twice with the same value.  An error here rejects the command
 * at submission.  On a node it could only come from a forged environment, and must
 * not fail the job.  The policy in a node's plugstack.conf may differ from that of
 * the step.
 */
static int set_option (int row, const char *value, int remote)
{
    const struct plugin_option *o = &plugin_options[row];
    struct plugin_context *context = context_own ();
    char why[WHY_SIZE] = "";

    if (is_absent (value) && !(value = o->bare)) {
        if (!remote)
            plugin_complain ("--%s=: the value is missing; see dl-spank(7)", o->name);
        return remote ? 0 : -1;
    }
    if (option_check (row, value, why, sizeof (why)) < 0
        || (!remote && policy_check (&context->policy, row, value, why, sizeof (why)) < 0)) {
        plugin_complain ("--%s=%.64s: %s", o->name, value, why);
        return remote ? 0 : -1;
    }
    memcpy (context->given[row], value, strlen (value) + 1);
    return 0;
}

static bool is_remote (void)
{
    return spank_context () == S_CTX_REMOTE;
}

/* A node accepts all options, because srun's policy decides. */
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
        if ((is_remote () || policy_has (&context_own ()->policy, i))
            && spank_option_register (sp, &o) != ESPANK_SUCCESS)
            return -1;
    }
    return 0;
}

static void complain_of (const char *arg, const char *why)
{
    plugin_complain ("plugstack.conf: %.64s: %s", arg, why);
}

static void log_of (const char *arg, const char *why)
{
    complain_of (arg, why);
    syslog (LOG_DAEMON | LOG_WARNING, "slurm-dl: plugstack.conf: %.64s: %.600s", arg, why);
}

/* dl doctor checks on root's behalf. */
static bool is_administrator (void)
{
    return geteuid () == 0 || getenv ("DL_DOCTOR");
}

void options_log (int ac, char **av)
{
    const struct step_facts nothing = { .gpus = ANSWER_UNKNOWN };
    struct site_policy p;

    policy_read (&p, &nothing, ac, av, log_of);
}

void options_begin (int ac, char **av)
{
    const struct step_facts nothing = { .gpus = ANSWER_UNKNOWN };
    struct plugin_context *context = context_own ();

    memset (context, 0, sizeof (*context));
    context->ac = ac;
    context->av = av;
    policy_read (&context->policy, &nothing, ac, av,
                 !is_remote () && is_administrator () ? complain_of : NULL);
}

static bool is_any_given (void)
{
    for (int i = 0; i < PLUGIN_OPTIONS; i++)
        if (option_is_given (i))
            return true;
    return false;
}

/* Only a task knows whether the policy of its partition, for example, forbids the option. */
static void decide_option (struct plugin_context *context, int row, bool loud)
{
    const char *value = context->given[row];
    char why[WHY_SIZE] = "";

    if (!*value)
        value = context->no_defaults || defaults_are_off () ? "" : context->policy.fallback[row];
    else if (!policy_has (&context->policy, row)
             || policy_check (&context->policy, row, value, why, sizeof (why)) < 0) {
        if (loud)
            plugin_complain ("--%s=%s: %s", plugin_options[row].name, value, *why ? why : is_off);
        value = "";
    }
    snprintf (context->value[row], VALUE_MAX + 1, "%s", value);
}

void options_decide (const struct step_facts *facts, bool loud, int ac, char **av)
{
    struct plugin_context *context = context_own ();
    bool tells = loud && !is_remote () && is_any_given () && !is_administrator ();

    policy_read (&context->policy, facts, ac, av, tells ? complain_of : NULL);
    for (int i = 0; i < PLUGIN_OPTIONS; i++)
        decide_option (context, i, loud);
}

/* Slurm passes the options of sbatch and salloc to srun in variables, and silently
 * ignores those that no plugin has registered.
 */
void options_lost (void)
{
    static const char mark[] = "_SLURM_SPANK_OPTION_dl_";
    const struct site_policy *p = &context_own ()->policy;

    for (int i = 0; i < PLUGIN_OPTIONS; i++) {
        char name[64];
        if (policy_has (p, i))
            continue;
        snprintf (name, sizeof (name), "%s%s=", mark, plugin_options[i].name);
        for (char *c = name; *c; c++)
            *c = *c == '-' ? '_' : *c;
        for (char **v = environ; *v; v++) {
            const char *at = strstr (*v, name);
            if (!at || at > *v + strcspn (*v, "="))
                continue;
            if (strcmp (at + strlen (name), "off"))
                plugin_complain ("--%s=%s: %s", plugin_options[i].name, at + strlen (name), is_off);
            break;
        }
    }
}
