/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions with named numbers. */
#include "launcher/config/metric_pattern.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"

enum { NAMES_MAX = 16, GROUPS_MAX = 64 };

static const char number_re[] =
    "([-+]?([0-9]+[.]?[0-9]*([eE][-+]?[0-9]+)?|[.][0-9]+([eE][-+]?[0-9]+)?"
    "|[nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?))";
enum { NUMBER_GROUPS = 5 };

struct pattern {
    regex_t re;
    int compiled;
    int count;
    struct {
        char name[64];
        int group;
    } names[NAMES_MAX];
    int step; /* index in names, -1: none */
    int64_t lines;
};

/* Length of "{name}" at 'text', 0 if it is something else such as a{2,3}. */
static size_t name_at (const char *text)
{
    size_t n = 1;

    if (*text != '{' || !(isalpha ((unsigned char)text[1]) || text[1] == '_'))
        return 0;
    while (text[n]
           && (isalnum ((unsigned char)text[n]) || strchr ("_./-", text[n])))
        n++;
    return text[n] == '}' ? n + 1 : 0;
}

static int add_name (struct pattern *p,
                     const char *text,
                     size_t len,
                     int group,
                     struct slurmdl_error *err)
{
    if (p->count == NAMES_MAX || len >= sizeof (p->names[0].name)) {
        errno = EINVAL;
        return errorf (err, "more than %d names, or one too long", NAMES_MAX);
    }
    snprintf (p->names[p->count].name,
              sizeof (p->names[0].name),
              "%.*s",
              (int)len,
              text);
    p->names[p->count].group = group;
    if (!strcmp (p->names[p->count].name, "step"))
        p->step = p->count;
    p->count++;
    return 0;
}

/* Copy a bracket expression, in which a parenthesis opens no group. */
static const char *copy_brackets (const char *text, FILE *f)
{
    fputc (*text++, f);
    if (*text == '^')
        fputc (*text++, f);
    if (*text == ']')
        fputc (*text++, f);
    while (*text && *text != ']')
        fputc (*text++, f);
    return text;
}

/* The expression proper: the user's own groups count too. */
static char *
translate (struct pattern *p, const char *text, struct slurmdl_error *err)
{
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream (&out, &size);
    int groups = 0;
    int rv = f ? 0 : -1;

    while (rv == 0 && *text) {
        size_t n = name_at (text);
        if (n) {
            rv = add_name (p, text + 1, n - 2, groups + 1, err);
            fputs (number_re, f);
            groups += NUMBER_GROUPS;
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
    if (f)
        fclose (f);
    if (rv == 0 && groups < GROUPS_MAX)
        return out;
    free (out);
    errorf (err, "too many groups");
    return NULL;
}

struct pattern *pattern_create (const char *text, struct slurmdl_error *err)
{
    struct pattern *p = calloc (1, sizeof (*p));
    char *re = NULL;
    int rc;

    if (!p)
        goto fail;
    p->step = -1;
    if (!(re = translate (p, text, err)))
        goto fail;
    if ((rc = regcomp (&p->re, re, REG_EXTENDED))) {
        char why[128];
        regerror (rc, &p->re, why, sizeof (why));
        errorf (err, "%s", why);
        goto fail;
    }
    p->compiled = 1;
    if (p->count == (p->step >= 0)) {
        errorf (err, "it names no metric: write {name} where the number is");
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
    free (p);
}

static double group_value (const char *line, const regmatch_t *m)
{
    return strtod (line + m->rm_so, NULL);
}

int pattern_match (struct pattern *p,
                   const char *line,
                   pattern_metric_f f,
                   void *arg)
{
    regmatch_t m[GROUPS_MAX];
    int count = 0;
    int64_t step;

    if (regexec (&p->re, line, GROUPS_MAX, m, 0) != 0)
        return 0;
    step = ++p->lines;
    if (p->step >= 0 && m[p->names[p->step].group].rm_so >= 0)
        step = (int64_t)group_value (line, &m[p->names[p->step].group]);
    for (int i = 0; i < p->count; i++) {
        const regmatch_t *g = &m[p->names[i].group];
        if (i == p->step || g->rm_so < 0)
            continue;
        f (p->names[i].name, step, group_value (line, g), arg);
        count++;
    }
    return count;
}
