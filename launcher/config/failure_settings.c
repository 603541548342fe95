/* SPDX-License-Identifier: Apache-2.0 */
/* Read log_policies from the experiment file. */
#include "launcher/config/failure_settings.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/log_policy.h"
#include "launcher/config/setting.h"
#include "launcher/sys/alloc.h"
#include "runtime/base/nearest_word.h"

static const char key[] = "log_policies";

enum { NAME_MAX_LENGTH = 64 };

/* clang-format off */
/* The default policies of Determined, under the same names. */
static const struct {
    const char *name, *pattern;
} builtin[] = {
    { "CUDA OOM",  "CUDA out of memory" },
    { "ECC Error", "uncorrectable ECC error encountered" },
};
/* clang-format on */
enum { BUILTIN = sizeof (builtin) / sizeof (*builtin) };

static const char *const actions[] = {
    [POLICY_LABEL] = "label",
    [POLICY_EXCLUDE_NODE] = "exclude_node",
    [POLICY_CANCEL_RETRIES] = "cancel_retries",
    NULL,
};

static const char *const policy_members[] = { "name", "pattern", "action", NULL };

/* Find a word in a list.  Returns its index, or -1 after adding a problem. */
static int find_policy_word (const config_setting_t *s, const char *what, const char *word,
                             const char *const *words, struct problems *p)
{
    const char *meant = nearest_word (word, words);

    for (int i = 0; words[i]; i++)
        if (!strcmp (words[i], word))
            return i;
    problem_at (p, origin_of (s), "'%s': unknown %s '%s'%s%s%s", key, what, word,
                DID_YOU_MEAN (meant, "'", "'", "; dl-experiment(5) lists them"));
    return -1;
}

/* Read the strings of a policy, NULL for those not given.  Returns -1 after adding a problem. */
static int read_policy_keys (const config_setting_t *group, const char **texts, struct problems *p)
{
    for (int i = 0; i < config_setting_length (group); i++) {
        const config_setting_t *s = config_setting_get_elem (group, (unsigned)i);
        int k = find_policy_word (s, "key", config_setting_name (s), policy_members, p);
        if (k < 0)
            return -1;
        if (!(texts[k] = config_setting_get_string (s))) {
            problem_at (p, origin_of (s), "'%s': '%s' must be a string", key, policy_members[k]);
            return -1;
        }
    }
    for (int k = 0; k < 2; k++)
        if (!texts[k] || (k == 0 && !*texts[0])
            || (k == 0 && strlen (texts[0]) > NAME_MAX_LENGTH)) {
            problem_at (p, origin_of (group),
                        texts[k] ? "'%s': '%s' must have 1 to 64 bytes"
                                 : "'%s': a policy without '%s'",
                        key, policy_members[k]);
            return -1;
        }
    return 0;
}

static struct log_policy *find_policy (const struct experiment *e, const char *name)
{
    for (size_t i = 0; i < e->failures->npolicies; i++)
        if (!strcmp (e->failures->policies[i].name, name))
            return &e->failures->policies[i];
    return NULL;
}

static void set_policy (struct experiment *e, const char *name, const char *pattern,
                        enum log_policy_action action)
{
    struct log_policy *policy = find_policy (e, name);

    if (!policy) {
        policy = &e->failures->policies[e->failures->npolicies++];
        policy->name = xstrdup (name);
    } else
        free (policy->pattern);
    policy->pattern = xstrdup (pattern);
    policy->action = action;
}

static void read_policy (struct experiment *e, const config_setting_t *group, struct problems *p)
{
    struct slurmdl_error err = { "" };
    const char *texts[3] = { NULL, NULL, NULL };
    const struct log_policy *other;
    int action = POLICY_LABEL;

    if (read_policy_keys (group, texts, p) < 0
        || (texts[2] && (action = find_policy_word (group, "action", texts[2], actions, p)) < 0))
        return;
    if ((other = find_policy (e, texts[0])) && other - e->failures->policies >= BUILTIN)
        problem_at (p, origin_of (group), "'%s': two policies have the name \"%s\"", key, texts[0]);
    else if (log_policy_check (texts[1], &err) < 0)
        problem_at (p, origin_of (group), "'%s': 'pattern' \"%s\": %s", key, texts[1], err.text);
    else
        set_policy (e, texts[0], texts[1], (enum log_policy_action)action);
}

void policies_read (struct experiment *e, config_t *cf, struct problems *p)
{
    const config_setting_t *list = config_lookup (cf, key);
    int n = list ? config_setting_length (list) : 0;

    e->failures->policies = xcalloc ((size_t)n + BUILTIN, sizeof (*e->failures->policies));
    for (size_t i = 0; i < BUILTIN; i++)
        set_policy (e, builtin[i].name, builtin[i].pattern, POLICY_LABEL);
    if (list && !setting_is_list_of_groups (list))
        problem_at (p, origin_of (list),
                    "'log_policies' must be a list of policies: ( { name "
                    "= \"...\"; pattern = \"...\"; action = \"...\"; }, ... )");
    else
        for (int i = 0; i < n; i++)
            read_policy (e, config_setting_get_elem (list, (unsigned)i), p);
}

void policies_free (struct experiment *e)
{
    for (size_t i = 0; i < e->failures->npolicies; i++) {
        free (e->failures->policies[i].name);
        free (e->failures->policies[i].pattern);
    }
    free (e->failures->policies);
}
