/* SPDX-License-Identifier: Apache-2.0 */
/* Metric patterns.  The first line is a pattern; the others are the output of a program. */
#include "launcher/config/metric_pattern.h"
#include "tests/fuzz/fuzz.h"

/* Skip patterns with nested repetitions.  glibc's regcomp() uses unbounded memory for them, but
 * users can harm only themselves.
 */
enum { PATTERN_MAX = 200 };

static bool is_modest (const char *pattern)
{
    size_t repeats = 0;

    for (const char *c = pattern; *c; c++)
        repeats +=
            (*c == '{' && c[1] >= '0' && c[1] <= '9') || *c == '\\' || *c == '*' || *c == '+';
    return strlen (pattern) < PATTERN_MAX && repeats < 5;
}

static int take (const char *name, int64_t step, double value, void *arg)
{
    double *sum = arg;

    *sum += value + (double)step + (double)strlen (name);
    return 0;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    char *rest = text;
    const char *pattern = fuzz_line (&rest);
    struct slurmdl_error err = { "" };
    struct pattern *p = NULL;
    double sum = 0;

    if (is_modest (pattern) && !(p = pattern_create (pattern, &err)))
        fuzz_failed (&err);
    while (p && *rest)
        pattern_match (p, fuzz_line (&rest), take, &sum);
    pattern_destroy (p);
    free (text);
    return 0;
}
