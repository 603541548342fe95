/* SPDX-License-Identifier: Apache-2.0 */
/* Find the word that the user probably meant. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The word of the NULL-terminated list closest to 'word' (counting letters
 * inserted, deleted, replaced or swapped); NULL if none is close.
 */
const char *nearest_word (const char *word, const char *const *words);

/* Three arguments for "%s%s%s": "; did you mean 'WORD'?" with 'before' and
 * 'after' around the word, or 'otherwise' if 'meant' is NULL.
 */
#define DID_YOU_MEAN(meant, before, after, otherwise)                                              \
    (meant) ? "; did you mean " before : (otherwise), (meant) ? (meant) : "",                      \
        (meant) ? after "?" : ""

/* Write "did you mean torch?" to 'buf', or, if no word is close, "there are
 * torch, tf", cut to 'size'.
 */
void word_hint (char *buf, size_t size, const char *word, const char *const *words);

/* Translate a word of other programs: 'pairs' (NULL-terminated) has both words;
 * NULL if it is unknown.
 */
const char *other_word (const char *word, const char *const (*pairs)[2]);

/* Number of words in the list "A,B,C". */
int words_count (const char *list);

/* Whether 'name', or its first 'n' bytes, is in the list "A,B,C". */
bool word_listed (const char *list, const char *name);
bool word_listed_part (const char *list, const char *name, size_t n);
