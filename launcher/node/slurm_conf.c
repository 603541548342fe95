/* SPDX-License-Identifier: Apache-2.0 */
/* Read Slurm's files, with the line of each parameter. */
#include "launcher/node/slurm_conf.h"

#include <ctype.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "launcher/sys/small_file.h"
#include "runtime/base/array.h"

enum { DEPTH = 8 };

char *doctor_read (const char *root, const char *path)
{
    char full[2 * PATH_MAX];

    snprintf (full, sizeof (full), "%s%s", root, path);
    return file_text (full, DOCTOR_FILE);
}

static int add (struct conf *c, const char *file, int line, const char *text, size_t len)
{
    struct conf_line *more = array_grow (c->list, c->n, sizeof (*more));

    if (!more)
        return -1;
    c->list = more;
    more[c->n++] = (struct conf_line){ strdup (file), line, strndup (text, len) };
    return 0;
}

static int read_deep (struct conf *c, const char *root, const char *path, int depth);

/* "include /etc/slurm/plugstack.conf.d/?*"; relative: beside 'file'. */
static void include (struct conf *c, const char *root, const char *file, const char *pattern,
                     int depth)
{
    char full[3 * PATH_MAX];
    const char *slash = strrchr (file, '/');
    glob_t g;

    if (*pattern == '/')
        snprintf (full, sizeof (full), "%s%s", root, pattern);
    else
        snprintf (full, sizeof (full), "%s%.*s/%s", root, slash ? (int)(slash - file) : 0, file,
                  pattern);
    if (glob (full, 0, NULL, &g) != 0)
        return;
    for (size_t i = 0; i < g.gl_pathc; i++)
        read_deep (c, root, g.gl_pathv[i] + strlen (root), depth + 1);
    globfree (&g);
}

static size_t strip (const char **text, size_t len)
{
    const char *hash = memchr (*text, '#', len);

    if (hash)
        len = (size_t)(hash - *text);
    for (; len && isspace ((unsigned char)**text); len--)
        ++*text;
    while (len && isspace ((unsigned char)(*text)[len - 1]))
        len--;
    return len;
}

static int read_deep (struct conf *c, const char *root, const char *path, int depth)
{
    char *text = depth < DEPTH ? doctor_read (root, path) : NULL;
    int line = 0;

    if (!text)
        return -1;
    for (const char *at = text; *at;) {
        size_t whole = strcspn (at, "\n");
        const char *start = at;
        size_t len = strip (&start, whole);
        line++;
        if (len > 8 && !strncasecmp (start, "include", 7) && isspace ((unsigned char)start[7])) {
            char *pattern = strndup (start + 8, len - 8);
            if (pattern)
                include (c, root, path, pattern + strspn (pattern, " \t"), depth);
            free (pattern);
        } else if (len && add (c, path, line, start, len) < 0)
            break;
        at += whole + (at[whole] == '\n');
    }
    free (text);
    return 0;
}

int conf_read (struct conf *c, const char *root, const char *path)
{
    return read_deep (c, root, path, 0);
}

void conf_free (struct conf *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free (c->list[i].file);
        free (c->list[i].text);
    }
    free (c->list);
    *c = (struct conf){ NULL, 0 };
}

const struct conf_line *conf_find (const struct conf *c, const char *key)
{
    size_t n = strlen (key);

    for (size_t i = c->n; i > 0; i--)
        if (!strncasecmp (c->list[i - 1].text, key, n)
            && c->list[i - 1].text[n + strspn (c->list[i - 1].text + n, " \t")] == '=')
            return &c->list[i - 1];
    return NULL;
}
