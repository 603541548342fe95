/* SPDX-License-Identifier: Apache-2.0 */
/* when= in plugstack.conf: the steps to which the arguments after it apply. */
#include "runtime/rank/condition.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/nearest_word.h"

enum { KEY_TEXT = 16, WORDS_TEXT = 256, WHY_TEXT = 256 };

static const struct condition_row {
    const char *key;
    size_t offset;
} rows[] = {
    { "partition:", offsetof (struct step_facts, partition) },
    { "account:", offsetof (struct step_facts, account) },
    { "qos:", offsetof (struct step_facts, qos) },
};

static const char gpus_key[] = "gpus:";

/* Read the next "KEY:WORDS" of the list.  Returns the rest, or NULL after the last. */
static const char *next_condition (const char *list, char key[KEY_TEXT], char words[WORDS_TEXT])
{
    size_t len = list ? strcspn (list, ";") : 0;
    size_t n = list ? strcspn (list, ":;") + 1 : 0;

    if (!list || !*list)
        return NULL;
    if (n > len)
        n = len;
    snprintf (key, KEY_TEXT, "%.*s", (int)n, list);
    snprintf (words, WORDS_TEXT, "%.*s", (int)(len - n), list + n);
    return list + len + (list[len] == ';');
}

static const struct condition_row *condition_row_of (const char *key)
{
    for (size_t i = 0; i < sizeof (rows) / sizeof (*rows); i++)
        if (!strcmp (rows[i].key, key))
            return &rows[i];
    return NULL;
}

static bool is_gpus (const char *words)
{
    return !strcmp (words, "yes") || !strcmp (words, "no") || !strcmp (words, "any");
}

/* Names separated by commas.  Slurm cannot find names with these characters again,
 * so here they are typing errors.
 */
static bool are_names (const char *words)
{
    size_t n = strlen (words);

    return n > 0 && !strpbrk (words, "=\"'()[]{} \t") && *words != ',' && words[n - 1] != ','
           && !strstr (words, ",,");
}

/* Reject "partition:a,gpus:yes", which would mean two partitions. */
static int check_part (const char *key, const char *words, char *why, size_t n)
{
    const char *what = "is not partition:, account: or qos: with names, or gpus: with yes, no "
                       "or any";

    if (strchr (words, ':'))
        what = "has a comma instead of a semicolon between two conditions";
    else if (strcmp (key, gpus_key) ? condition_row_of (key) && are_names (words) : is_gpus (words))
        return 0;
    snprintf (why, n, "'%.32s%.64s' %s", key, words, what);
    return -1;
}

static int keys_of (const char *condition, const char *key)
{
    char other[KEY_TEXT], words[WORDS_TEXT];
    int n = 0;

    for (const char *l = condition; (l = next_condition (l, other, words));)
        n += !strcmp (other, key);
    return n;
}

int condition_check (const char *condition, char *why, size_t size)
{
    char key[KEY_TEXT], words[WORDS_TEXT];
    size_t n = strlen (condition);

    if (n >= WORDS_TEXT) {
        snprintf (why, size, "too long");
        return -1;
    }
    if (n > 0 && condition[n - 1] == ';') {
        snprintf (why, size, "a condition is missing after the last semicolon");
        return -1;
    }
    for (const char *l = condition; (l = next_condition (l, key, words));) {
        if (check_part (key, words, why, size) < 0)
            return -1;
        if (keys_of (condition, key) > 1) {
            snprintf (why, size, "'%s' is given twice", key);
            return -1;
        }
    }
    return 0;
}

static enum answer gpus_hold (const char *words, const struct step_facts *facts)
{
    const char *have = facts->gpus == ANSWER_YES ? "yes" : "no";

    if (!strcmp (words, "any"))
        return ANSWER_YES;
    if (facts->gpus == ANSWER_UNKNOWN)
        return ANSWER_UNKNOWN;
    return strcmp (words, have) ? ANSWER_NO : ANSWER_YES;
}

static enum answer part_holds (const char *key, const char *words, const struct step_facts *facts)
{
    const struct condition_row *row = condition_row_of (key);
    const char *name = row ? (const char *)facts + row->offset : "";

    if (!strcmp (key, gpus_key))
        return gpus_hold (words, facts);
    if (row && !facts->known)
        return ANSWER_UNKNOWN;
    return *name && word_listed (words, name) ? ANSWER_YES : ANSWER_NO;
}

enum answer condition_holds (const char *condition, const struct step_facts *facts, bool gpus)
{
    char key[KEY_TEXT], words[WORDS_TEXT], why[WHY_TEXT];
    enum answer all = ANSWER_YES;

    if (condition_check (condition, why, sizeof (why)) < 0)
        return ANSWER_NO;
    for (const char *l = condition; (l = next_condition (l, key, words));) {
        enum answer one = part_holds (key, words, facts);
        if (one == ANSWER_NO)
            return ANSWER_NO;
        if (one == ANSWER_UNKNOWN)
            all = one;
        gpus = gpus && strcmp (key, gpus_key);
    }
    if (!gpus || facts->gpus == ANSWER_YES)
        return all;
    return facts->gpus == ANSWER_NO ? ANSWER_NO : ANSWER_UNKNOWN;
}
