/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and numbers as the report's JSON and HTML have them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A table of texts, each once; a column has their numbers. */
struct words {
    char **list;
    size_t n;
};

/* The number of a text, which is added if it is new. */
size_t words_number (struct words *w, const char *text);
json_t *words_json (const struct words *w);
void words_free (struct words *w);

/* A text as JSON, also one that is not UTF-8: what is not becomes U+FFFD. */
json_t *text_to_json (const char *text);

/* So many significant digits; NaN is null, infinities are "inf" and "-inf". */
json_t *rounded_to_json (double v, int digits);

/* Text for HTML: no byte of it is markup, none a control character. */
void html_put (FILE *f, const char *text);
void html_format (FILE *f, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* The same as a word for a shell, in quotes if it needs them. */
void html_put_word (FILE *f, const char *text);

/* The end of a line of a shell, which begins with <div class="copy"><code>. */
#define HTML_COPY "</code><button type=\"button\" data-copy>Copy</button></div>"

/* JSON for a script element of HTML. */
void html_put_json (FILE *f, const json_t *o);

/* "1,234", "0.01235", "2.5e-7"; "3 h 20 min"; "1.5 GiB" */
void html_number (FILE *f, double v, int digits);
void html_count (FILE *f, int64_t n);
void html_seconds (FILE *f, double seconds);
void html_bytes (FILE *f, double bytes);
