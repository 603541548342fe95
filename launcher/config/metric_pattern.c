/* SPDX-License-Identifier: Apache-2.0 */
/* Find metrics in a line of output by regular expressions with named numbers. */
#include "launcher/config/metric_pattern.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/alloc.h"
#include "runtime/base/error.h"

enum { NAMES_MAX = 16, GROUPS_MAX = 64, NAME_SIZE = 64, COUNTED_MAX = 256 };

static const char number_re[] =
    "([-+]?([0-9]+[.]?[0-9]*([eE][-+]?[0-9]+)?|[.][0-9]+([eE][-+]?[0-9]+)?"
    "|[nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?))";
enum { NUMBER_GROUPS = 5 };

struct pattern {
    regex_t re;
    int compiled;
    int count;
    struct {
        char name[NAME_SIZE];
        int group;
        char next; /* the literal character that follows it in the pattern, or '\0' */
        bool open; /* a group or bracket expression follows it */
    } names[NAMES_MAX];
    int step;    /* index of {step} in 'names', or -1 */
    bool counts; /* a step was not an integer, so use line numbers as steps */
    int64_t lines;
    bool json;
    struct counted {
        char name[NAME_SIZE];
        int64_t values;
    } * counted; /* names found in the output; NULL if the pattern has {name} */
    size_t ncounted;
};

/* Length of "{name}" at 'text', or 0 if it is something else, such as a{2,3}. */
static size_t name_at (const char *text)
{
    size_t n = 1;

    if (*text != '{' || !(isalpha ((unsigned char)text[1]) || text[1] == '_'))
        return 0;
    while (text[n] && (isalnum ((unsigned char)text[n]) || strchr ("_./-", text[n])))
        n++;
    return text[n] == '}' ? n + 1 : 0;
}

static int add_name (struct pattern *p, const char *text, size_t len, int group,
                     struct slurmdl_error *err)
{
    const char *next = text + len + 1; /* after the "}" */

    if (p->count == NAMES_MAX || len >= sizeof (p->names[0].name)) {
        errno = EINVAL;
        return errorf (err, "more than %d names, or one too long", NAMES_MAX);
    }
    snprintf (p->names[p->count].name, sizeof (p->names[0].name), "%.*s", (int)len, text);
    p->names[p->count].group = group;
    if (*next == '\\')
        next++;
    else if (*next && strchr ("([.", *next))
        next = NULL; /* could match any character, even one that belongs to a number */
    p->names[p->count].next = next ? *next : '\0';
    p->names[p->count].open = !next && text[len + 1] != '.';
    if (!strcmp (p->names[p->count].name, "step"))
        p->step = p->count;
    p->count++;
    return 0;
}

/* Translate the classes of Perl and Go, which POSIX expressions lack. */
static size_t copy_class (const char *text, bool in_brackets, FILE *f)
{
    static const struct {
        const char *text, *members;
    } classes[] = {
        { "\\d", "0-9" }, { "\\w", "A-Za-z0-9_" }, { "\\s", " \t" }, { "\\-", "[.-.]" }
    };

    for (size_t i = 0; i < sizeof (classes) / sizeof (*classes); i++)
        if (!strncmp (text, classes[i].text, 2)) {
            fprintf (f, in_brackets ? "%s" : "[%s]", classes[i].members);
            return 2;
        }
    return 0;
}

/* Copy a bracket expression up to its ']'.  A '(' in it does not open a group. */
static const char *copy_brackets (const char *text, FILE *f)
{
    size_t n;

    fputc (*text++, f);
    if (*text == '^')
        fputc (*text++, f);
    if (*text == ']')
        fputc (*text++, f);
    while (*text && *text != ']')
        if ((n = copy_class (text, true, f)) > 0)
            text += n;
        else
            fputc (*text++, f);
    return text;
}

/* Convert a pattern to a POSIX expression.  Count the user's own groups, because they shift the
 * numbers of ours.
 */
static char *translate (struct pattern *p, const char *text, struct slurmdl_error *err)
{
    char *out = NULL;
    size_t size;
    FILE *f = xopen_memstream (&out, &size);
    int groups = 0;
    int rv = 0;

    while (rv == 0 && *text) {
        size_t n = name_at (text);
        if (n) {
            rv = add_name (p, text + 1, n - 2, groups + 1, err);
            fputs (number_re, f);
            groups += NUMBER_GROUPS;
            text += n;
            continue;
        }
        if ((n = copy_class (text, false, f)) > 0) {
            text += n;
            continue;
        }
        if (*text == '\\' && text[1])
            fputc (*text++, f);
        else if (*text == '[')
            text = copy_brackets (text, f);
        else if (*text == '(')
            groups++;
        if (*text)
            fputc (*text++, f);
    }
    xclose_memstream (f);
    if (rv == 0 && groups < GROUPS_MAX)
        return out;
    free (out);
    errorf (err, "too many groups");
    return NULL;
}

