/* SPDX-License-Identifier: Apache-2.0 */
/* Pass the text of an experiment file to libconfig, which by itself would truncate integers to 32
 * bits, and try to read a folder or an endless file.
 */
#include "launcher/config/syntax.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <regex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "runtime/base/array.h"
#include "runtime/storage/inside.h"

/* ---- explaining syntax errors ---- */

#define FIRST "(^|[;{,])[ \t]*"
#define NAME  "[A-Za-z*][A-Za-z0-9_*-]*"

enum { DEPTH_MAX = 64 };

/* Expressions for a line whose comments and strings mask_strings() has blanked out.  The first one
 * that matches wins; the message quotes its group 2.
 */
static const struct mistake {
    const char *pattern;
    const char *hint;
} mistakes[] = {
    { "()'", "a string needs double quotes" },
    { "()==", "one = sets a value" },
    { FIRST "([0-9][A-Za-z0-9_*-]*)[ \t]*[=:]", "a name starts with a letter" },
    { FIRST "()\"[^\"]*\"[ \t]*[=:]", "a name has no quotes" },
    { "(\\{)[ \t]*\"", "a list needs [ ], a group has names" },
    { FIRST "(" NAME "[. \t]+" NAME ")[ \t]*[=:]",
      "a name has letters, digits, '_' and '-'; the member b of the group a is a = { b = ...; };" },
    { FIRST "(" NAME ")([ \t]*\\{|[ \t]+[\"0-9])", "a = is missing after it" },
    { "()[=:][ \t]*[;}]", "a value is missing after =" },
    { "([=:[(])[ \t]*([A-Za-z][^];},) \t]*)",
      "neither a number nor true or false; a string needs double quotes" },
    { "([=:])[ \t]*([-+.0-9]+([eE][-+]?[0-9]+)?[^];},) \t0-9.eEL][^];},) \t]*)",
      "not a number; a string needs double quotes" },
    { "([=:])[ \t]*([-+.0-9]+[eE][-+]?[0-9]+[.][0-9]*)", "no number" },
    { "(),[ \t]*[])]", "a list does not end with a comma" },
    { "();[ \t]*;", "an extra ;" },
};

static void blank_out (char *from, const char *to)
{
    for (; from < to; from++)
        if (*from != '\n')
            *from = ' ';
}

static char *mask_strings (const char *text)
{
    char *copy = xstrdup (text);
    char *end;

    for (char *c = copy; *c; c = end) {
        end = c + 1;
        if (*c == '"') {
            while (*end && *end != '"')
                end += *end == '\\' && end[1] ? 2 : 1;
            blank_out (c + 1, end);
            end += *end == '"';
        } else if (*c == '#' || (*c == '/' && c[1] == '/')) {
            end = c + strcspn (c, "\n");
            blank_out (c, end);
        } else if (*c == '/' && c[1] == '*') {
            end = strstr (c, "*/") ? strstr (c, "*/") + 2 : c + strlen (c);
            blank_out (c, end);
        } else if (c > copy && strchr (" \t=:[(,", c[-1])
                   && (!strncasecmp (c, "true", 4) || !strncasecmp (c, "false", 5)))
            memset (c, '0', 4); /* so that 'mistakes' need not know them */
    }
    return copy;
}

/* Returns the line of the first bracket that does not match, or 0 if all do. */
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

/* Copy a single line.  Returns NULL if there is no such line. */
static char *line_of_text (const char *text, int line)
{
    while (text && --line > 0 && (text = strchr (text, '\n')))
        text++;
    return text ? xstrndup (text, strcspn (text, "\n")) : NULL;
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
    char *plain = mask_strings (text);
    char *here = line_of_text (plain, *line);
    char *before = *line > 1 ? line_of_text (plain, *line - 1) : NULL;
    char hint[256] = "write settings as name = value; and strings in quotes";
    int at;

    if (ends_with_equals (before)) {
        snprintf (hint, sizeof (hint), "a value is missing after =");
        --*line;
    } else if (!(here && find_mistake (here, hint, sizeof (hint)))
               && (at = check_brackets (plain, hint, sizeof (hint))) > 0)
        *line = at;
    free (plain);
    free (here);
    free (before);
    return xasprintf ("syntax error: %s", hint);
}

/* Limits, because libconfig compares each name with all names before it and needs a hundred bytes
 * per list element.  SIZE_MAX_MB applies to all files of a text together.
 */
enum { SIZE_MAX_MB = 64, SETTINGS_MAX = 20000, ELEMENTS_MAX = 1000000, INCLUDES_MAX = 64 };

