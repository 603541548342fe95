/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is a value; the others are plugstack.conf arguments that may restrict it. */
#include "spank/policy.h"
#include "spank/context.h"
#include "tests/fuzz/fuzz.h"

enum { ARGUMENTS = 16 };

int option_check (int row, const char *value, char *why, size_t size)
{
    return plugin_option_check ((enum plugin_option_id)row, value, why, size);
}

static void reject (const char *arg, const char *why)
{
    (void)arg;
    (void)why;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static const struct step_facts facts = { ANSWER_YES, true, "a", "b", "c" };
    static struct site_policy policy;
    char *text = fuzz_text (data, size);
    char *rest = text;
    const char *value = fuzz_line (&rest);
    char *arguments[ARGUMENTS];
    char why[200];
    int n = 0;

    while (*rest && n < ARGUMENTS)
        arguments[n++] = fuzz_line (&rest);
    policy_read (&policy, &facts, n, arguments, reject);
    for (int row = 0; row < PLUGIN_OPTIONS; row++)
        if (policy_has (&policy, row))
            policy_check (&policy, row, value, why, sizeof (why));
    free (text);
    return 0;
}