struct pattern *pattern_create (const char *text, struct slurmdl_error *err)
{
    struct pattern *p = xcalloc (1, sizeof (*p));
    char *re = NULL;
    int rc;

    p->step = -1;
    p->json = !strcmp (text, PATTERN_JSON);
    if (p->json) {
        p->counted = xcalloc (COUNTED_MAX, sizeof (*p->counted));
        return p;
    }
    if (!(re = translate (p, text, err)))
        goto fail;
    if ((rc = regcomp (&p->re, re, REG_EXTENDED))) {
        char why[128];
        regerror (rc, &p->re, why, sizeof (why));
        errorf (err, "%s", why);
        goto fail;
    }
    p->compiled = 1;
    if (p->count == 0 && p->re.re_nsub >= 2)
        p->counted = xcalloc (COUNTED_MAX, sizeof (*p->counted));
    if (p->count == (p->step >= 0) && !p->counted) {
        errorf (err, "it names no metric: write {name} where the number is, or two groups, for the "
                     "name and the number");
        goto fail;
    }
    free (re);
    return p;
fail:
    free (re);
    pattern_destroy (p);
    errno = EINVAL;
    return NULL;
}

void pattern_destroy (struct pattern *p)
{
    if (p && p->compiled)
        regfree (&p->re);
    if (p)
        free (p->counted);
    free (p);
}

static double group_value (const char *line, const regmatch_t *m)
{
    return strtod (line + m->rm_so, NULL);
}

/* Reject a match that covers only a part of a number or word, because its value would be wrong.
 * ends_early() rejects the beginnings of "0,5", "1,234.5", "1.2.3", "12abc" and "1e", unless the
 * pattern itself continues with what follows.  begins_late() rejects the end of a number, which a
 * greedy ".*" would leave.
 */
static bool ends_early (const char *end, bool is_integer, char next, bool open)
{
    bool digit = isdigit ((unsigned char)end[0] ? (unsigned char)end[1] : 0);

    if (open || *end == '\0' || *end == next)
        return false;
    return isalnum ((unsigned char)*end) || *end == '_' || (*end == '.' && digit)
           || (*end == ',' && digit && is_integer);
}

static bool begins_late (const char *line, const char *at)
{
    size_t before = (size_t)(at - line);

    if (before == 0)
        return false;
    if (isdigit ((unsigned char)at[-1]))
        return isdigit ((unsigned char)*at) || *at == '.';
    if (before > 1 && at[-1] == '.' && isdigit ((unsigned char)at[-2]))
        return true;
    return before > 2 && strchr ("+-", at[-1]) && strchr ("eE", at[-2])
           && strchr ("0123456789.", at[-3]);
}

static bool is_cut (const char *line, const regmatch_t *g, char next, bool open)
{
    const char *at;
    const char *end;
    const char *digits;

    if (g->rm_so < 0)
        return false;
    at = line + g->rm_so;
    end = line + g->rm_eo;
    digits = at + strspn (at, "+-");
    digits += strspn (digits, "0123456789");
    return begins_late (line, at) || ends_early (end, digits == end, next, open);
}

/* Returns -1 if the number cannot be a step.  After a fractional one, such as epoch 1.53, no number
 * is: the pattern then uses line numbers.
 */
static int64_t step_of (struct pattern *p, double v)
{
    p->counts = p->counts || v != floor (v);
    return !p->counts && v >= 0 && v < 0x1p62 ? (int64_t)v : -1;
}

/* ---- names found in the output ---- */

/* Count the values of a name, including this one.  Returns 0 if the name is too long or one too
 * many.
 */
static int64_t count_value (struct pattern *p, const char *name)
{
    size_t i = 0;

    while (i < p->ncounted && strcmp (p->counted[i].name, name))
        i++;
    if (i == COUNTED_MAX || strlen (name) >= NAME_SIZE)
        return 0;
    if (i == p->ncounted)
        snprintf (p->counted[p->ncounted++].name, NAME_SIZE, "%s", name);
    return ++p->counted[i].values;
}

