/* SPDX-License-Identifier: Apache-2.0 */
/* Format texts and numbers for the report's JSON and HTML. */
#include "launcher/report/report.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "runtime/base/utf8.h"

/* ---- tables ---- */

size_t words_number (struct words *w, const char *text)
{
    text = text ? text : "";
    for (size_t i = 0; i < w->n; i++)
        if (!strcmp (w->list[i], text))
            return i;
    XGROW (w->list, w->n);
    w->list[w->n] = xstrdup (text);
    return w->n++;
}

json_t *words_json (const struct words *w)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < w->n; i++)
        json_array_append_new (list, text_to_json (w->list[i]));
    return list;
}

void words_free (struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free (w->list[i]);
    free (w->list);
    *w = (struct words){ 0 };
}

/* ---- UTF-8 ---- */

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Replace bytes that are not UTF-8.  The caller frees the result. */
static char *repaired (const char *text)
{
    char *buf = xmalloc (3 * strlen (text) + 1), *to = buf;

    while (*text) {
        size_t n = utf8_length (text);
        memcpy (to, n ? text : replacement, n ? n : 3);
        to += n ? n : 3;
        text += n ? n : 1;
    }
    *to = '\0';
    return buf;
}

json_t *text_to_json (const char *text)
{
    json_t *o = json_string (text ? text : "");
    char *good;

    if (!o && text) {
        good = repaired (text);
        o = json_string (good);
        free (good);
    }
    return o;
}

/* ---- HTML ---- */

/* Write a character of 'n' bytes.  U+0080 to U+009F are control characters as well. */
static void put_character (FILE *f, const char *p, size_t n)
{
    unsigned char first = (unsigned char)p[0], second = (unsigned char)p[1];

    if (strchr ("&<>\"'`", *p))
        fprintf (f, "&#%d;", *p);
    else if (*p == '\n' || *p == '\t' || (n == 1 && *p >= ' ' && *p != 0x7F)
             || (n == 2 && !(first == 0xC2 && second < 0xA0)) || n > 2)
        fwrite (p, 1, n, f);
    else
        fputs (replacement, f);
}

void html_put (FILE *f, const char *text)
{
    const char *p = text ? text : "";

    while (*p) {
        size_t n = utf8_length (p);
        put_character (f, p, n);
        p += n ? n : 1;
    }
}

void html_format (FILE *f, const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start (ap, fmt);
    text = xvasprintf (fmt, ap);
    va_end (ap);
    html_put (f, text);
    free (text);
}

void html_put_word (FILE *f, const char *text)
{
    char *word = shell_word (text);

    html_put (f, word);
    free (word);
}

/* Escape '<' so that no text can end the script element. */
void html_put_json (FILE *f, const json_t *o)
{
    char *text = json_dumps (o, JSON_COMPACT | JSON_REAL_PRECISION (8));

    for (const char *p = text; p && *p;) {
        size_t n = strcspn (p, "<");
        fwrite (p, 1, n, f);
        p += n;
        if (*p == '<') {
            fputs ("\\u003c", f);
            p++;
        }
    }
    free (text);
}

/* ---- numbers ---- */

json_t *rounded_to_json (double v, int digits)
{
    char text[40];

    if (isnan (v))
        return json_null ();
    if (isinf (v))
        return json_string (v > 0 ? "inf" : "-inf");
    snprintf (text, sizeof (text), "%.*g", digits, v);
    v = strtod (text, NULL);
    return v == floor (v) && fabs (v) < 1e15 ? json_integer ((json_int_t)v) : json_real (v);
}

void html_count (FILE *f, int64_t n)
{
    char text[32];
    int length = snprintf (text, sizeof (text), "%" PRId64, n);

    for (int i = 0; i < length; i++) {
        fputc (text[i], f);
        if (i + 1 < length && (length - i - 1) % 3 == 0 && isdigit (text[i]))
            fputc (',', f);
    }
}

void html_number (FILE *f, double v, int digits)
{
    double size = fabs (v);

    if (isnan (v))
        fputs ("–", f);
    else if (isinf (v))
        fputs (v > 0 ? "∞" : "−∞", f);
    else if (size >= 1000 && size < 1e6 && v == floor (v))
        html_count (f, (int64_t)v);
    else if (size > 0 && (size >= 1e6 || size < 1e-3))
        fprintf (f, "%.*e", digits > 3 ? digits - 3 : 1, v);
    else
        fprintf (f, "%.*g", digits, v);
}

void html_seconds (FILE *f, double s)
{
    static const struct {
        double size;
        const char *name;
    } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
    size_t k = 0;

    if (!isfinite (s))
        fputs ("–", f);
    else if (s < 100)
        fprintf (f, "%.3g s", s);
    else {
        while (s < units[k].size)
            k++;
        fprintf (f, "%.0f %s", floor (s / units[k].size), units[k].name);
        double rest = floor (fmod (s, units[k].size) / units[k + 1].size);
        if (rest > 0)
            fprintf (f, " %.0f %s", rest, units[k + 1].name);
    }
}

void html_bytes (FILE *f, double bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    int k = 0;

    while (bytes >= 1024 && k < 4) {
        bytes /= 1024;
        k++;
    }
    fprintf (f, "%.3g %s", bytes, units[k]);
}
