/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as JSON, with those that JSON does not have. */
#include "launcher/sys/json_number.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Digits of a text that has DBL_DIG of them and an exponent. */
static int count_digits (const char *text)
{
    const char *last = strchr (text, 'e');
    int n = DBL_DIG;

    while (*--last == '0')
        n--;
    return n;
}

/* Up to DBL_DIG digits make different numbers, but of those that are denormal:
 * the shortest text has as many as are not zeros at their end.
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

double number_from_json (const json_t *v)
{
    if (json_is_string (v))
        return strtod (json_string_value (v), NULL);
    return json_is_number (v) ? json_number_value (v) : NAN;
}
