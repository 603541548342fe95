/* SPDX-License-Identifier: Apache-2.0 */
/* dl diff: print how two experiments differ. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/code/code.h"
#include "launcher/config/experiment.h"
#include "launcher/config/flat.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/messages.h"

static void print_difference (long n, const char *name, const char *first, const char *second,
                              void *title)
{
    if (n == 0)
        printf ("%s:\n", (const char *)title);
    printf ("  %s: %s -> %s\n", name, first, second);
}

/* Return the number of differences. */
static long compare_parts (const char *title, json_t *a, json_t *b)
{
    return flat_compare (a, b, print_difference, (void *)title);
}

/* Represent the content of a file by its digest. */
static void note_file_digest (const char *path, const void *text, size_t size, void *o)
{
    char digest[DIGEST_SIZE];

    digest_of (digest, text, size);
    digest[12] = '\0';
    json_object_set_new (o, path, json_string (digest));
}

/* Return the files of an archive, and free the archive.  Returns NULL after printing an
 * error.
 */
static json_t *files_in (const char *name, struct code_archive *a)
{
    struct slurmdl_error err = { "" };
    json_t *o = json_object ();

    if (a->data && code_archive_each (a->data, a->size, note_file_digest, o, &err) < 0) {
        complain ("%s: %s", name, err.text);
        json_decref (o);
        o = NULL;
    }
    code_archive_free (a);
    return o;
}

/* Return NULL after printing an error. */
static json_t *frozen_files_json (const struct sweep *s)
{
    struct slurmdl_error err = { "" };
    struct code_archive a;

    if (!s->code)
        return json_object ();
    if (store_get (s->dir, s->code, &a, &err) == 0)
        return files_in (s->dir, &a);
    complain ("%s", err.text);
    return NULL;
}

/* Leave out what differs in every run, such as the command line and the time. */
static json_t *machine_of (const json_t *provenance)
{
    static const char *const names[] = { "dl", "modules", "cuda", "driver" };
    const json_t *python = json_object_get (provenance, "python");
    const json_t *git = json_object_get (provenance, "git");
    json_t *o = json_object ();

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        json_object_set (o, names[i], json_object_get (provenance, names[i]));
    json_object_set (o, "python", json_object_get (python, "version"));
    json_object_set (o, "git commit", json_object_get (git, "commit"));
    return o;
}

static long compare_records (const struct sweep *a, const struct sweep *b)
{
    json_t *first = provenance_read (a);
    json_t *second = provenance_read (b);
    json_t *here = machine_of (first);
    json_t *there = machine_of (second);
    long n = 0;

    if (first && second) {
        n = compare_parts ("made with", here, there);
        n += compare_parts ("packages",
                            json_object_get (json_object_get (first, "python"), "packages"),
                            json_object_get (json_object_get (second, "python"), "packages"));
    }
    json_decref (first);
    json_decref (second);
    json_decref (here);
    json_decref (there);
    return n;
}

static long compare_code (const struct sweep *a, const struct sweep *b)
{
    json_t *first;
    json_t *second;
    long n = 0;

    if (!a->code != !b->code) {
        printf ("code: that of %s is not frozen\n", a->code ? b->dir : a->dir);
        return 1;
    }
    if (!a->code || !strcmp (a->code, b->code))
        return 0;
    first = frozen_files_json (a);
    second = frozen_files_json (b);
    if (first && second)
        n = compare_parts ("code", first, second);
    json_decref (first);
    json_decref (second);
    return n;
}

static long compare_settings (const struct sweep *a, const struct sweep *b)
{
    json_t *first = config_flat (a->frozen);
    json_t *second = config_flat (b->frozen);
    long n = compare_parts ("settings", first, second);

    json_decref (first);
    json_decref (second);
    return n;
}

/* ---- compare with the current code in a directory ---- */

/* Whether the path is a directory but not an experiment. */
static bool is_folder (const char *path, char own[PATH_MAX])
{
    char file[PATH_MAX + 32];
    struct stat st;

    if (!realpath (path, own) || stat (own, &st) < 0 || !S_ISDIR (st.st_mode))
        return false;
    snprintf (file, sizeof (file), "%s/experiment.conf", own);
    return access (file, F_OK) < 0;
}

/* If the directory is part of the experiment's own code, compare all of its code. */
static int compare_folder (struct sweep *s, const char *folder)
{
    struct slurmdl_error err = { "" };
    size_t n = s->root ? strlen (s->root) : 0;
    struct code_archive a;
    json_t *first, *second;
    long changes = 0;

    if (!s->code) {
        complain ("%s: its code is not frozen: there is nothing to compare", s->dir);
        return EXIT_USAGE;
    }
    if (strncmp (folder, s->root, n) || (folder[n] && folder[n] != '/')) {
        free (s->exp->dir);
        s->exp->dir = xstrdup (folder);
    }
    if (code_now (s, &a, &err) < 0)
        return fail (&err);
    first = frozen_files_json (s);
    second = files_in (folder, &a);
    if (first && second)
        changes = compare_parts ("code", first, second);
    json_decref (first);
    json_decref (second);
    return !first || !second ? EXIT_DAMAGED : changes ? EXIT_FAILED : EXIT_OK;
}

int cmd_diff (const struct command_line *line)
{
    struct sweep *a = NULL;
    struct sweep *b = NULL;
    char folder[PATH_MAX];
    long n = 0;
    int rv = open_experiment (line, line->args[0], &a);

    if (rv == EXIT_OK && is_folder (line->args[1], folder)) {
        rv = compare_folder (a, folder);
        sweep_close (a);
        return rv;
    }
    if (rv == EXIT_OK)
        rv = open_experiment (line, line->args[1], &b);
    if (rv == EXIT_OK) {
        n = compare_settings (a, b) + compare_code (a, b);
        n += compare_records (a, b);
        rv = n > 0 ? EXIT_FAILED : EXIT_OK;
    }
    sweep_close (a);
    sweep_close (b);
    return rv;
}
