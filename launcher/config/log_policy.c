/* SPDX-License-Identifier: Apache-2.0 */
/* Search a log, which may be long, for lines that match log_policies. */
#include "launcher/config/log_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/storage/inside.h"

enum {
    LINE_SIZE = 8192,
    BLOCK = 1 << 16,
    LOG_MAX = 64 << 20,
    TAIL = 1 << 20,
    TIMEOUT = 10, /* s */
};

struct policy_scan {
    const struct log_policy *list;
    size_t n;
    regex_t *re;
    bool *open; /* compiled, but not matched yet */
    char (*found)[POLICY_LINE];
    int hits;
    char line[LINE_SIZE];
    size_t fill;
};

/* ".*X.*" matches the same lines as "X" but is far slower: each attempt reads to the end of the
 * line, which takes minutes for a long log.
 */
static char *without_ends (const char *pattern)
{
    size_t n;
    char *text;

    while (!strncmp (pattern, ".*", 2) && (!pattern[2] || !strchr ("*+?{", pattern[2])))
        pattern += 2;
    text = xstrdup (pattern);
    n = strlen (text);
    while (n >= 3 && !strcmp (text + n - 2, ".*") && !strchr ("\\[", text[n - 3]))
        text[n -= 2] = '\0';
    return text;
}

/* Returns a code of regcomp(). */
static int compile (regex_t *re, const char *pattern)
{
    char *text = without_ends (pattern);
    int rc = regcomp (re, text, REG_EXTENDED);

    free (text);
    return rc;
}

int log_policy_check (const char *pattern, struct slurmdl_error *err)
{
    char why[128];
    regex_t re;
    int rc = compile (&re, pattern);

    if (rc == 0) {
        regfree (&re);
        return 0;
    }
    regerror (rc, NULL, why, sizeof (why));
    errno = EINVAL;
    return errorf (err, "%s", why);
}

void policy_text (char *text)
{
    size_t n;

    for (char *c = text; *c; c += n ? n : 1)
        if ((n = utf8_length (c)) == 0)
            *c = '?';
        else if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
}

/* Copy the part of the line around the match at 'at'. */
static void excerpt (char *buf, const char *line, size_t at)
{
    line += strspn (line, " \t") < at ? strspn (line, " \t") : at;
    if (strlen (line) >= POLICY_LINE && at > POLICY_LINE / 3)
        line += at - POLICY_LINE / 3 < strlen (line) ? at - POLICY_LINE / 3 : 0;
    while ((*line & 0xc0) == 0x80) /* do not begin within a character */
        line++;
    snprintf (buf, POLICY_LINE, "%s", line);
    policy_text (buf);
}

static void end_line (struct policy_scan *s)
{
    s->line[s->fill] = '\0';
    for (size_t i = 0; i < s->n; i++) {
        regmatch_t m;
        if (!s->open[i] || regexec (&s->re[i], s->line, 0, NULL, 0) != 0
            || regexec (&s->re[i], s->line, 1, &m, 0) != 0)
            continue;
        excerpt (s->found[i], s->line, (size_t)m.rm_so);
        s->hits++;
        s->open[i] = false;
        regfree (&s->re[i]);
    }
    s->fill = 0;
}

static void look_at (struct policy_scan *s, const char *buf, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        /* progress bars end their lines with a carriage return */
        if (buf[i] == '\n' || buf[i] == '\r') {
            if (s->fill)
                end_line (s);
        } else if (s->fill < LINE_SIZE - 1 && buf[i])
            s->line[s->fill++] = buf[i];
    }
}

/* Some expressions take minutes for long lines, but the worker has to write heartbeats.  So when
 * time is up, skip to the last part of the log.
 */
static void hurry (struct policy_scan *s, int fd, off_t size, double start)
{
    off_t at = lseek (fd, 0, SEEK_CUR);

    if (monotonic () - start > TIMEOUT && at < size - TAIL) {
        lseek (fd, size - TAIL, SEEK_SET);
        s->fill = 0;
    }
}

static int read_log_part (struct policy_scan *s, const char *path)
{
    double start = monotonic ();
    int fd = inside_open_any (path, O_RDONLY, 0, NULL);
    off_t size = fd < 0 ? -1 : lseek (fd, 0, SEEK_END);
    char *buf = xmalloc (BLOCK);
    ssize_t n = -1;

    if (size >= 0 && lseek (fd, size > LOG_MAX ? size - LOG_MAX : 0, SEEK_SET) >= 0)
        while (s->hits < (int)s->n && (n = read (fd, buf, BLOCK)) > 0) {
            look_at (s, buf, (size_t)n);
            hurry (s, fd, size, start);
        }
    if (s->fill)
        end_line (s);
    free (buf);
    if (fd >= 0)
        close (fd);
    return n < 0 ? -1 : 0;
}

int policies_search (const struct log_policy *list, size_t n, const char *path,
                     char (*found)[POLICY_LINE])
{
    struct policy_scan *s = xcalloc (1, sizeof (*s));
    int rv = -1;

    memset (found, 0, n * sizeof (*found));
    s->re = xcalloc (n + 1, sizeof (*s->re));
    s->open = xcalloc (n + 1, sizeof (*s->open));
    s->list = list;
    s->n = n;
    s->found = found;
    for (size_t i = 0; i < n; i++)
        s->open[i] = *list[i].pattern && compile (&s->re[i], list[i].pattern) == 0;
    if (read_log_part (s, path) == 0)
        rv = s->hits;
    for (size_t i = 0; i < n; i++)
        if (s->open[i])
            regfree (&s->re[i]);
    free (s->re);
    free (s->open);
    free (s);
    return rv;
}
