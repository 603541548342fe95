/* SPDX-License-Identifier: Apache-2.0 */
/* dl best: print the best trial and everything needed to use or repeat it. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/code/code.h"
#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/software_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/experiment_json.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/take_file.h"
#include "launcher/trainer/trainer.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"

/* ---- a trial's command ---- */

static void put_word (FILE *f, const char *text)
{
    char *word = shell_word (text);

    fputs (word, f);
    free (word);
}

static void put_variable (FILE *f, const char *name, const char *value)
{
    fprintf (f, " %s=", name);
    put_word (f, value);
}

static void put_number_field (FILE *f, const char *name, long long value)
{
    char text[32];

    snprintf (text, sizeof (text), "%lld", value);
    put_variable (f, name, text);
}

/* The elements are of the form NAME=VALUE. */
static void put_variables (FILE *f, char *const *list)
{
    for (; list && *list; list++) {
        size_t n = strcspn (*list, "=");
        fprintf (f, " %.*s=", (int)n, *list);
        put_word (f, (*list)[n] ? *list + n + 1 : "");
    }
}

/* A trainer may read the point from DL_HPARAMS instead.  Take the file of the last
 * attempt, because that one ran with the trial's current point.
 */
static void put_hparams_file (FILE *f, const struct sweep *s, long trial)
{
    char path[PATH_MAX];

    for (long a = sweep_trial (s, trial)->over; a > 0; a--) {
        snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/hparams.json", s->dir, trial, a);
        if (access (path, F_OK) == 0) {
            put_variable (f, "DL_HPARAMS", path);
            return;
        }
    }
}

static void put_environment (FILE *f, const struct sweep *s, long trial, int64_t length)
{
    const struct experiment *e = s->exp;
    const json_t *hparams = trial_hparams (s, sweep_trial (s, trial));
    char name[256];

    put_number_field (f, "DL_LENGTH", length);
    put_number_field (f, "DL_SEED", searcher_trial_seed (e->search->config.seed, trial));
    if (e->search->config.repeats > 1)
        put_number_field (f, "DL_REPEAT", trial_repeat (s, trial));
    for (size_t i = 0; i < e->space->nhparams; i++) {
        char *text = hparams_text (hparams, e->space->hparams[i].path);
        hparams_variable (name, sizeof (name), e->space->hparams[i].path);
        if (text)
            put_variable (f, name, text);
        free (text);
    }
    put_hparams_file (f, s, trial);
    put_variables (f, e->variables);
}

/* `dl within` loads modules and starts the container. */
static void put_software (FILE *f, const struct sweep *s)
{
    const struct software *with = s->exp->software;
    char *folders[] = { s->dir, NULL };
    char *text;

    if (!with->image && !with->modules && !with->conda && !with->venv)
        return;
    text = software_text (with, folders, true);
    put_variable (f, "DL_SOFTWARE", text);
    fputs (" dl within --", f);
    free (text);
}

/* For {resume_dir}: the command trains from scratch, so leave out groups that use a
 * file.
 */
static char *no_files (void *arg, const char *file)
{
    (void)arg;
    (void)file;
    return NULL;
}

static int put_argument (void *f, char *word)
{
    fputc (' ', f);
    put_word (f, word);
    free (word);
    return 0;
}

static void put_command (FILE *f, const struct sweep *s, long trial, int64_t length)
{
    const struct experiment *e = s->exp;
    json_t *builtins =
        json_pack ("{s:I, s:I, s:I, s:I, s:s, s:s}", "length", (json_int_t)length, "trial",
                   (json_int_t)trial, "repeat", (json_int_t)trial_repeat (s, trial), "seed",
                   (json_int_t)searcher_trial_seed (e->search->config.seed, trial), "attempt_dir",
                   ".", "trial_dir", ".");
    const struct command_values v = { e, trial_hparams (s, sweep_trial (s, trial)), builtins,
                                      no_files, NULL };
    char *text;

    if (e->entrypoint && (text = hparams_expand (e->entrypoint, &v, true))) {
        fputs (" sh -c ", f);
        put_word (f, text);
        free (text);
    }
    for (char **a = e->entrypoint ? NULL : e->argv; a && *a; a++)
        hparams_arguments (*a, &v, put_argument, f);
    json_decref (builtins);
}

