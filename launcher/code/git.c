/* SPDX-License-Identifier: Apache-2.0 */
/* What git(1) says of a folder. */
#include "launcher/code/git.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/sys/subprocess.h"

enum { LIST_MAX = 8 << 20, SECONDS = 20 };

/* Settings of the work tree that would run programs are not used. */
char *git_output (const char *dir, char *const *args, size_t max)
{
    struct command c = { .timeout = SECONDS,
                         .no_errors = true,
                         .keeps_job = true };
    char *buf = malloc (max);
    int rv;

    if (!buf)
        return NULL;
    command_add (&c, "git", NULL);
    command_add (&c, "-C", NULL);
    command_add (&c, dir, NULL);
    command_add (&c, "-c", NULL);
    command_add (&c, "core.fsmonitor=false", NULL);
    command_add (&c, "-c", NULL);
    command_add (&c, "core.quotePath=false", NULL);
    command_add (&c, "--no-optional-locks", NULL);
    for (; *args; args++)
        command_add (&c, *args, NULL);
    rv = command_run (&c, NULL, buf, max);
    command_free (&c);
    if (rv == 0 && strlen (buf) < max - 1)
        return buf;
    free (buf);
    return NULL;
}

static int by_path (const void *a, const void *b)
{
    return strcmp (*(char *const *)a + 2, *(char *const *)b + 2);
}

int git_files_read (const char *root, struct git_files *g)
{
    char *const args[] = { (char *)"ls-files",           (char *)"-t",
                           (char *)"--cached",           (char *)"--others",
                           (char *)"--exclude-standard", NULL };
    size_t lines = 1;
    char *rest;

    *g = (struct git_files){ .text = git_output (root, args, LIST_MAX) };
    if (!g->text)
        return -1;
    for (const char *s = g->text; *s; s++)
        lines += *s == '\n';
    if (!(g->list = calloc (lines, sizeof (*g->list))))
        return -1;
    rest = g->text;
    for (char *line; (line = strsep (&rest, "\n"));)
        if (strlen (line) > 2 && line[2] != '"')
            g->list[g->n++] = line;
    qsort (g->list, g->n, sizeof (*g->list), by_path);
    return 0;
}

void git_files_free (struct git_files *g)
{
    free (g->list);
    free (g->text);
    *g = (struct git_files){ NULL };
}

/* The first that is not before 'path'. */
static size_t lower_bound (const struct git_files *g, const char *path)
{
    size_t low = 0;
    size_t high = g->n;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (strcmp (g->list[mid] + 2, path) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

char git_files_kind (const struct git_files *g, const char *path)
{
    size_t len = strlen (path);
    size_t i = lower_bound (g, path);
    char kind = ' ';

    if (i < g->n && !strcmp (g->list[i] + 2, path))
        return g->list[i][0] == '?' ? '?' : 'H';
    for (; i < g->n && !strncmp (g->list[i] + 2, path, len); i++) {
        if (g->list[i][2 + len] != '/')
            continue;
        kind = '?';
        if (g->list[i][0] != '?')
            return 'H';
    }
    return kind;
}
