/* SPDX-License-Identifier: Apache-2.0 */
/* when= in plugstack.conf: which steps the arguments after it are for. */
#include "spank/condition.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/word.h"

enum { KEY_TEXT = 16, WORDS_TEXT = 256 };

static const struct condition_row {
    const char *key;
    size_t offset;
} rows[] = {
    { "partition:", offsetof (struct step_facts, partition) },
    { "account:", offsetof (struct step_facts, account) },
    { "qos:", offsetof (struct step_facts, qos) },
};

static const char gpus_key[] = "gpus:";

/* The next "KEY:WORDS" of the list; what follows it, NULL after the last. */
static const char *
next_part (const char *list, char key[KEY_TEXT], char words[WORDS_TEXT])
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

static const struct condition_row *row_of (const char *key)
{
    for (size_t i = 0; i < sizeof (rows) / sizeof (*rows); i++)
        if (!strcmp (rows[i].key, key))
            return &rows[i];
    return NULL;
}

static bool is_gpus (const char *words)
{
    return !strcmp (words, "yes") || !strcmp (words, "no")
           || !strcmp (words, "any");
}

/* "partition:a,gpus:yes" would be two partitions. */
static bool has_key (const char *words)
{
    while ((words = strchr (words, ','))) {
        words++;
        if (!strncmp (words, gpus_key, strlen (gpus_key)))
            return true;
        for (size_t i = 0; i < sizeof (rows) / sizeof (*rows); i++)
            if (!strncmp (words, rows[i].key, strlen (rows[i].key)))
                return true;
    }
    return false;
}

int condition_check (const char *condition, char *why, size_t size)
{
    char key[KEY_TEXT], words[WORDS_TEXT];

    if (strlen (condition) >= WORDS_TEXT) {
        snprintf (why, size, "too long");
        return -1;
    }
    for (const char *l = condition; (l = next_part (l, key, words));)
        if (!strcmp (key, gpus_key) ? !is_gpus (words)
                                    : !row_of (key) || !*words) {
            snprintf (why,
                      size,
                      "'%.32s%.32s' is not partition:, account: or qos: with "
                      "names, or gpus: with yes, no or any",
                      key,
                      words);
            return -1;
        } else if (has_key (words)) {
            snprintf (why,
                      size,
                      "'%.32s%.64s': between two conditions stands a semicolon",
                      key,
                      words);
            return -1;
        }
    return 0;
}

static enum answer gpus_hold (const char *words, const struct step_facts *facts)
{
    if (!strcmp (words, "any"))
        return ANSWER_YES;
    if (facts->gpus == ANSWER_UNKNOWN)
        return ANSWER_UNKNOWN;
    return (facts->gpus == ANSWER_YES) == !strcmp (words, "yes") ? ANSWER_YES
                                                                 : ANSWER_NO;
}

static enum answer
part_holds (const char *key, const char *words, const struct step_facts *facts)
{
    const struct condition_row *row = row_of (key);
    const char *name = row ? (const char *)facts + row->offset : "";

    if (!strcmp (key, gpus_key))
        return gpus_hold (words, facts);
    if (row && !facts->known)
        return ANSWER_UNKNOWN;
    return *name && word_listed (words, name) ? ANSWER_YES : ANSWER_NO;
}

/* What is wrong holds for no step. */
enum answer condition_holds (const char *condition,
                             const struct step_facts *facts,
                             bool gpus)
{
    char key[KEY_TEXT], words[WORDS_TEXT];
    enum answer all = ANSWER_YES;

    for (const char *l = condition; (l = next_part (l, key, words));) {
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