/* Return "cd DIR && env DL_SEED=1 ... COMMAND" for a shell, with all variables that the
 * trainer would have.  The caller frees it.
 */
static char *trial_command (const struct sweep *s, long trial, int64_t length)
{
    char *text;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    fputs ("cd ", f);
    put_word (f, s->exp->dir ? s->exp->dir : ".");
    fputs (" && env", f);
    put_environment (f, s, trial, length);
    put_software (f, s);
    put_command (f, s, trial, length);
    xclose_memstream (f);
    return text;
}

struct best {
    const struct sweep *s;
    long trial;
    const struct sweep_trial *t;
    struct sweep_result result; /* of the trial's point */
    char checkpoint[PATH_MAX];  /* "" if there is none */
    char *command;
    bool trust; /* treat copied data as the user's own */
};

static bool best_is_repeated (const struct best *b)
{
    return b->s->exp->search->config.repeats > 1;
}

static struct sweep_result best_metric (const struct best *b, size_t i)
{
    return point_result (b->s, trial_point (b->s, b->trial), i);
}

/* ---- text ---- */

static void print_params (const struct best *b)
{
    const struct experiment *e = b->s->exp;
    int width = 10;

    for (size_t i = 0; i < e->space->nhparams; i++)
        if ((int)strlen (e->space->hparams[i].path) > width)
            width = (int)strlen (e->space->hparams[i].path);
    width = width > 40 ? 40 : width;
    for (size_t i = 0; i < e->space->nhparams; i++) {
        char *text = hparams_text (trial_hparams (b->s, b->t), e->space->hparams[i].path);
        if (text)
            printf ("  %-*s  %s\n", width, e->space->hparams[i].path, text);
        free (text);
    }
}

/* Find files that the program saved itself, such as last.pt: those of the attempt with
 * the best value, in {attempt_dir}, or else those of the trial, in {trial_dir}.
 */
static bool own_files (const struct best *b, char *dir, size_t size)
{
    long attempt = trial_milestone (b->t, b->result.length);
    char **list = NULL;
    bool has;

    if (snprintf (dir, size, "%s/trials/%04ld/a.%ld", b->s->dir, b->trial, attempt) < (int)size
        && folder_has_files (dir, NULL))
        return true;
    *strrchr (dir, '/') = '\0';
    list_trial_files (dir, &list);
    has = list != NULL;
    strings_free (list);
    return has;
}

/* A script that saves at its own steps may have a checkpoint, but not of the best step.
 */
static void print_no_checkpoint (const struct best *b)
{
    char dir[PATH_MAX];
    int64_t step;
    char *other;

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", b->s->dir, b->trial);
    if ((other = slurmdl_checkpoint_find (dir, INT64_MAX, 0, &step)))
        printf ("checkpoint: none was kept at the step of this value; the newest is %s\n", other);
    else if (own_files (b, dir, sizeof (dir)))
        printf ("checkpoint: the files of its program are in %s\n", dir);
    else
        puts ("checkpoint: none is kept");
    free (other);
}

static void print_further (const struct best *b, size_t i)
{
    struct sweep_result r = best_metric (b, i);

    printf ("     %s %.6g", sweep_metric (b->s, i), r.value);
    if (r.n > 1)
        printf (" (deviation %.2g)", r.deviation);
    putchar ('\n');
}

static void print_best_head (const struct best *b)
{
    const struct sweep *s = b->s;
    char text[512];

    sweep_best_text (s, sweep_folder_name (s), text, sizeof (text));
    printf ("best %s\n", text);
    for (size_t i = 1; i < sweep_metrics (s); i++)
        print_further (b, i);
    print_params (b);
    if (sweep_seed_unused (s))
        puts (sweep_seed_unused (s));
    if (best_is_repeated (b))
        printf ("trial %ld is nearest to the mean: %s %.6g\n", b->trial, s->exp->metric->name,
                trial_result (s, b->trial, 0).value);
    if (*b->checkpoint)
        printf ("checkpoint: %s\n", b->checkpoint);
    else
        print_no_checkpoint (b);
    /* a Python function is passed as its source, which has newlines */
    if (strchr (b->command, '\n'))
        printf ("to train it again: dl reproduce %s %ld\n", s->word, b->trial);
    else if (!s->code || access (s->exp->dir, F_OK) == 0)
        printf ("to train it again: %s\n", b->command);
    if (s->code)
        printf ("to do so with the original code, and compare: dl reproduce %s %ld\n", s->word,
                b->trial);
    if (*b->checkpoint)
        printf ("to train further: dl fork %s %ld\n", s->word, b->trial);
}

