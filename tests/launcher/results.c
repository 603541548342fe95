/* SPDX-License-Identifier: Apache-2.0 */
/* results.h5: check its contents, and what a new file reuses from the old one. */
#include "launcher/sweep/columns.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/results_file.h"
#include "launcher/trainer/trainer.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/h5.h"
#include "tests/folder.h"
#include "tests/launcher/made.h"

static const char conf[] =
    "name = \"t\"; entrypoint = \"true\";\n"
    "searcher = { name = \"random\"; metric = (\"loss\", \"val/a\", \"val_a\");"
    " max_trials = 9; max_length = 9; };\n"
    "hyperparameters = {\n"
    "    layers = { type = \"int\"; minval = 1; maxval = 3; };\n"
    "    kind = { type = \"categorical\"; vals = (\"a\", \"b\"); };\n"
    "    mixed = { type = \"categorical\"; vals = (true, \"x\", 3); };\n"
    "    size = { type = \"categorical\"; vals = (16, 32); };\n"
    "    rate = { type = \"categorical\"; vals = (1, 0.5); };\n"
    "    width = { type = \"int\"; minval = 1; maxval = 4;\n"
    "              when = { kind = \"b\"; }; };\n"
    "    trial = 7;\n"
    "    opt = { flag = true; name = \"s\"; };\n"
    "};\n";

static struct sweep *make (long n)
{
    struct sweep *s = made_sweep (dir, conf, n);

    assert_non_null (s);
    for (long i = 0; i < n; i++)
        assert_non_null (s->trials[i].hparams =
                             json_pack ("{s:i, s:s, s:b, s:i, s:f, s:i, s:{s:b, s:s}}", "layers", 2,
                                        "kind", "a", "mixed", 1, "size", 16, "rate", 0.5, "trial",
                                        7, "opt", "flag", 1, "name", "s"));
    return s;
}

static void log_rows (const struct sweep *s, long n, long k, const char *name, int from, int to)
{
    struct slurmdl_metrics *m = slurmdl_metrics_create (made_attempt (s, n, k), NULL);

    assert_non_null (m);
    for (int step = from; step <= to; step++)
        assert_int_equal (slurmdl_metrics_log (m, name, step, step * 0.5), 0);
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
}

/* ---- columns ---- */

/* clang-format off */
static const struct {
    const char *name;
    enum column_type type;
    bool hparam;
} wanted[] = {
    { "trial", COLUMN_INT, false },      { "state", COLUMN_TEXT, false },
    { "length", COLUMN_INT, false },     { "metric", COLUMN_REAL, false },
    { "metric.loss", COLUMN_REAL, false }, { "metric.val_a", COLUMN_REAL, false },
    { "metric.val_a_", COLUMN_REAL, false }, { "best", COLUMN_REAL, false },
    { "best_length", COLUMN_INT, false }, { "seconds", COLUMN_REAL, false },
    { "attempts", COLUMN_INT, false },   { "fails", COLUMN_INT, false },
    { "begin_time", COLUMN_REAL, false }, { "end_time", COLUMN_REAL, false },
    { "host", COLUMN_TEXT, false },      { "gpus", COLUMN_TEXT, false },
    { "why", COLUMN_TEXT, false },       { "kind", COLUMN_TEXT, true },
    { "layers", COLUMN_INT, true },      { "mixed", COLUMN_TEXT, true },
    { "opt.flag", COLUMN_TEXT, true },   { "opt.name", COLUMN_TEXT, true },
    { "rate", COLUMN_REAL, true },       { "size", COLUMN_INT, true },
    { "trial", COLUMN_INT, true },       { "width", COLUMN_REAL, true },
};
/* clang-format on */

static const struct result_column *find (const struct columns *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].hparam && !strcmp (c->list[i].name, name))
            return &c->list[i];
    return NULL;
}

