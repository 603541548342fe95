/* SPDX-License-Identifier: Apache-2.0 */
/* Find the word that was meant. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The word of the NULL-ended list that is nearest to 'word' (by letters
 * inserted, dropped, replaced or swapped), NULL if none is near enough to be
 * meant.
 */
const char *nearest_word (const char *word, const char *const *words);

/* Three arguments of "%s%s%s": "; did you mean 'WORD'?" with what stands around
 * the word, or 'otherwise' if 'meant' is NULL.
 */
#define DID_YOU_MEAN(meant, before, after, otherwise)                                              \
    (meant) ? "; did you mean " before : (otherwise), (meant) ? (meant) : "",                      \
        (meant) ? after "?" : ""

/* "did you mean torch?" into 'buf', or "there are torch, tf", cut to 'size',
 * if no word is near.
 */
void word_hint (char *buf, size_t size, const char *word, const char *const *words);

/* What a word of other programs is called here, by pairs (NULL-ended) of both;
 * NULL if it is none.
 */
const char *other_word (const char *word, const char *const (*pairs)[2]);

/* How many words the list "A,B,C" has. */
int words_count (const char *list);

/* Whether 'name' is in the list "A,B,C"; or its first 'n' bytes. */
bool word_listed (const char *list, const char *name);
bool word_listed_part (const char *list, const char *name, size_t n);