/* ---- JSON ---- */

static json_t *best_metrics_json (const struct best *b, bool deviations)
{
    json_t *o = json_object ();

    for (size_t i = 0; i < sweep_metrics (b->s); i++) {
        struct sweep_result r = best_metric (b, i);
        json_object_set_new (o, sweep_metric (b->s, i),
                             finite_to_json (deviations ? r.deviation : r.value));
    }
    return o;
}

static json_t *best_json (const struct best *b)
{
    json_t *metrics = best_metrics_json (b, false), *o;

    o = json_pack ("{s:o, s:o, s:I, s:I, s:I, s:o, s:O, s:o, s:o}", "experiment",
                   text_json (sweep_folder_name (b->s)), "id", text_json (b->s->id), "trial",
                   (json_int_t)b->trial, "length", (json_int_t)b->result.length, "seed",
                   (json_int_t)searcher_trial_seed (b->s->exp->search->config.seed, b->trial),
                   "metrics", metrics, "hyperparameters", (json_t *)trial_hparams (b->s, b->t),
                   "checkpoint", *b->checkpoint ? text_json (b->checkpoint) : json_null (),
                   "command", text_json (b->command));
    if (best_is_repeated (b)) {
        json_object_set_new (o, "point", json_integer (trial_point (b->s, b->trial)));
        json_object_set_new (o, "n", json_integer (b->result.n));
        json_object_set_new (o, "deviations", best_metrics_json (b, true));
    }
    return o;
}

/* ---- export ---- */

struct best_folder {
    int fd;
    const char *path; /* as the user wrote it */
};

/* Copy one file and add it to the manifest.  If it is a checkpoint, 'path' is its path,
 * so that the copy can record who owns the data.
 */
