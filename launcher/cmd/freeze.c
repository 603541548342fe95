/* SPDX-License-Identifier: Apache-2.0 */
/* Freeze the code of an experiment and run trials from the frozen copy. */
#include "launcher/cmd/commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/code/code.h"
#include "launcher/config/code_settings.h"
#include "launcher/config/experiment.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"

/* ---- a new experiment ---- */

static int select_files (const struct experiment *e, const char *experiments,
                         struct code_files *files)
{
    struct slurmdl_error err = { "" };

    if (code_select (e, experiments, files, &err) != CODE_INVALID)
        return EXIT_OK;
    complain ("%s: %s", e->file, err.text);
    return error_status (errno);
}

static void warn_absolute (const struct code_files *files)
{
    if (*files->absolute)
        complain ("%s is named by its absolute path and is not frozen: the trials run it as it is "
                  "when they start; name a file in the folder by its relative path",
                  files->absolute);
}

/* Without frozen code, attempts have no copies of their own either.  DL_FREEZE may come
 * from a shell profile that the user has forgotten, so only the experiment file can say
 * that trials are meant to share a directory.
 */
static void warn_shared (const struct experiment *e, const struct code_files *files)
{
    if (files->is_off && e->code->work != WORK_SHARED && strcmp (e->search->searcher, "single"))
        complain ("the code is not frozen (%s): all trials run in %s, and overwrite each other's "
                  "files of the same name",
                  e->code->freeze ? "the variable DL_FREEZE" : "code.freeze", e->dir);
}

static bool has_frozen_files (const struct code_files *files)
{
    return files->n > files->nlinks + files->nfolders && !*files->why;
}

int code_freeze (struct experiment *e, const char *experiments, struct code_of_run *r)
{
    struct slurmdl_error err = { "" };
    int rv;

    *r = (struct code_of_run){ .provenance = NULL };
    if ((rv = select_files (e, experiments, &r->files)))
        return rv;
    warn_absolute (&r->files);
    warn_shared (e, &r->files);
    if (has_frozen_files (&r->files) && code_archive_pack (&r->files, &r->archive, &err) == 0)
        r->frozen.archive = &r->archive;
    if (r->files.is_text && r->frozen.archive)
        complain (
            "%s has more than 64 MiB or 20000 files: only text is frozen (*.py, *.sh, *.yaml ...), "
            "other files are linked; list what is not code in .dlignore or code.exclude",
            r->files.root);
    if (*r->files.why || *err.text)
        complain ("the code is not frozen: the trials run what is in the folder when they start, "
                  "and share the files that they write there: %s",
                  *err.text ? err.text : r->files.why);
    r->frozen.root = r->files.root;
    r->frozen.provenance = r->provenance = provenance_collect (e, &r->files);
    if (r->provenance)
        e->code->frozen = &r->frozen;
    return EXIT_OK;
}

void code_of_run_free (struct code_of_run *r)
{
    code_files_free (&r->files);
    code_archive_free (&r->archive);
    free (r->provenance);
}

int code_preview (const struct experiment *e, const char *experiments)
{
    struct code_files files;
    int rv = select_files (e, experiments, &files);
    size_t n;

    if (rv) {
        code_files_free (&files);
        return rv;
    }
    n = files.n - files.nlinks - files.nfolders;
    if (has_frozen_files (&files))
        printf ("code: %zu file%s of %s, %.1f KiB, would be frozen%s; %zu other%s stay%s there\n",
                n, n == 1 ? "" : "s", files.root, (double)files.bytes / 1024,
                files.is_text  ? " (only text: there is too much)"
                : files.is_git ? " (as git lists them)"
                               : "",
                files.nlinks, files.nlinks == 1 ? "" : "s", files.nlinks == 1 ? "s" : "");
    else
        printf ("code: not frozen: %s\n", *files.why ? files.why
                                          : e->code->freeze && !getenv ("DL_FREEZE")
                                              ? "the entrypoint names no file of the folder"
                                              : "code.freeze or DL_FREEZE disables it, so the "
                                                "trials share the files that they write there");
    warn_absolute (&files);
    warn_shared (e, &files);
    code_files_free (&files);
    return EXIT_OK;
}

/* ---- an existing experiment ---- */

/* Choose a place that only this user can write to. */
static int base_path (const struct sweep *s, char *buf, size_t size, struct slurmdl_error *err)
{
    char folder[PATH_MAX];

    if (trust_is_private (s))
        snprintf (folder, sizeof (folder), "%s", s->dir);
    else if (record_folder (s, folder, sizeof (folder), err) < 0)
        return -1;
    return snprintf (buf, size, s->is_mended ? "%s/code-%.12s" : "%s/code", folder, s->code)
                   < (int)size
               ? 0
               : -1;
}

static int scratch_path (struct scratch *own, char *buf, size_t size, struct slurmdl_error *err)
{
    if (scratch_make (own, SCRATCH_ANY, err) < 0)
        return -1;
    return snprintf (buf, size, "%s/" SCRATCH_CODE, own->path) < (int)size ? 0 : -1;
}

