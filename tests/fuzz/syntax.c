/* SPDX-License-Identifier: Apache-2.0 */
/* Hints for syntax errors in experiment files, at each of the first lines. */
#include "launcher/config/syntax.h"
#include "tests/fuzz/fuzz.h"

enum { LINES = 3 };

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    int lines = 1;

    for (const char *c = text; (c = strchr (c, '\n')); c++)
        lines++;
    for (int i = 1; i <= lines && i <= LINES; i++) {
        int line = i;
        char *hint = syntax_hint (text, &line);
        if (!hint || line < 1 || line > lines)
            abort ();
        free (hint);
    }
    free (text);
    return 0;
}
