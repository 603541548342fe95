/* SPDX-License-Identifier: Apache-2.0 */
/* Ask git(1) which files a folder has and how they changed. */
#include "launcher/code/git.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/subprocess.h"

/* bytes of output, bytes of the list of filters, seconds, depth of nested submodules */
enum { LIST_MAX = 8 << 20, FILTERS_MAX = 64 << 10, SECONDS = 20, DEPTH_MAX = 5 };

/* Begin a git command that runs in a folder. */
static void begin_git (struct command *c, const char *dir)
{
    *c = (struct command){ .timeout = SECONDS, .no_errors = true, .keeps_job = true };
    /* a partial clone would fetch missing objects by any program that its configuration names */
    command_add (c, "env", NULL);
    command_add (c, "GIT_ALLOW_PROTOCOL", "");
    command_add (c, "git", NULL);
    command_add (c, "-C", NULL);
    command_add (c, dir, NULL);
    command_add (c, "-c", NULL);
    command_add (c, "core.fsmonitor=false", NULL);
    command_add (c, "-c", NULL);
    command_add (c, "core.quotePath=false", NULL);
    command_add (c, "--no-optional-locks", NULL);
}

static char *git_command_output (struct command *c, size_t max, int *status)
{
    char *buf = xmalloc (max);

    *status = command_run (c, NULL, buf, max);
    command_free (c);
    if (*status == 0 && strlen (buf) < max - 1)
        return buf;
    free (buf);
    return NULL;
}

static bool ends_in (const char *key, const char *end)
{
    size_t n = strlen (key), k = strlen (end);

    return n >= k && !strcasecmp (key + n - k, end);
}

/* git diff runs the filters that the configuration names, which can be any programs.  Replace them
 * with nothing.  Returns -1 if a filter cannot be replaced.
 */
static int drop_filters (struct command *c, const char *dir)
{
    struct command list;
    char *text, *rest;
    int status, rv = 0;

    begin_git (&list, dir);
    command_add (&list, "config", NULL);
    command_add (&list, "--name-only", NULL);
    command_add (&list, "--get-regexp", NULL);
    command_add (&list, "^filter[.]", NULL);
    text = rest = git_command_output (&list, FILTERS_MAX, &status);
    if (!text)
        return status == 1 ? 0 : -1; /* 1: there are no filters */
    for (char *key; rv == 0 && (key = strsep (&rest, "\n"));) {
        bool flag = ends_in (key, ".required");
        if (!flag && !ends_in (key, ".clean") && !ends_in (key, ".process"))
            continue;
        rv = strchr (key, '=') || c->n > COMMAND_ARGS / 2 ? -1 : 0;
        command_add (c, "-c", NULL);
        command_add (c, key, flag ? "false" : "");
    }
    free (text);
    return rv;
}

/* Programs that the configuration of the work tree names do not run. */
char *git_output (const char *dir, char *const *args, size_t max)
{
    struct command c;
    int status;

    begin_git (&c, dir);
    if (!strcmp (*args, "diff") && drop_filters (&c, dir) < 0) {
        command_free (&c);
        return NULL;
    }
    for (; *args; args++)
        command_add (&c, *args, NULL);
    return git_command_output (&c, max, &status);
}

static int by_listed_path (const void *a, const void *b)
{
    return strcmp (*(char *const *)a + 2, *(char *const *)b + 2);
}

static bool path_exists (const char *root, const char *path, const char *name)
{
    char full[PATH_MAX];

    return snprintf (full, sizeof (full), "%s/%s%s", root, path, name) < (int)sizeof (full)
           && access (full, F_OK) == 0;
}

/* Write the files of the work tree and of its submodules to 'to'.  'folder' is the path of the
 * submodule, "" or "NAME/".
 */
static int add_work_tree (FILE *to, const char *root, const char *folder, int depth)
{
    char *const args[] = { (char *)"ls-files",           (char *)"-t",
                           (char *)"--cached",           (char *)"--others",
                           (char *)"--exclude-standard", NULL };
    bool has_submodules = depth < DEPTH_MAX && path_exists (root, folder, ".gitmodules");
    char path[PATH_MAX];
    char *text, *rest;

    snprintf (path, sizeof (path), "%s/%s", root, folder);
    if (!(text = rest = git_output (path, args, LIST_MAX)))
        return -1;
    for (char *line; (line = strsep (&rest, "\n"));) {
        if (strlen (line) <= 2 || line[2] == '"')
            continue;
        if (!has_submodules || *line != 'H'
            || snprintf (path, sizeof (path), "%s%s/", folder, line + 2) >= (int)sizeof (path)
            || !path_exists (root, path, ".git") || add_work_tree (to, root, path, depth + 1) < 0)
            fprintf (to, "%c %s%s\n", *line, folder, line + 2);
    }
    free (text);
    return 0;
}

int git_files_read (const char *root, struct git_files *g)
{
    size_t lines = 1, size;
    char *rest;
    FILE *f;
    int rv;

    *g = (struct git_files){ .text = NULL };
    f = xopen_memstream (&g->text, &size);
    rv = add_work_tree (f, root, "", 0);
    xclose_memstream (f);
    if (rv < 0)
        return -1;
    for (const char *s = g->text; *s; s++)
        lines += *s == '\n';
    g->list = xcalloc (lines, sizeof (*g->list));
    rest = g->text;
    for (char *line; (line = strsep (&rest, "\n"));)
        if (*line)
            g->list[g->n++] = line;
    qsort (g->list, g->n, sizeof (*g->list), by_listed_path);
    return 0;
}

void git_files_free (struct git_files *g)
{
    free (g->list);
    free (g->text);
    *g = (struct git_files){ NULL };
}

/* The index of the first file that does not sort before 'path'. */
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
