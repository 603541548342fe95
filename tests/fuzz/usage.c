/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that srun --dl-monitor writes, one line "STEP TIME VALUE NAME" each; "==" starts the next
 * node.  metrics.c fuzzes the file format.
 */
#include "launcher/monitor/usage.c"

#include "launcher/monitor/monitor.h"
#include "tests/fuzz/fuzz.h"

enum { ADVICE = 8 };

/* Read the rows of one node and return the text after them. */
static char *read_node (struct usage *u, char *rest, double since)
{
    struct tracks t = { .begin = NAN, .since = since };
    char name[NAME_SIZE];
    struct slurmdl_row row = { .name = name };
    long long step;

    while (*rest) {
        const char *line = fuzz_line (&rest);
        if (!strcmp (line, "=="))
            break;
        if (sscanf (line, "%lld %lf %lf %63s", &step, &row.time, &row.value, name) < 4)
            continue;
        row.step = step;
        if (take_usage_row (&row, &t) < 0)
            break;
    }
    end_series_file (u, "n1", &t);
    free (t.list);
    return rest;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const struct pattern_row *rows[ADVICE];
    char *text = fuzz_text (data, size);
    struct usage u = { NULL };
    char line[512];

    for (char *rest = text; *rest;)
        rest = read_node (&u, rest, *text == '-' ? 9 : -INFINITY);
    for (int i = advise (&u, rows, ADVICE) - 1; i >= 0; i--)
        advice_text (&u, rows[i], line, sizeof (line));
    usage_free (&u);
    free (text);
    return 0;
}
