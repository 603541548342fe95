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

/* A word, a text in quotes, or nothing: what else stands there is a mistake. */
static bool is_operand (const char *text, size_t n)
{
    size_t depth = 0;

    while (n > 0 && isspace ((unsigned char)text[n - 1]))
        n--;
    while (n > 0 && isspace ((unsigned char)*text)) {
        text++;
        n--;
    }
    if (n >= 2 && strchr ("\"'", *text))
        return memchr (text + 1, *text, n - 1) == text + n - 1;
    for (size_t i = 0; i < n; i++) {
        depth += text[i] == '{';
        depth -= depth > 0 && text[i] == '}';
        if (depth == 0 && (isspace ((unsigned char)text[i]) || strchr ("=!<>&|", text[i])))
            return false;
    }
    return true;
}

static int comparison (const char *text, size_t len, struct flow_comparison *c)
{
    for (const char *at = text; at < text + len; at++)
        for (size_t i = 0; i < sizeof (operators) / sizeof (*operators); i++)
            if (!strncmp (at, operators[i], strlen (operators[i]))) {
                const char *right = at + strlen (operators[i]);
                *c = (struct flow_comparison){ 0 };
                if (!is_operand (text, (size_t)(at - text))
                    || !is_operand (right, (size_t)(text + len - right)))
                    return -1;
                *c = (struct flow_comparison){
                    trimmed (text, (size_t)(at - text)),
                    trimmed (right, (size_t)(text + len - right)),
                    operators[i],
                };
                return *c->left && (*c->right || strchr ("=!", *c->op)) ? 0 : -1;
            }
    *c = (struct flow_comparison){ 0 };
    return -1;
}

int flow_comparisons (const char *text, struct flow_comparison c[COMPARISONS_MAX])
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
