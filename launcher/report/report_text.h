/* SPDX-License-Identifier: Apache-2.0 */
/* Format texts and numbers for the report's JSON and HTML. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A table of distinct texts.  Columns refer to them by index. */
struct words {
    char **list;
    size_t n;
};

/* Return the index of a text, adding it if it is new. */
size_t words_number (struct words *w, const char *text);
json_t *words_json (const struct words *w);
void words_free (struct words *w);

/* Convert a text to JSON.  Bytes that are not UTF-8 become U+FFFD. */
json_t *text_to_json (const char *text);

/* Round to 'digits' significant digits.  NaN becomes null, infinities become "inf" and
 * "-inf".
 */
json_t *rounded_to_json (double v, int digits);

/* Write text as HTML.  Markup is escaped; control characters other than newline and tab,
 * and invalid UTF-8, become U+FFFD.
 */
void html_put (FILE *f, const char *text);
void html_format (FILE *f, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* Like html_put(), but quote the text for a shell if necessary. */
void html_put_word (FILE *f, const char *text);

/* The end of a shell command that began with <div class="copy"><code>. */
#define HTML_COPY "</code><button type=\"button\" data-copy>Copy</button></div>"

/* Write JSON for a script element of HTML. */
void html_put_json (FILE *f, const json_t *o);

/* Write numbers as "1,234", "0.01235" and "2.5e-7", times as "3 h 20 min" and sizes as
 * "1.5 GiB".
 */
void html_number (FILE *f, double v, int digits);
void html_count (FILE *f, int64_t n);
void html_seconds (FILE *f, double seconds);
void html_bytes (FILE *f, double bytes);
