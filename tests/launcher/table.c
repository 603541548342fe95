/* SPDX-License-Identifier: Apache-2.0 */
/* dl prints long tables itself; check that they equal those of libsmartcols.  Also check line
 * charts.
 */
#include "launcher/sweep/table.h"
#include "launcher/progress/progress.h"
#include "tests/unit.h"

static const struct table_column ends_left[] = {
    { "n", true }, { "long name", false }, { "last", false }, { NULL, false }
};
static const struct table_column ends_right[] = { { "n", false }, { "x", true }, { NULL, false } };

/* Each cell depends on its column and line; some are empty. */
static struct libscols_table *make (const struct table_column *columns, long lines, const char *odd)
{
    struct libscols_table *tb = table_create ("t", columns, false);
    size_t n = scols_table_get_ncols (tb);

    for (long i = 0; i < lines; i++) {
        struct libscols_line *line = scols_table_new_line (tb, NULL);
        for (size_t k = 0; k < n; k++)
            if ((i + (long)k) % 5)
                table_set (line, k, "%ld", (i * i + (long)k) % 100003);
        if (odd && i == lines / 2)
            table_set (line, 1, "%s", odd);
    }
    return tb;
}

static char *printed (struct libscols_table *tb, bool by_dl)
{
    FILE *out = stdout;
    char *text = NULL;
    size_t size;

    stdout = open_memstream (&text, &size);
    scols_table_set_stream (tb, stdout);
    if (by_dl)
        table_print (tb);
    else
        scols_print_table (tb);
    fclose (stdout);
    stdout = out;
    return text;
}

static void check (const struct table_column *columns, const char *odd)
{
    const long lines[] = { 1, 255, 256, 1000 };

    for (size_t i = 0; i < COUNT (lines); i++) {
        struct libscols_table *tb = make (columns, lines[i], odd);
        char *got = printed (tb, true);
        char *want = printed (tb, false);
        assert_string_equal (got, want);
        scols_unref_table (tb);
        free (want);
        free (got);
    }
}

CASE (long_tables_are_the_same)
{
    static const char *const odd[] = {
        NULL,           "two words ",  "gr\303\266\303\237e",
        "\347\211\207", "a\tb\ntwo\n", "\\x41 \\",
        "\033[31m",     "\377",        "a long, long, long text that widens its column",
    };

    for (size_t i = 0; i < COUNT (odd); i++) {
        check (ends_left, odd[i]);
        check (ends_right, odd[i]);
    }
}

/* ---- charts ---- */

static void assert_chart (const double *values, long n, const char *wanted)
{
    struct screen c;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    screen_begin (&c, 20, 10);
    c.utf8 = false;
    line_chart (&c, values, n, 5);
    screen_end (&c, f);
    fclose (f);
    assert_string_equal (text, wanted);
    free (text);
}

/* The scale is logarithmic if the highest value is more than 20 times the lowest. */
CASE (charts)
{
    const double linear[] = { 20, 5, 5, 1 };
    const double logarithmic[] = { 100, 10, 10, 1 };
    const double from_zero[] = { 100, 75, 25, 0 };
    const double same[] = { 2, 2 };

    assert_chart (linear, 4,
                  "        20 |***     \n"
                  "           |  *     \n"
                  "           |  *     \n"
                  "           |  ***** \n"
                  "         1 |      **\n");
    assert_chart (logarithmic, 4,
                  "       100 |***     \n"
                  "           |  *     \n"
                  "           |  ***** \n"
                  "           |      * \n"
                  "         1 |      **\n");
    assert_chart (from_zero, 4,
                  "       100 |***     \n"
                  "           |  ***   \n"
                  "           |    *   \n"
                  "           |    *** \n"
                  "         0 |      **\n");
    assert_chart (same, 2,
                  "         2 |        \n"
                  "           |        \n"
                  "           |********\n"
                  "           |        \n"
                  "         2 |        \n");
}

int main (void)
{
    unsetenv ("COLUMNS");
    return run_cases (NULL, NULL);
}