/* The files that make up one text. */
struct inclusion {
    struct problems *p;
    const char *file; /* being read */
    int line;         /* of the combined text */
    int depth;
    int count;
    size_t size; /* of all included files */
    char *bad;   /* the included file that has an error; NULL: the main file */
};

struct syntax_scan {
    const char *at;
    int line;
    int spanning; /* line of the first string that spans lines, 0: none */
    int lists;    /* number of open [ and ( */
    long settings, elements;
    FILE *out;             /* gets the text, with an L appended to large integers */
    char *why;             /* the error in 'line', or NULL */
    struct inclusion *inc; /* NULL: reject @include */
};

static int __attribute__ ((format (printf, 3, 4)))
syntax_wrong (struct syntax_scan *s, int line, const char *fmt, ...)
{
    va_list ap;

    s->line = line;
    va_start (ap, fmt);
    s->why = xvasprintf (fmt, ap);
    va_end (ap);
    return -1;
}

static void copy_chars (struct syntax_scan *s, size_t n)
{
    for (; n > 0 && *s->at; n--) {
        s->line += *s->at == '\n';
        if (s->inc)
            s->inc->line += *s->at == '\n';
        putc (*s->at++, s->out);
    }
}

/* ---- comments, strings, names ---- */

static int copy_comment (struct syntax_scan *s)
{
    int line = s->line;
    const char *end;

    if (s->at[1] != '*' || *s->at == '#') {
        copy_chars (s, strcspn (s->at, "\n"));
        return 0;
    }
    if (!(end = strstr (s->at + 2, "*/")))
        return syntax_wrong (s, line, "the comment that starts here is not closed");
    copy_chars (s, (size_t)(end - s->at) + 2);
    return 0;
}

static int copy_string (struct syntax_scan *s)
{
    int line = s->line;

    copy_chars (s, 1);
    while (*s->at && *s->at != '"')
        copy_chars (s, *s->at == '\\' ? 2 : 1);
    if (s->line > line && !s->spanning)
        s->spanning = line;
    if (!*s->at)
        return syntax_wrong (s, s->spanning ? s->spanning : line,
                             "the string that starts here is not closed: a \" is missing");
    copy_chars (s, 1);
    /* accept this in an experiment's own copy, which may be old */
    if (s->lists > 0 && s->inc && s->at[strspn (s->at, " \t")] == '"')
        return syntax_wrong (s, s->line, "a comma is missing between two strings");
    return 0;
}

static int copy_name (struct syntax_scan *s)
{
    size_t n = 1;

    while (isalnum ((unsigned char)s->at[n]) || strchr ("-_*", s->at[n]))
        if (!s->at[n++])
            break;
    copy_chars (s, strnlen (s->at, n));
    return 0;
}

/* ---- numbers ---- */

/* Length of the integer at 'at', or 0 if there is none. */
static size_t integer_length (const char *at)
{
    const char *digits = "0123456789";
    size_t n = *at == '-' || *at == '+';

    if (at[n] == '0' && tolower (at[n + 1]) == 'x') {
        n += 2;
        digits = "0123456789abcdefABCDEF";
    }
    n = strspn (at + n, digits) ? n + strspn (at + n, digits) : 0;
    return at[n] && strchr (".eE", at[n]) ? 0 : n;
}

static int copy_number (struct syntax_scan *s)
{
    size_t n = integer_length (s->at);
    char word[32];
    long long v;

    if (n == 0) {
        copy_chars (s, 1 + strspn (s->at + 1, "0123456789.eE+-"));
        return 0;
    }
    snprintf (word, sizeof (word), "%.*s", (int)n, s->at);
    errno = 0;
    v = strtoll (word, NULL, tolower (word[n > 1]) == 'x' ? 16 : 10);
    if (errno || n >= sizeof (word))
        return syntax_wrong (s, s->line, "%s does not fit into 64 bits", word);
    copy_chars (s, n);
    if (*s->at == 'L')
        copy_chars (s, strspn (s->at, "L"));
    else if (v != (int)v)
        putc ('L', s->out);
    return 0;
}

/* ---- @include ---- */

static int copy_settings (struct syntax_scan *s);
static char *read_included (const char *path, size_t *size);
static size_t mark_length (const char *text);

/* Read the quoted path, which is relative to the including file.  Returns NULL if it is missing. */
static char *included_path (struct syntax_scan *s)
{
    const char *from = s->at + 8 + strspn (s->at + 8, " \t");
    size_t n = *from == '"' ? strcspn (from + 1, "\"\n") : 0;
    const char *slash = strrchr (s->inc->file, '/');
    char *path;

    if (n == 0 || from[n + 1] != '"')
        return NULL;
    path = xasprintf ("%.*s%.*s",
                      *from == '"' && from[1] != '/' && slash ? (int)(slash - s->inc->file) + 1 : 0,
                      s->inc->file, (int)n, from + 1);
    s->at = from + n + 2;
    return path;
}

