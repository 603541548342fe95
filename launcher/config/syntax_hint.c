/* SPDX-License-Identifier: Apache-2.0 */
/* What may be meant where libconfig says no more than "syntax error". */
#include "launcher/config/syntax_hint.h"

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FIRST "(^|[;{,])[ \t]*"
#define NAME  "[A-Za-z*][A-Za-z0-9_*-]*"

enum { DEPTH_MAX = 64 };

/* Where comments are gone and texts are blank.  The first that matches counts;
 * its group 2 is shown.
 */
static const struct mistake {
    const char *pattern;
    const char *hint;
} mistakes[] = {
    { "()'", "a text stands in double quotes" },
    { "()==", "one = sets a value" },
    { FIRST "([0-9][A-Za-z0-9_*-]*)[ \t]*[=:]", "a name begins with a letter" },
    { FIRST "()\"[^\"]*\"[ \t]*[=:]", "a name has no quotes" },
    { "(\\{)[ \t]*\"", "a list stands in [ ], a group has names" },
    { FIRST "(" NAME "[. \t]+" NAME ")[ \t]*[=:]",
      "a name has letters, digits, '_' and '-'; the member b of the group a is "
      "a = { b = ...; };" },
    { FIRST "(" NAME ")([ \t]*\\{|[ \t]+[\"0-9])", "a = is missing behind it" },
    { "()[=:][ \t]*[;}]", "a value is missing behind =" },
    { "([=:[(])[ \t]*([A-Za-z][^];},) \t]*)",
      "neither a number nor true or false; a text stands in double quotes" },
    { "([=:])[ \t]*([-+.0-9]+([eE][-+]?[0-9]+)?[^];},) \t0-9.eEL][^];},) \t]*)",
      "no number; a text stands in double quotes" },
    { "([=:])[ \t]*([-+.0-9]+[eE][-+]?[0-9]+[.][0-9]*)", "no number" },
    { "(),[ \t]*[])]", "a list does not end with a comma" },
    { "();[ \t]*;", "one ; too many" },
};

static void blank (char *from, const char *to)
{
    for (; from < to; from++)
        if (*from != '\n')
            *from = ' ';
}

static char *mask (const char *text)
{
    char *copy = strdup (text);
    char *end;

    for (char *c = copy; c && *c; c = end) {
        end = c + 1;
        if (*c == '"') {
            while (*end && *end != '"')
                end += *end == '\\' && end[1] ? 2 : 1;
            blank (c + 1, end);
            end += *end == '"';
        } else if (*c == '#' || (*c == '/' && c[1] == '/')) {
            end = c + strcspn (c, "\n");
            blank (c, end);
        } else if (*c == '/' && c[1] == '*') {
            end = strstr (c, "*/") ? strstr (c, "*/") + 2 : c + strlen (c);
            blank (c, end);
        } else if (c > copy && strchr (" \t=:[(,", c[-1])
                   && (!strncasecmp (c, "true", 4) || !strncasecmp (c, "false", 5)))
            memset (c, '0', 4); /* a value like a number */
    }
    return copy;
}

/* The line of the first that does not fit, 0: none. */
static int check_brackets (const char *text, char *hint, size_t size)
{
    static const char open[] = "{[(", close[] = "}])";
    struct {
        char opened_by, closed_by;
        int line;
    } stack[DEPTH_MAX];
    int depth = 0, line = 1;

    for (; *text && depth < DEPTH_MAX; text++) {
        const char *at = strchr (open, *text);
        line += *text == '\n';
        if (at) {
            stack[depth].opened_by = *text;
            stack[depth].closed_by = close[at - open];
            stack[depth++].line = line;
        } else if (strchr (close, *text) && depth == 0) {
            snprintf (hint, size, "this %c closes nothing", *text);
            return line;
        } else if (strchr (close, *text) && stack[--depth].closed_by != *text) {
            snprintf (hint, size, "this %c closes the %c of line %d", *text, stack[depth].opened_by,
                      stack[depth].line);
            return line;
        }
    }
    if (depth == 0 || *text)
        return 0;
    snprintf (hint, size, "the %c of this line is not closed", stack[depth - 1].opened_by);
    return stack[depth - 1].line;
}

static bool find_mistake (const char *line, char *hint, size_t size)
{
    regmatch_t m[4];
    regex_t re;

    for (size_t i = 0; i < sizeof (mistakes) / sizeof (*mistakes); i++) {
        bool found;
        if (regcomp (&re, mistakes[i].pattern, REG_EXTENDED) != 0)
            continue;
        found = regexec (&re, line, 4, m, 0) == 0;
        regfree (&re);
        if (!found)
            continue;
        if (m[2].rm_eo > m[2].rm_so)
            snprintf (hint, size, "'%.*s': %s", (int)(m[2].rm_eo - m[2].rm_so), line + m[2].rm_so,
                      mistakes[i].hint);
        else
            snprintf (hint, size, "%s", mistakes[i].hint);
        return true;
    }
    return false;
}

/* That line alone; NULL: there is none. */
static char *line_of_text (const char *text, int line)
{
    while (text && --line > 0 && (text = strchr (text, '\n')))
        text++;
    return text ? strndup (text, strcspn (text, "\n")) : NULL;
}

static bool ends_with_equals (const char *line)
{
    size_t n = line ? strlen (line) : 0;

    while (n > 0 && strchr (" \t\r", line[n - 1]))
        n--;
    return n > 0 && strchr ("=:", line[n - 1]);
}

char *syntax_hint (const char *text, int *line)
{
    char *plain = mask (text);
    char *here = plain ? line_of_text (plain, *line) : NULL;
    char *before = *line > 1 && plain ? line_of_text (plain, *line - 1) : NULL;
    char hint[256] = "settings are written name = value; and texts in quotes";
    char *said = NULL;
    int at;

    if (ends_with_equals (before)) {
        snprintf (hint, sizeof (hint), "a value is missing behind =");
        --*line;
    } else if (!(here && find_mistake (here, hint, sizeof (hint))) && plain
               && (at = check_brackets (plain, hint, sizeof (hint))) > 0)
        *line = at;
    if (asprintf (&said, "syntax error: %s", hint) < 0)
        said = NULL;
    free (plain);
    free (here);
    free (before);
    return said;
}
