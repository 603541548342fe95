/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in JSON, including those that JSON cannot express. */
#include "launcher/sys/json_number.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/alloc.h"

json_t *number_to_json (double v)
{
    if (isnan (v))
        return json_string ("nan");
    if (isinf (v))
        return json_string (v > 0 ? "inf" : "-inf");
    return json_real (v);
}

json_t *finite_to_json (double v)
{
    return isfinite (v) ? json_real (v) : json_null ();
}

json_t *numbers_to_json (const double *v, size_t n)
{
    json_t *list = json_array ();

    for (size_t i = 0; list && i < n; i++)
        json_array_append_new (list, number_to_json (v[i]));
    return list;
}

static bool is_text_of (char buf[NUMBER_TEXT], int digits, double v)
{
    snprintf (buf, NUMBER_TEXT, "%.*g", digits, v);
    return strtod (buf, NULL) == v;
}

/* Count the significant digits of a text with DBL_DIG digits and an exponent. */
static int count_digits (const char *text)
{
    const char *last = strchr (text, 'e');
    int n = DBL_DIG;

    while (*--last == '0')
        n--;
    return n;
}

/* Except for denormal numbers, different texts of up to DBL_DIG digits are different numbers.  So
 * the shortest text is the one of DBL_DIG digits without its trailing zeros.
 */
void number_text (char buf[NUMBER_TEXT], double v)
{
    int digits = 6;

    snprintf (buf, NUMBER_TEXT, "%.*e", DBL_DIG - 1, v);
    if (fabs (v) >= DBL_MIN && isfinite (v)) {
        int n = strtod (buf, NULL) == v ? count_digits (buf) : DBL_DIG + 1;
        digits = n > digits ? n : digits;
    }
    while (!is_text_of (buf, digits, v) && digits < 17)
        digits++;
}

void number_digits (char buf[NUMBER_TEXT], double v)
{
    for (int digits = DBL_DIG; !is_text_of (buf, digits, v) && digits < 17;)
        digits++;
}

void number_yaml (char buf[NUMBER_TEXT], double v)
{
    char *e;

    number_text (buf, v);
    e = isfinite (v) ? strchr (buf, 'e') : NULL;
    if (e && !strchr (buf, '.') && strlen (buf) + 2 < NUMBER_TEXT) {
        memmove (e + 2, e, strlen (e) + 1);
        memcpy (e, ".0", 2);
    }
}

struct json_pieces {
    FILE *f;
    bool is_quoted;
};

/* Whether 15 digits might express the same number as this text of 17.  The number differs from its
 * 15-digit text by at most half of the last of its 53 bits, which is 11 units of the 17th digit.
 */
static bool may_be_shorter (const char *text, size_t n)
{
    int digits = 0, rest = 0;

    for (size_t i = 0; i < n && text[i] != 'e'; i++)
        if (text[i] >= (digits ? '0' : '1') && ++digits > DBL_DIG)
            rest = 10 * rest + text[i] - '0';
    if (digits == DBL_DIG + 1)
        rest *= 10;
    return digits > DBL_DIG && (rest <= 11 || rest >= 89);
}

/* jansson passes each quotation mark and each number as a separate piece. */
static int put_piece (const char *piece, size_t n, void *arg)
{
    struct json_pieces *to = arg;
    char text[NUMBER_TEXT];
    const char *e;

    if (n == 1 && *piece == '"')
        to->is_quoted = !to->is_quoted;
    if (!to->is_quoted && n < sizeof (text) && (memchr (piece, '.', n) || memchr (piece, 'e', n))
        && may_be_shorter (piece, n)) {
        memcpy (text, piece, n);
        text[n] = '\0';
        if (is_text_of (text, DBL_DIG, strtod (text, NULL))
            && strpbrk (text, ".e")) { /* not an integer */
            piece = text;
            n = strlen (text);
        }
    }
    if (!to->is_quoted && n + 2 < sizeof (text) && strchr ("-0123456789", *piece)
        && (e = memchr (piece, 'e', n)) && !memchr (piece, '.', n))
        return fprintf (to->f, "%.*s.0%.*s", (int)(e - piece), piece, (int)(piece + n - e), e) > 0
                   ? 0
                   : -1;
    return fwrite (piece, 1, n, to->f) == n ? 0 : -1;
}

int json_put (const json_t *v, FILE *f, size_t flags)
{
    return json_dump_callback (v, put_piece, &(struct json_pieces){ .f = f }, flags);
}

char *json_string_of (const json_t *v, size_t flags)
{
    char *text = NULL;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);
    int rv = json_put (v, f, flags);

    xclose_memstream (f);
    if (rv == 0)
        return text;
    free (text);
    return NULL;
}

double number_from_json (const json_t *v)
{
    if (json_is_string (v))
        return strtod (json_string_value (v), NULL);
    return json_is_number (v) ? json_number_value (v) : NAN;
}
