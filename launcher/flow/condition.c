/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of steps: comparisons, all of which must hold. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/flow/flow.h"

static const char *const operators[] = { "==", "!=", "<=", ">=", "<", ">" };

static char *trimmed (const char *from, size_t n)
{
    while (n > 0 && isspace ((unsigned char)from[n - 1]))
        n--;
    while (n > 0 && isspace ((unsigned char)*from)) {
        from++;
        n--;
    }
    if (n >= 2 && strchr ("\"'", *from) && from[n - 1] == *from) {
        from++;
        n -= 2;
    }
    return strndup (from, n);
}

static int comparison (const char *text, size_t len, struct flow_comparison *c)
{
    for (const char *at = text; at < text + len; at++)
        for (size_t i = 0; i < sizeof (operators) / sizeof (*operators); i++)
            if (!strncmp (at, operators[i], strlen (operators[i]))) {
                const char *right = at + strlen (operators[i]);
                *c = (struct flow_comparison){
                    trimmed (text, (size_t)(at - text)),
                    trimmed (right, (size_t)(text + len - right)),
                    operators[i],
                };
                return *c->left ? 0 : -1;
            }
    *c = (struct flow_comparison){ 0 };
    return -1;
}

int flow_comparisons (const char *text,
                      struct flow_comparison c[COMPARISONS_MAX])
{
    int n = 0;

    while (n < COMPARISONS_MAX) {
        const char *end = strstr (text, "&&");
        size_t len = end ? (size_t)(end - text) : strlen (text);
        if (comparison (text, len, &c[n++]) < 0)
            break;
        if (!end)
            return n;
        text = end + 2;
    }
    flow_comparisons_free (c, n);
    return -1;
}

void flow_comparisons_free (struct flow_comparison *c, int n)
{
    for (int i = 0; i < n; i++) {
        free (c[i].left);
        free (c[i].right);
    }
}
