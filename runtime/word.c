/* SPDX-License-Identifier: Apache-2.0 */
/* Levenshtein's distance, and the nearest word by it. */
#include "runtime/word.h"

#include <stddef.h>
#include <string.h>

enum { WORD_MAX = 64 };

static int min3 (int a, int b, int c)
{
    int m = a < b ? a : b;

    return m < c ? m : c;
}

/* Levenshtein's distance, by rows. */
static int distance (const char *a, const char *b)
{
    size_t n = strlen (b);
    int row[WORD_MAX + 1];

    if (n > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = (int)j;
    for (size_t i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            int above = row[j];
            row[j] = min3 (
                above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n];
}

const char *nearest_word (const char *word, const char *const *words)
{
    const char *best = NULL;
    int len = (int)strlen (word);
    int limit = len <= 3 ? 1 : len <= 6 ? 2 : 3;

    for (; *words; words++) {
        int d = distance (word, *words);
        if (d <= limit) {
            best = *words;
            limit = d - 1;
        }
    }
    return best;
}
