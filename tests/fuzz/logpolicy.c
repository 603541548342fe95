/* SPDX-License-Identifier: Apache-2.0 */
/* log_policies.  The first line is an expression; the rest is the log of a failed attempt. */
#include "launcher/config/log_policy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    char *rest = text;
    char *expression = fuzz_line (&rest);
    struct log_policy list[] = {
        { .name = (char *)"input", .pattern = expression },
        { .name = (char *)"oom", .pattern = (char *)"out of memory" },
    };
    char found[2][POLICY_LINE] = { "", "" };
    struct slurmdl_error err = { "" };
    const char *path;

    /* see tests/fuzz/pattern.c */
    if (strlen (expression) > 64 || strpbrk (expression, "{*+\\"))
        *expression = '\0';
    if (log_policy_check (expression, &err) < 0) {
        fuzz_failed (&err);
        *expression = '\0';
    }
    path = fuzz_file ("log", rest, size - (size_t)(rest - text));
    policies_search (list, 2, path, found);
    for (int i = 0; i < 2; i++)
        for (const char *c = found[i]; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                abort ();
    free (text);
    return 0;
}