FOLDER_CASE (columns)
{
    struct sweep *s = make (1);
    struct columns c;

    columns_create (&c, s);
    assert_int_equal (c.n, COUNT (wanted));
    for (size_t i = 0; i < c.n; i++) {
        assert_string_equal (c.list[i].name, wanted[i].name);
        assert_int_equal (c.list[i].type, wanted[i].type);
        assert_int_equal (c.list[i].hparam, wanted[i].hparam);
    }
    assert_string_equal (column_cell (find (&c, "mixed"), s, 1).text, "true");
    assert_string_equal (column_cell (find (&c, "opt.flag"), s, 1).text, "true");
    assert_string_equal (column_cell (find (&c, "kind"), s, 1).text, "a");
    assert_int_equal (column_cell (find (&c, "trial"), s, 1).integer, 7);
    assert_true (isnan (column_cell (find (&c, "width"), s, 1).real));
    json_object_set_new (s->trials[0].hparams, "width", json_integer (3));
    assert_true (column_cell (find (&c, "width"), s, 1).real == 3);
    columns_destroy (&c);
    sweep_close (s);
}

/* ---- rows ---- */

static void check_rows (const struct rows *r, const char *text)
{
    char got[1024] = "";
    size_t at = 0;

    for (size_t i = 0; i < r->n; i++)
        at += (size_t)snprintf (got + at, sizeof (got) - at, "%lld.%u:%s@%lld ",
                                (long long)r->list[i].trial, r->list[i].attempt,
                                r->names[r->list[i].name], (long long)r->list[i].step);
    assert_string_equal (got, text);
}

/* Attempt 1 was lost at step 4, attempt 2 resumed from step 2 and has a result, attempt 3 is
 * running.
 */
static struct sweep *make_lost (void)
{
    struct sweep *s = make (2);

    log_rows (s, 1, 1, "loss", 1, 4);
    log_rows (s, 1, 1, "once", 0, 0);
    log_rows (s, 1, 2, "once", 0, 0);
    log_rows (s, 1, 2, "loss", 3, 5);
    log_rows (s, 1, 3, "loss", 6, 6);
    made_result (s, 1, 2, 5, 2.5);
    s->trials[0].state = TRIAL_OPEN;
    log_rows (s, 2, 1, "loss", 1, 1);
    made_result (s, 2, 1, 1, 0.5);
    return s;
}

#define LOST "1.1:loss@1 1.1:loss@2 1.2:once@0 1.2:loss@3 1.2:loss@4 1.2:loss@5 "

FOLDER_CASE (repeated_steps_count_once)
{
    struct sweep *s = make_lost ();
    struct rows r;

    rows_read (&r, s, NULL);
    check_rows (&r, LOST "2.1:loss@1 ");
    assert_int_equal (r.covered[0], 2);
    rows_destroy (&r);
    sweep_close (s);
}

/* Attempt 2 resumed from step 2 and ended before it logged a row. */
FOLDER_CASE (rows_beyond_a_restore_are_dropped)
{
    struct sweep *s = make (1);
    struct slurmdl *run;
    struct rows r;

    log_rows (s, 1, 1, "loss", 1, 4);
    setenv ("DL_ATTEMPT_DIR", made_attempt (s, 1, 2), 1);
    run = slurmdl_open (NULL, NULL);
    unsetenv ("DL_ATTEMPT_DIR");
    assert_non_null (run);
    slurmdl_event (run, "resumed", "{\"step\": 2, \"row\": 1}");
    assert_int_equal (slurmdl_close (run), 0);
    made_result (s, 1, 2, 2, 1);
    rows_read (&r, s, NULL);
    check_rows (&r, "1.1:loss@1 1.1:loss@2 ");
    rows_destroy (&r);
    sweep_close (s);
}

/* Known rows are kept although their files are gone; new rows are added. */
FOLDER_CASE (old_rows_are_kept)
{
    struct sweep *s = make_lost ();
    struct rows old, r;
    char path[300];

    rows_read (&old, s, NULL);
    for (long k = 1; k <= 2; k++) {
        snprintf (path, sizeof (path), "rm %s/metrics*", made_attempt (s, 1, k));
        assert_int_equal (system (path), 0);
    }
    rows_read (&r, s, &old);
    check_rows (&r, LOST "2.1:loss@1 ");
    rows_destroy (&old);
    old = r;
    made_result (s, 1, 3, 6, 3);
    rows_read (&r, s, &old);
    check_rows (&r, LOST "1.3:loss@6 2.1:loss@1 ");
    rows_destroy (&r);
    rows_destroy (&old);
    sweep_close (s);
}

