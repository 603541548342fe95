/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles with NCCL variables, and an environment. */
#include "runtime/network/nccl.c"
#include "tests/fuzz/fuzz.h"

enum { VARIABLES = 64 };

static void say (void *arg, const char *line)
{
    int *n = arg;

    for (; *line; line++)
        if ((unsigned char)*line < ' ' || *line == 0x7f)
            abort ();
    ++*n;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static struct nccl_profile p;
    char lines[NCCL_LINES][NCCL_LINE];
    char *text = fuzz_text (data, size);
    char *rest = text;
    char *env[VARIABLES + 1] = { NULL };
    struct fabric f = { 0 };
    int told = 0;

    memset (&p, 0, sizeof (p));
    parse_profile (text, size, "site.conf", &p, say, &told);
    for (int i = 0; *rest && i < VARIABLES; i++)
        env[i] = fuzz_line (&rest);
    nccl_lint (env, "NCCL_DEBUG", &f, lines);
    nccl_check_name (text);
    free (text);
    return 0;
}