/* Copy the settings of an included file.  Messages name that file and its lines. */
static int copy_included (struct syntax_scan *s, const char *path, const char *text)
{
    struct inclusion *inc = s->inc;
    struct syntax_scan in = {
        .at = text + mark_length (text), .line = 1, .out = s->out, .inc = inc
    };
    const char *outer = inc->file;
    int rv;

    inc->file = path;
    inc->depth++;
    problems_part (inc->p, inc->line, path, 1);
    rv = copy_settings (&in);
    inc->file = outer;
    inc->depth--;
    putc ('\n', s->out);
    inc->line++;
    s->settings += in.settings;
    s->elements += in.elements;
    if (rv == 0 && s->settings > SETTINGS_MAX)
        return syntax_wrong (s, s->line, "more than 20000 settings");
    if (rv == 0) {
        problems_part (inc->p, inc->line, outer, s->line);
        return 0;
    }
    if (!inc->bad)
        inc->bad = xstrdup (path);
    s->why = in.why;
    s->line = in.line;
    return -1;
}

static int copy_include (struct syntax_scan *s)
{
    char *path = s->inc ? included_path (s) : NULL;
    char *text = NULL;
    size_t size = 0;
    int rv;

    if (!s->inc)
        return syntax_wrong (s, s->line, "@include: an experiment is one file");
    if (!path)
        rv = syntax_wrong (s, s->line, "@include needs the name of a file in quotes");
    else if (s->inc->depth >= 8 || s->inc->count++ >= INCLUDES_MAX)
        rv = syntax_wrong (s, s->line, "@include: nested too deeply");
    else if (!(text = read_included (path, &size)))
        rv = syntax_wrong (s, s->line, "@include: cannot read %s: %s", path, inside_error (errno));
    else if ((s->inc->size += size) > (size_t)SIZE_MAX_MB << 20)
        rv = syntax_wrong (s, s->line, "@include: more than 64 MiB of text");
    else if (strlen (text) < size)
        rv = syntax_wrong (s, s->line, "@include: %s is not text", path);
    else
        rv = copy_included (s, path, text);
    free (text);
    free (path);
    return rv;
}

static int copy_settings (struct syntax_scan *s)
{
    int rv = 0;

    while (rv == 0 && *s->at)
        if (*s->at == '#' || (*s->at == '/' && strchr ("/*", s->at[1])))
            rv = copy_comment (s);
        else if (*s->at == '"')
            rv = copy_string (s);
        else if (!strncmp (s->at, "@include", 8))
            rv = copy_include (s);
        else if (isalpha ((unsigned char)*s->at) || *s->at == '*')
            rv = copy_name (s);
        else if (isdigit ((unsigned char)*s->at) || strchr ("+-.", *s->at))
            rv = copy_number (s);
        else {
            s->settings += *s->at == '=' || *s->at == ':';
            s->lists += *s->at == '[' || *s->at == '(';
            s->lists -= *s->at == ']' || *s->at == ')';
            s->elements += *s->at == ',';
            copy_chars (s, 1);
            if (s->settings > SETTINGS_MAX)
                rv = syntax_wrong (s, s->line, "more than 20000 settings");
            else if (s->elements > ELEMENTS_MAX)
                rv = syntax_wrong (s, s->line, "more than a million values in lists");
        }
    return rv;
}

/* ---- libconfig ---- */

static void parse_copy (config_t *cf, const char *text, struct syntax_scan *s)
{
    const char *why;

    if (config_read_string (cf, text))
        return;
    /* libconfig has one error code for all mistakes in a text, so only its message tells them apart
     */
    why = config_error_text (cf);
    s->line = config_error_line (cf);
    if (!strcmp (why, "syntax error"))
        s->why = syntax_hint (text, &s->line);
    else
        syntax_wrong (s, s->line, "%s%s", why,
                      strstr (why, "duplicate")
                          ? ": a name may appear only once in its group, including what @include "
                            "inserts; --set replaces a value"
                      : strstr (why, "mismatched") ? ": values of different types need ( )"
                                                   : "");
}

static char *parse_text_of (config_t *cf, const char *text, struct inclusion *inc, int *line)
{
    struct syntax_scan s = { .at = text, .line = 1, .inc = inc };
    char *out = NULL;
    size_t size;

    s.out = xopen_memstream (&out, &size);
    copy_settings (&s);
    putc ('\n', s.out); /* libconfig rejects a comment that ends without one */
    xclose_memstream (s.out);
    if (!s.why) {
        parse_copy (cf, out, &s);
        if (s.why && inc) {
            inc->file = problems_file (inc->p, &s.line);
            inc->bad = xstrdup (inc->file);
        }
    }
    free (out);
    *line = s.line;
    return s.why;
}