static int copy_best_file (const struct best_folder *to, const char *name, int from,
                           const char *path, bool trust, json_t *files, struct slurmdl_error *err)
{
    char digest[DIGEST_SIZE];
    int64_t bytes;
    int fd = openat (to->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int rv = fd < 0 ? -1 : digest_copy (from, fd, digest, &bytes);

    if (rv == 0 && path && (rv = file_keep_owner (from, fd, path, trust)) >= 0
        && lseek (fd, 0, SEEK_SET) == 0)
        rv = digest_copy (fd, -1, digest, &bytes);
    if (rv == 0)
        rv = fsync (fd);
    if (fd >= 0 && close (fd) < 0)
        rv = -1;
    if (rv < 0)
        return errorf (err, "%s/%s: cannot write: %s", to->path, name, strerror (errno));
    json_object_set_new (files, name,
                         json_pack ("{s:I, s:s}", "bytes", (json_int_t)bytes, "sha256", digest));
    return 0;
}

static int put_text_file (const struct best_folder *to, const char *name, const char *text,
                          json_t *files, struct slurmdl_error *err)
{
    FILE *f = tmpfile ();
    int rv = -1;

    if (!f)
        return errorf (err, "%s/%s: cannot write: %s", to->path, name, strerror (errno));
    if (fputs (text, f) >= 0 && fflush (f) == 0) {
        rewind (f);
        rv = copy_best_file (to, name, fileno (f), NULL, true, files, err);
    } else
        errorf (err, "%s/%s: cannot write: %s", to->path, name, strerror (errno));
    fclose (f);
    return rv;
}

static int put_json_file (const struct best_folder *to, const char *name, const json_t *o,
                          json_t *files, struct slurmdl_error *err)
{
    char *text = json_string_of (o, JSON_INDENT (2) | JSON_SORT_KEYS);
    char *line = xasprintf ("%s\n", text);
    int rv = put_text_file (to, name, line, files, err);

    free (text);
    free (line);
    return rv;
}

static int put_checkpoint (const struct best *b, const struct best_folder *to, json_t *files,
                           struct slurmdl_error *err)
{
    int64_t step;
    int from, rv;

    if (!*b->checkpoint)
        return 0;
    if (slurmdl_checkpoint_verify (b->checkpoint, &step, err) < 0)
        return -1;
    if ((from = inside_open (b->checkpoint, O_RDONLY, 0, NULL)) < 0)
        return errorf (err, "%s: cannot open: %s", b->checkpoint, inside_error (errno));
    rv = copy_best_file (to, "checkpoint.h5", from, b->checkpoint, b->trust, files, err);
    close (from);
    return rv;
}

/* Write the manifest last, so that a directory with a manifest is complete. */
static int fill_best_folder (const struct best *b, const struct best_folder *to,
                             struct slurmdl_error *err)
{
    json_t *files = json_object (), *o = best_json (b), *none = json_object ();
    int rv = -1;

    if (put_checkpoint (b, to, files, err) == 0
        && put_json_file (to, "params.json", trial_hparams (b->s, b->t), files, err) == 0) {
        json_object_set (o, "files", files);
        rv = put_json_file (to, "manifest.json", o, none, err);
    }
    json_decref (files);
    json_decref (none);
    json_decref (o);
    return rv;
}

static void remove_best_folder (int dir, const char *path)
{
    static const char *const names[] = { "checkpoint.h5", "params.json", "manifest.json" };

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        unlinkat (dir, names[i], 0);
    rmdir (path);
}

static int export_best (const struct best *b, const char *path)
{
    struct slurmdl_error err = { "" };
    int dir, rv;

    if (mkdir (path, 0777) < 0) {
        int e = errno;
        complain (e == EEXIST ? "--export: %s already exists: name a new folder"
                              : "--export: %s: %s",
                  path, strerror (e));
        return e == EEXIST ? EXIT_USAGE : error_status (e);
    }
    if ((dir = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
        complain ("--export: %s: %s", path, strerror (errno));
        return EXIT_IO;
    }
    rv = fill_best_folder (b, &(struct best_folder){ dir, path }, &err);
    if (rv < 0) {
        rv = fail (&err);
        remove_best_folder (dir, path);
    } else
        fsync (dir);
    close (dir);
    return rv;
}

/* ---- the command ---- */

static int show_best (const struct best *b, const struct best_options *opt)
{
    json_t *o;
    int rv = opt->export_dir ? export_best (b, opt->export_dir) : EXIT_OK;

    if (rv != EXIT_OK)
        return rv;
    if (opt->json) {
        o = best_json (b);
        json_put (o, stdout, JSON_INDENT (2) | JSON_SORT_KEYS);
        putchar ('\n');
        json_decref (o);
    } else {
        print_best_head (b);
        if (opt->export_dir)
            printf ("%s: %sparams.json, manifest.json\n", opt->export_dir,
                    *b->checkpoint ? "checkpoint.h5, " : "");
    }
    return EXIT_OK;
}

int cmd_best (const struct command_line *line)
{
    const struct best_options *opt = line->options;
    struct best b = { 0 };
    struct sweep *s;
    int rv = open_experiment (line, line->args[0], &s);

    if (rv)
        return rv;
    b.s = s;
    b.trust = opt->trust;
    b.trial = sweep_best (s);
    if (!(b.t = sweep_trial (s, b.trial))) {
        complain ("%s: no trial has a finite value of %s yet", sweep_folder_name (s),
                  sweep_metric (s, 0));
        rv = EXIT_NOT_FOUND;
    } else {
        b.result = point_result (s, trial_point (s, b.trial), 0);
        if (best_checkpoint (s, b.trial, b.checkpoint, sizeof (b.checkpoint)) < 0)
            *b.checkpoint = '\0';
        b.command = trial_command (s, b.trial, b.result.length);
        rv = show_best (&b, opt);
    }
    free (b.command);
    sweep_close (s);
    return rv;
}
