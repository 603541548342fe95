/* SPDX-License-Identifier: Apache-2.0 */
/* Find the word closest to a misspelled one. */
#include "runtime/base/nearest_word.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 64 };

static int min3 (int a, int b, int c)
{
    int m = a < b ? a : b;

    return m < c ? m : c;
}

/* Count the letters to insert, drop, replace or swap with the next one (optimal
 * string alignment).  Keep only three rows of the table.
 */
static int edit_distance (const char *a, const char *b)
{
    size_t n = strlen (b);
    int row[3][WORD_MAX + 1];

    if (n > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= n; j++)
        row[0][j] = (int)j;
    for (size_t i = 1; a[i - 1]; i++) {
        int *now = row[i % 3];
        const int *last = row[(i + 2) % 3];
        const int *before = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            now[j] = min3 (last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]
                && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
    }
    return row[strlen (a) % 3][n];
}

const char *nearest_word (const char *word, const char *const *words)
{
    const char *best = NULL;
    int len = (int)strlen (word);
    int limit = len <= 3 ? 1 : len <= 6 ? 2 : 3;

    for (; *words; words++) {
        int d = strcasecmp (word, *words) ? edit_distance (word, *words) : 0;
        if (d <= limit) {
            best = *words;
            limit = d - 1;
        }
    }
    return best;
}

void word_hint (char *buf, size_t size, const char *word, const char *const *words)
{
    const char *meant = nearest_word (word, words);

    snprintf (buf, size, meant ? "did you mean %s?" : "there are", meant);
    for (const char *const *w = words; !meant && *w; w++) {
        size_t n = strlen (buf);
        snprintf (buf + n, size - n, "%s %s", w == words ? "" : ",", *w);
    }
}

const char *other_word (const char *word, const char *const (*pairs)[2])
{
    while ((*pairs)[0] && strcasecmp ((*pairs)[0], word))
        pairs++;
    return (*pairs)[1];
}

int words_count (const char *list)
{
    int n = *list != '\0';

    for (; *list; list++)
        n += *list == ',';
    return n;
}

bool word_listed (const char *list, const char *name)
{
    return word_listed_part (list, name, strlen (name));
}

bool word_listed_part (const char *list, const char *name, size_t n)
{
    while (*list) {
        size_t len = strcspn (list, ",");
        if (len == n && !strncmp (list, name, n))
            return true;
        list += len + (list[len] == ',');
    }
    return false;
}