char *syntax_parse (config_t *cf, const char *text, int *line)
{
    return parse_text_of (cf, text, NULL, line);
}

/* ---- the file ---- */

static int too_large (void)
{
    errno = EFBIG;
    return -1;
}

/* Read everything, and append a NUL.  Returns -1 with errno on failure. */
static int read_syntax_text (int fd, char **text, size_t *size)
{
    size_t capacity = 0;
    ssize_t n;

    for (*size = 0;; *size += (size_t)n) {
        if (array_reserve (text, &capacity, *size, 4096, 1) < 0)
            return -1;
        n = read (fd, *text + *size, capacity - *size - 1);
        if (n < 0 && errno == EINTR)
            n = 0;
        else if (n <= 0) {
            (*text)[*size] = '\0';
            return (int)n;
        }
        if (*size > (size_t)SIZE_MAX_MB << 20)
            return too_large ();
    }
}

static char *read_syntax_file (const char *path, size_t *size)
{
    /* a user may name a pipe: dl run <(command) */
    int fd = inside_has (path) ? inside_open (path, O_RDONLY, 0, NULL)
                               : open (path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    int saved;

    if (fd < 0)
        return NULL;
    if (read_syntax_text (fd, &text, size) < 0) {
        saved = errno;
        free (text);
        text = NULL;
        errno = saved;
    }
    saved = errno;
    close (fd);
    errno = saved;
    return text;
}

/* Include only regular files, because reading a pipe could block. */
static char *read_included (const char *path, size_t *size)
{
    struct stat st;
    int fd = inside_open_any (path, O_RDONLY, 0, &st);
    char *text = NULL;
    int rv = -1;

    if (fd < 0)
        return NULL;
    if (S_ISREG (st.st_mode))
        rv = read_syntax_text (fd, &text, size);
    else
        errno = EINVAL;
    rv = inside_close (fd, rv);
    if (rv == 0)
        return text;
    free (text);
    return NULL;
}

/* Skip the byte order mark that some editors write. */
static size_t mark_length (const char *text)
{
    return strncmp (text, "\xef\xbb\xbf", 3) ? 0 : 3;
}

static bool is_program (const char *path, const char *text)
{
    const char *dot = strrchr (path, '.');

    return !strncmp (text, "#!", 2) || (dot && (!strcmp (dot, ".py") || !strcmp (dot, ".sh")));
}

static int read_settings (config_t *cf, const char *path, const char *text, size_t size,
                          int *includes, struct problems *p)
{
    struct inclusion inc = { .p = p, .file = path, .line = 1 };
    char *why;
    int line = 1;

    if (strlen (text) < size)
        why = xstrdup ("a NUL byte is here: this is not text");
    else
        why = parse_text_of (cf, text + mark_length (text), includes ? &inc : NULL, &line);
    for (const char *c = text; strlen (text) < size && *c; c++)
        line += *c == '\n';
    if (why && is_program (path, text))
        problem (p,
                 "%s: this is a program: name it in 'entrypoint' of an experiment file, see "
                 "dl-experiment(5)",
                 path);
    else if (why)
        problem (p, "%s:%d: %s", inc.bad ? inc.bad : path, line, why);
    if (includes)
        *includes = inc.count;
    free (inc.bad);
    free (why);
    errno = why ? EINVAL : errno;
    return why ? -1 : 0;
}

/* If the file does not exist, suggest its name with ".conf" appended if that exists. */
static void problem_unreadable (const char *path, int e, struct problems *p)
{
    char conf[PATH_MAX];

    snprintf (conf, sizeof (conf), "%s.conf", path);
    if (e == ENOENT && access (conf, R_OK) == 0)
        problem (p, "%s: cannot read: %s; did you mean '%s'?", path, strerror (e), conf);
    else
        problem (p, "%s: cannot read: %s", path, strerror (e));
}

int syntax_read (config_t *cf, const char *path, int *includes, struct problems *p)
{
    size_t size = 0;
    char *text = read_syntax_file (path, &size);
    int e = errno;
    int rv = -1;

    if (text) {
        rv = read_settings (cf, path, text, size, includes, p);
        e = errno;
    } else
        problem_unreadable (path, e, p);
    free (text);
    errno = e;
    return rv;
}

int syntax_read_text (config_t *cf, const char *path, const char *text, size_t size,
                      struct problems *p)
{
    return read_settings (cf, path, text, size, NULL, p);
}
