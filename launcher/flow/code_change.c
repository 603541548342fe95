/* SPDX-License-Identifier: Apache-2.0 */
/* What of the code has changed since the run before. */
#include "launcher/flow/code_change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/code/store.h"
#include "launcher/flow/cache.h"
#include "launcher/sys/say.h"
#include "launcher/sys/small_file.h"

enum { SHOWN = 3, RECORD_MAX = 8 << 20 };

/* { PATH: DIGEST } of what counts for a step without 'code'. */
static void add_file (const char *path, const void *text, size_t size, void *o)
{
    char digest[DIGEST_SIZE];

    if (flow_is_leftover (path))
        return;
    digest_of (digest, text, size);
    json_object_set_new (o, path, json_string (digest));
}

static json_t *list_files (const struct code_archive *a)
{
    json_t *o = json_object ();

    if (a->data && code_archive_each (a->data, a->size, add_file, o, NULL) < 0) {
        json_decref (o);
        return NULL;
    }
    return o;
}

/* The folder NAME-0006 of NAME-0007; -1: there is none. */
static int find_before (const struct flow_run *r, char dir[PATH_MAX])
{
    size_t n = strlen (r->dir) - 4;
    long number = atol (r->dir + n);

    if (number < 2)
        return -1;
    snprintf (dir, PATH_MAX, "%.*s%04ld", (int)n, r->dir, number - 1);
    return 0;
}

static json_t *files_before (const char *dir)
{
    struct code_archive a = { .data = NULL };
    struct slurmdl_error err;
    char path[PATH_MAX];
    json_t *about, *list = NULL;
    const char *digest;
    uid_t owner;
    char *text;

    if (snprintf (path, PATH_MAX, "%s/flow.json", dir) >= PATH_MAX
        || !(text = file_read_now (path, RECORD_MAX, NULL, &owner, NULL)))
        return NULL;
    about = json_loads (text, JSON_REJECT_DUPLICATES, NULL);
    free (text);
    digest = json_string_value (json_object_get (about, "code"));
    if (digest && owner == geteuid () && store_get (dir, digest, &a, &err) == 0)
        list = list_files (&a);
    code_archive_free (&a);
    json_decref (about);
    return list;
}

static void note (FILE *f, long *n, const char *path, const char *what)
{
    if (++*n <= SHOWN)
        fprintf (f, "%s%s %s", *n > 1 ? ", " : "", path, what);
}

/* Where a link leads is no code.  Returns how many differ. */
static long compare (FILE *f, json_t *old, json_t *now, const struct code_files *files)
{
    const char *path;
    json_t *digest;
    long n = 0;

    for (size_t i = 0; i < files->n; i++)
        if (files->list[i].target) {
            json_object_del (old, files->list[i].path);
            json_object_del (now, files->list[i].path);
        }
    json_object_foreach (now, path, digest) {
        const json_t *before = json_object_get (old, path);
        if (!before)
            note (f, &n, path, "is new");
        else if (!json_equal (before, digest))
            note (f, &n, path, "has changed");
    }
    json_object_foreach (old, path, digest)
        if (!json_object_get (now, path))
            note (f, &n, path, "is gone");
    if (n > SHOWN)
        fprintf (f, " and %ld more", n - SHOWN);
    return n;
}

static bool any_without_code (const struct flow *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (!f->steps[i].code && f->steps[i].cache)
            return true;
    return false;
}

void flow_say_code_change (const struct flow_run *r, const struct code_files *files,
                           const struct code_archive *now)
{
    char dir[PATH_MAX];
    json_t *before, *list;
    char *text = NULL;
    size_t size;
    long n = 0;
    FILE *f;

    if (!any_without_code (r->flow) || find_before (r, dir) < 0 || !(before = files_before (dir)))
        return;
    list = list_files (now);
    if (list && (f = open_memstream (&text, &size))) {
        n = compare (f, before, list, files);
        fclose (f);
    }
    if (n > 0)
        complain ("since %s %s; steps without 'code' depend on all files", strrchr (dir, '/') + 1,
                  text);
    free (text);
    json_decref (list);
    json_decref (before);
}