FOLDER_CASE (unreadable_metrics_are_retried)
{
    struct sweep *s = make_lost ();
    struct rows old, r;
    char path[300], aside[310];

    snprintf (path, sizeof (path), "%s/metrics.h5", made_attempt (s, 1, 2));
    snprintf (aside, sizeof (aside), "%s.aside", path);
    assert_int_equal (rename (path, aside), 0);
    assert_int_equal (symlink ("/dev/null", path), 0);
    rows_read (&old, s, NULL);
    assert_int_equal (old.covered[0], 0);
    assert_int_equal (rename (aside, path), 0);
    rows_read (&r, s, &old);
    check_rows (&r, LOST "2.1:loss@1 ");
    rows_destroy (&r);
    rows_destroy (&old);
    sweep_close (s);
}

/* ---- the file ---- */

static hsize_t length_of (const char *path, const char *name)
{
    hid_t access = h5_access ();
    hid_t file = H5Fopen (path, H5F_ACC_RDONLY, access);
    hid_t d = H5Dopen2 (file, name, H5P_DEFAULT);
    hid_t space = H5Dget_space (d);
    hsize_t n = 0;

    assert_int_equal (H5Sget_simple_extent_dims (space, &n, NULL), 1);
    H5Sclose (space);
    H5Dclose (d);
    H5Fclose (file);
    H5Pclose (access);
    return n;
}

static void write_file (const struct sweep *s, const char *path)
{
    struct slurmdl_error err = { "" };

    if (results_write (s, path, &err) < 0)
        fail_msg ("%s", err.text);
}

FOLDER_CASE (an_old_file_is_used_if_it_is_complete)
{
    struct sweep *s = make_lost ();
    char path[128], cmd[300];
    int fd;

    snprintf (path, sizeof (path), "%s", in_dir ("results.h5"));
    write_file (s, path);
    assert_int_equal (length_of (path, "metrics"), 7);
    assert_int_equal (length_of (path, "trials/state"), 2);
    assert_int_equal (length_of (path, "hyperparameters/opt.flag"), 2);
    snprintf (cmd, sizeof (cmd), "rm -r %s/trials", dir);
    assert_int_equal (system (cmd), 0);
    write_file (s, path);
    assert_int_equal (length_of (path, "metrics"), 7);
    /* damage the file */
    assert_true ((fd = open (path, O_RDWR)) >= 0);
    assert_int_equal (pwrite (fd, "\377", 1, 2048), 1);
    close (fd);
    write_file (s, path);
    assert_int_equal (length_of (path, "metrics"), 0);
    sweep_close (s);
}

FOLDER_CASE (another_experiment_is_not_used)
{
    struct sweep *s = make_lost ();
    char path[128], cmd[300];

    snprintf (path, sizeof (path), "%s", in_dir ("results.h5"));
    write_file (s, path);
    snprintf (cmd, sizeof (cmd), "rm -r %s/trials", dir);
    assert_int_equal (system (cmd), 0);
    s->created++;
    write_file (s, path);
    assert_int_equal (length_of (path, "metrics"), 0);
    sweep_close (s);
}

FOLDER_CASE (no_trials_yet)
{
    struct sweep *s = make (0);
    char path[128];

    snprintf (path, sizeof (path), "%s", in_dir ("results.h5"));
    write_file (s, path);
    write_file (s, path);
    assert_int_equal (length_of (path, "trials/trial"), 0);
    sweep_close (s);
}

FOLDER_CASE (a_missing_folder)
{
    struct slurmdl_error err = { "" };
    struct sweep *s = make (1);

    assert_int_equal (results_write (s, in_dir ("none/results.h5"), &err), -1);
    assert_non_null (strstr (err.text, "none/results.h5"));
    sweep_close (s);
}

/* A metrics file without rows does not count as a logged metric. */
FOLDER_CASE (an_empty_file_has_logged_nothing)
{
    struct sweep *s = make (1);
    const char *attempt = made_attempt (s, 1, 1);
    struct slurmdl_metrics *m = slurmdl_metrics_create (attempt, NULL);

    assert_non_null (m);
    assert_int_equal (slurmdl_metrics_flush (m, NULL), 0);
    assert_false (attempt_has_logged (attempt));
    assert_int_equal (slurmdl_metrics_log (m, "other", 1, 0.5), 0);
    assert_int_equal (slurmdl_metrics_flush (m, NULL), 0);
    assert_true (attempt_has_logged (attempt));
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
    sweep_close (s);
}

RUN_CASES ()