/* Make sure that the copy exists, and set 'dir' to the directory in it that corresponds
 * to the experiment file's.
 */
static int find_copy (const struct sweep *s, struct scratch *own, char *dir, size_t size)
{
    struct slurmdl_error err = { "" };
    char base[PATH_MAX];
    const struct code_copy copy = { base, s->root, s->exp->dir };

    if (s->exp->code->local ? scratch_path (own, base, sizeof (base), &err) < 0
                            : base_path (s, base, sizeof (base), &err) < 0)
        return fail (&err);
    if (code_copy_path (&copy, dir, size) < 0 && errno == ENAMETOOLONG) {
        complain ("%s: the path of its copy in %s is too long", s->exp->dir, base);
        return EXIT_IO;
    }
    if (code_copy_path (&copy, dir, size) < 0) {
        complain ("%s: the log's first entry names a folder of the code that "
                  "is not the experiment's",
                  s->dir);
        return EXIT_DAMAGED;
    }
    return store_unpack (s->dir, s->code, &copy, &err) < 0 ? fail (&err) : EXIT_OK;
}

int code_prepare (const struct sweep *s)
{
    char dir[PATH_MAX];

    return s->code && !s->exp->code->local ? find_copy (s, NULL, dir, sizeof (dir)) : EXIT_OK;
}

int code_enter (struct sweep *s, struct scratch *own)
{
    char dir[PATH_MAX];
    int rv;

    if (!s->code)
        return EXIT_OK;
    if ((rv = find_copy (s, own, dir, sizeof (dir))))
        return rv;
    free (s->exp->file_dir);
    s->exp->file_dir = s->exp->dir;
    s->exp->dir = xstrdup (dir);
    return EXIT_OK;
}

int code_now (const struct sweep *s, struct code_archive *a, struct slurmdl_error *err)
{
    struct code_files files;
    char folder[PATH_MAX];
    int rv;

    *a = (struct code_archive){ .data = NULL };
    snprintf (folder, sizeof (folder), "%.*s", (int)(strrchr (s->dir, '/') - s->dir), s->dir);
    rv = code_select (s->exp, folder, &files, err);
    if (rv == CODE_FROZEN)
        rv = code_archive_pack (&files, a, err);
    code_files_free (&files);
    return rv < 0 ? -1 : 0;
}

/* ---- code that has changed ---- */

/* Other files are ignored, because the directory also collects logs and results. */
static bool path_is_program (const char *path)
{
    static const char *const ends[] = { ".py",  ".pyx", ".sh",  ".bash", ".R",  ".r",  ".jl",
                                        ".pl",  ".lua", ".m",   ".c",    ".h",  ".cc", ".cpp",
                                        ".hpp", ".cu",  ".cuh", ".rs",   ".go", NULL };
    const char *end = strrchr (path, '.');

    return end && strings_contain (ends, end);
}

static void add_program (const char *path, const void *text, size_t size, void *o)
{
    char digest[DIGEST_SIZE];

    if (!path_is_program (path))
        return;
    digest_of (digest, text, size);
    json_object_set_new (o, path, json_string (digest));
}

static bool has_other_programs (const struct sweep *s, const struct code_archive *now)
{
    struct code_archive old = { .data = NULL };
    json_t *a = json_object ();
    json_t *b = json_object ();
    bool differs = store_get (s->dir, s->code, &old, NULL) == 0
                   && code_archive_each (old.data, old.size, add_program, a, NULL) == 0
                   && code_archive_each (now->data, now->size, add_program, b, NULL) == 0
                   && !json_equal (a, b);

    code_archive_free (&old);
    json_decref (a);
    json_decref (b);
    return differs;
}

/* Users who edit a script and resume expect the trials to run the new one. */
static void warn_of_changed_code (const struct sweep *s)
{
    complain ("%s: the code has changed since it was frozen; the trials keep running the old code, "
              "because it has results: 'dl diff %s %s' shows what has changed, 'dl run' creates an "
              "experiment with the new code",
              s->dir, s->word, s->exp->dir);
}

int code_mend (const struct sweep *s, char digest[DIGEST_SIZE])
{
    struct slurmdl_error err = { "" };
    struct code_archive a;
    bool changed;
    mode_t mask;
    int rv;

    *digest = '\0';
    if (!s->code)
        return EXIT_OK;
    rv = code_now (s, &a, &err);
    changed = rv == 0 && a.data && strcmp (a.digest, s->code);
    if (changed && s->nresults > 0) {
        if (has_other_programs (s, &a))
            warn_of_changed_code (s);
    } else if (changed) {
        mask = store_umask (s->dir);
        rv = store_put (s->dir, &a, &err);
        umask (mask);
        snprintf (digest, DIGEST_SIZE, "%s", rv == 0 ? a.digest : "");
    }
    code_archive_free (&a);
    return rv < 0 && s->nresults == 0 ? fail (&err) : EXIT_OK;
}
