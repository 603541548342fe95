/* SPDX-License-Identifier: Apache-2.0 */
/* Explain why an attempt did not log the metric: what did it log or print instead? */
#include "launcher/sweep/missing_metric.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/log_policy.h"
#include "launcher/config/metric_pattern.h"
#include "launcher/config/metric_settings.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "runtime/metrics/metrics.h"

/* How much of a longer log is searched. */
enum { LINES_MAX = 200000, LINE_SIZE = 8192, NEAR = 120 };

enum { LOGGED_MAX = 8, WORD_SIZE = 64 };

struct logged_names {
    char names[LOGGED_MAX][WORD_SIZE];
    size_t n;
    bool more;
};

static int note_name (const struct slurmdl_row *row, void *arg)
{
    struct logged_names *l = arg;

    for (size_t i = 0; i < l->n; i++)
        if (!strcmp (l->names[i], row->name))
            return 0;
    if (l->n == LOGGED_MAX)
        l->more = true;
    else
        snprintf (l->names[l->n++], WORD_SIZE, "%s", row->name);
    return 0;
}

static void put_names (FILE *f, const struct trial_attempt *a)
{
    struct logged_names l = { .n = 0 };

    slurmdl_metrics_read_dir (a->dir, note_name, &l, NULL);
    fputs (l.n ? "; logged: " : "; nothing was logged", f);
    for (size_t i = 0; i < l.n; i++)
        fprintf (f, "%s%s", i ? ", " : "", l.names[i]);
    if (l.more)
        fputs (", ...", f);
}

static int pass_over (const struct slurmdl_row *row, void *arg)
{
    (void)row;
    (void)arg;
    return 0;
}

bool metric_is_missing (const struct trial_attempt *a)
{
    double values[OBJECTIVES_MAX];
    int64_t step;

    return slurmdl_metrics_read_dir (a->dir, pass_over, NULL, NULL) == 0
           && attempt_metrics (a, &step, values) < 0;
}

struct near_line {
    char text[NEAR];
    size_t score;
};

struct log_scan {
    char **texts; /* of the patterns */
    struct pattern **patterns;
    size_t n;
    long lines, matched;
    struct near_line near;
    const char *metric;
    const char *format; /* NULL: the pattern is the user's */
};

static int ignore (const char *name, int64_t step, double value, void *arg)
{
    (void)name;
    (void)step;
    (void)value;
    (void)arg;
    return 0;
}

/* Find the next word of letters and return its length; 0: there is none. */
static size_t next_word_of_line (const char **text)
{
    size_t n = 0;

    while (**text && !isalpha ((unsigned char)**text))
        (*text)++;
    while (isalpha ((unsigned char)(*text)[n]))
        n++;
    return n;
}

/* Rate how well the line matches 'text': each of its words that the line has counts 2, a word of
 * which it has only the first three letters counts 1.
 */
static size_t likeness (const char *text, const char *line)
{
    char word[WORD_SIZE];
    size_t score = 0;
    size_t n;

    for (; (n = next_word_of_line (&text)) > 0; text += n) {
        snprintf (word, sizeof (word), "%.*s", (int)n, text);
        if (n >= 2 && strcasestr (line, word))
            score += 2;
        else if (n > 3) {
            word[3] = '\0';
            score += strcasestr (line, word) != NULL;
        }
    }
    return score;
}

static void look_near (struct log_scan *s, const char *line)
{
    size_t score = 2 * likeness (s->metric, line);

    if (!line[strcspn (line, "0123456789")])
        return;
    for (size_t i = 0; i < s->n; i++)
        score += likeness (s->texts[i], line);
    if (score <= s->near.score)
        return;
    s->near.score = score;
    snprintf (s->near.text, NEAR, "%s", line + strspn (line, " \t"));
    policy_text (s->near.text);
}

static void look_at_line (struct log_scan *s, const char *line)
{
    bool found = false;

    s->lines++;
    for (size_t i = 0; i < s->n; i++)
        found |= s->patterns[i] && pattern_match (s->patterns[i], line, ignore, NULL) > 0;
    s->matched += found;
    if (!found)
        look_near (s, line);
}

static void scan_log (struct log_scan *s, const struct trial_attempt *a)
{
    char line[LINE_SIZE];
    FILE *f;
    int fd = attempt_open_lines (a->sweep, a->dir);

    if (fd < 0)
        return;
    if (!(f = fdopen (fd, "r"))) {
        close (fd);
        return;
    }
    while (s->lines < LINES_MAX && fgets (line, sizeof (line), f)) {
        char *rest = line;
        for (char *part; (part = strsep (&rest, "\r\n"));) {
            line_strip (part);
            if (*part)
                look_at_line (s, part);
        }
    }
    fclose (f);
}

/* Whether a number has a comma, as 0,5 or 1,234.5. */
static bool has_comma (const char *text)
{
    for (const char *c = text; (c = strchr (c, ',')); c++)
        if (c > text && isdigit ((unsigned char)c[-1]) && isdigit ((unsigned char)c[1]))
            return true;
    return false;
}

static void put_scan (FILE *f, const struct log_scan *s)
{
    if (s->n)
        fprintf (f, "; %s matched %ld of %ld line%s",
                 s->n > 1    ? "the metrics.patterns"
                 : s->format ? s->format
                             : "metrics.pattern",
                 s->matched, s->lines, s->lines == 1 ? "" : "s");
    else
        fputs ("; there is no metrics.pattern", f);
    if (s->near.score)
        fprintf (f, "; the nearest line: \"%s\"%s", s->near.text,
                 has_comma (s->near.text) ? ": a number has no comma" : "");
}

static const char *format_name (const struct experiment *e)
{
    return !e->metric->format                    ? NULL
           : !strcmp (e->metric->format, "json") ? "metrics.format = \"json\""
                                                 : "metrics.format = \"text\"";
}

static void look_through (const struct trial_attempt *a, struct log_scan *s)
{
    *s = (struct log_scan){ .texts = a->sweep->exp->metric->patterns,
                            .metric = sweep_metric (a->sweep, 0),
                            .format = format_name (a->sweep->exp) };
    while (s->texts && s->texts[s->n])
        s->n++;
    s->patterns = xcalloc (s->n + 1, sizeof (*s->patterns));
    for (size_t i = 0; i < s->n; i++)
        s->patterns[i] = pattern_create (s->texts[i], NULL);
    scan_log (s, a);
    for (size_t i = 0; i < s->n; i++)
        pattern_destroy (s->patterns[i]);
    free (s->patterns);
}

void matched_lines (const struct trial_attempt *a, long *matched, long *lines)
{
    struct log_scan s;

    look_through (a, &s);
    *matched = s.matched;
    *lines = s.lines;
}

void missing_metric_text (const struct trial_attempt *a, char *buf, size_t size)
{
    struct log_scan s;
    FILE *f = size > 1 ? fmemopen (buf, size, "w") : NULL;

    if (!f)
        return;
    put_names (f, a);
    look_through (a, &s);
    put_scan (f, &s);
    fclose (f);
    buf[size - 1] = '\0';
}
