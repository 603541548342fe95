/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of dl debug, with the files of NCCL and Python in it. */
#include "launcher/debug/debug.h"
#include "launcher/debug/stacks.h"
#include "tests/fuzz/fuzz.h"

static void last_line (const char *dir, const char *name, void *arg)
{
    char path[8192];
    char line[DEBUG_LINE];

    (void)arg;
    debug_path (path, sizeof (path), dir, 1, name);
    debug_last_line (path, "Error", line, sizeof (line));
}

/* Stack files contain "== ", which would start a new file here, so inputs use "=+ " instead. */
static void put_stacks (const char *path, const void *data, size_t size)
{
    char *text = fuzz_text (data, size);

    for (char *c = text; (c = memmem (c, (size_t)(text + size - c), "=+ ", 3));)
        c[1] = '=';
    fuzz_put (path, text, size);
    free (text);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const char *dir = fuzz_files ("debug", data, size, put_stacks);
    long dump = debug_newest (dir);
    char reason[DEBUG_LINE];
    struct stack *stacks;
    size_t *group;

    debug_cause (dir, dump, reason, sizeof (reason));
    debug_done (dir, dump);
    debug_others (dir, "n1");
    debug_read (dir, dump, &stacks, &group);
    free (stacks);
    free (group);
    debug_each (dir, "", last_line, NULL);
    return 0;
}