/* If 'step' is negative, use the number of the value as its step. */
static int found_value (struct pattern *p, const char *name, const char *text, int64_t step,
                        pattern_metric_f f, void *arg)
{
    char *end;
    double value = strtod (text, &end);
    int64_t k;

    if (end == text || *end || (k = count_value (p, name)) == 0)
        return 0;
    f (name, step < 0 ? k : step, value, arg);
    return 1;
}

static int match_pairs (struct pattern *p, const char *line, pattern_metric_f f, void *arg)
{
    regmatch_t m[3];
    char name[NAME_SIZE], value[NAME_SIZE];
    int count = 0;

    for (int flags = 0; *line && regexec (&p->re, line, 3, m, flags) == 0; flags = REG_NOTBOL) {
        if (m[1].rm_so >= 0 && m[2].rm_so >= 0 && m[1].rm_eo - m[1].rm_so < NAME_SIZE
            && m[2].rm_eo - m[2].rm_so < NAME_SIZE) {
            snprintf (name, sizeof (name), "%.*s", (int)(m[1].rm_eo - m[1].rm_so),
                      line + m[1].rm_so);
            snprintf (value, sizeof (value), "%.*s", (int)(m[2].rm_eo - m[2].rm_so),
                      line + m[2].rm_so);
            if (m[2].rm_eo != m[0].rm_eo || !is_cut (line, &m[2], '\0', false))
                count += found_value (p, name, value, -1, f, arg);
        }
        line += m[0].rm_eo > 0 ? m[0].rm_eo : 1;
    }
    return count;
}

static int match_json (struct pattern *p, const char *line, pattern_metric_f f, void *arg)
{
    json_t *object = *line == '{' ? json_loads (line, 0, NULL) : NULL;
    json_t *of_step = json_object_get (object, "step");
    int64_t step = json_is_number (of_step) ? step_of (p, json_number_value (of_step)) : -1;
    const char *name;
    json_t *value;
    char text[NAME_SIZE];
    int count = 0;

    json_object_foreach (object, name, value) {
        if (json_is_number (value))
            snprintf (text, sizeof (text), "%.17g", json_number_value (value));
        else
            snprintf (text, sizeof (text), "%s",
                      json_is_string (value) ? json_string_value (value) : "");
        if (value != of_step && strcmp (name, "timestamp"))
            count += found_value (p, name, text, step, f, arg);
    }
    json_decref (object);
    return count;
}

int pattern_match (struct pattern *p, const char *line, pattern_metric_f f, void *arg)
{
    regmatch_t m[GROUPS_MAX];
    int count = 0;
    int64_t step = -1;

    if (p->counted)
        return p->json ? match_json (p, line, f, arg) : match_pairs (p, line, f, arg);

    if (regexec (&p->re, line, GROUPS_MAX, m, 0) != 0)
        return 0;
    for (int i = 0; i < p->count; i++)
        if (is_cut (line, &m[p->names[i].group], p->names[i].next, p->names[i].open))
            return 0;
    p->lines++;
    if (p->step >= 0 && m[p->names[p->step].group].rm_so >= 0)
        step = step_of (p, group_value (line, &m[p->names[p->step].group]));
    if (step < 0)
        step = p->lines;
    for (int i = 0; i < p->count; i++) {
        const regmatch_t *g = &m[p->names[i].group];
        if (i == p->step || g->rm_so < 0)
            continue;
        f (p->names[i].name, step, group_value (line, g), arg);
        count++;
    }
    return count;
}

/* Skip the rest of a sequence after its escape character: CSI ("\033[1;36m", "\033[K"), a string
 * such as OSC (a title or link, which ends with BEL or ST), or any other.
 */
static const char *skip_escape (const char *at)
{
    if (*at == '[') {
        at += 1 + strspn (at + 1, "0123456789:;<=>?");
        at += strspn (at, " !\"#$%&'()*+,-./");
        return at + (*at >= '@' && *at <= '~');
    }
    if (*at && strchr ("]PX^_", *at)) {
        at += strcspn (at, "\a\033");
        return *at == '\a' ? at + 1 : *at && at[1] == '\\' ? at + 2 : at;
    }
    at += strspn (at, " !\"#$%&'()*+,-./");
    return at + (*at != '\0');
}

void line_strip (char *line)
{
    const char *from = strchr (line, '\033');
    char *to = (char *)from;

    while (from && *from)
        if (*from == '\033')
            from = skip_escape (from + 1);
        else
            *to++ = *from++;
    if (to)
        *to = '\0';
}
