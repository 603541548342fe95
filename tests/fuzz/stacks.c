/* SPDX-License-Identifier: Apache-2.0 */
/* Stack files, as dl debug reads them. */
#include "launcher/debug/stacks.h"
#include "tests/fuzz/fuzz.h"

enum { STACKS = 64 };

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static struct stack stacks[STACKS];
    size_t group[STACKS];
    char *text = fuzz_text (data, size);
    size_t n = stacks_parse (text, stacks, 0, STACKS);
    char line[512];

    stacks_group (stacks, n, group);
    stacks_line (stacks, group, n, line, sizeof (line));
    for (size_t i = 0; i < n; i++)
        stack_place (&stacks[i], line, sizeof (line));
    stacks_ranks (stacks, n, line, sizeof (line));
    free (text);
    return 0;
}
