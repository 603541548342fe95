/* SPDX-License-Identifier: Apache-2.0 */
/* Check which checkpoints a policy keeps, and which files dl gc deletes. */
#include "launcher/config/checkpoint_policy.h"
#include "launcher/worker/worker.h"
#include "runtime/slurmdl.h"
#include "tests/folder.h"
#include "tests/launcher/made.h"

/* ---- the example table in Determined's documentation; smaller is better ---- */

static const struct gc_checkpoint example[] = {
    { .trial = 1, .attempt = 1, .step = 1, .metric = NAN },
    { .trial = 1, .attempt = 1, .step = 2, .metric = NAN },
    { .trial = 1, .attempt = 1, .step = 3, .metric = 0.6 },
    { .trial = 1, .attempt = 1, .step = 4, .metric = 0.5 },
    { .trial = 1, .attempt = 1, .step = 5, .metric = 0.4 },
    { .trial = 2, .attempt = 1, .step = 6, .metric = NAN },
    { .trial = 2, .attempt = 1, .step = 7, .metric = 0.2 },
    { .trial = 2, .attempt = 1, .step = 8, .metric = 0.3 },
    { .trial = 2, .attempt = 1, .step = 9, .metric = NAN },
    { .trial = 2, .attempt = 1, .step = 10, .metric = NAN },
};
enum { NEXAMPLE = COUNT (example) };

static const struct {
    struct checkpoint_policy policy;
    const char *kept;
} conformance[] = {
    { { 0, 0, 0 }, "" },
    { { 2, 0, 0 }, "7 8 " },
    { { 5, 0, 0 }, "3 4 5 7 8 " },
    { { 6, 0, 0 }, "3 4 5 7 8 " },
    { { 1000000, 0, 0 }, "3 4 5 7 8 " },
    { { 0, 1, 0 }, "5 7 " },
    { { 0, 3, 0 }, "3 4 5 7 8 " },
    { { 0, 4, 0 }, "3 4 5 7 8 " },
    { { 0, 1000000, 0 }, "3 4 5 7 8 " },
    { { 0, 0, 1 }, "5 10 " },
    { { 0, 0, 3 }, "3 4 5 8 9 10 " },
    { { 2, 1, 0 }, "5 7 8 " },
    { { 2, 0, 1 }, "5 7 8 10 " },
    { { 0, 1, 1 }, "5 7 10 " },
    { { 2, 1, 1 }, "5 7 8 10 " },
};

/* Returns the steps that are kept, in list order. */
static const char *mark (const struct checkpoint_policy *policy, bool smaller,
                         struct gc_checkpoint *list, size_t n)
{
    static char text[256];
    size_t at = 0;

    gc_mark (policy, smaller, list, n);
    *text = '\0';
    for (size_t i = 0; i < n; i++)
        if (list[i].kept)
            at +=
                (size_t)snprintf (text + at, sizeof (text) - at, "%lld ", (long long)list[i].step);
    return text;
}

CASE (conforms)
{
    struct gc_checkpoint list[NEXAMPLE];

    for (size_t i = 0; i < COUNT (conformance); i++) {
        memcpy (list, example, sizeof (list));
        assert_string_equal (mark (&conformance[i].policy, true, list, NEXAMPLE),
                             conformance[i].kept);
    }
}

/* The result does not depend on the order of the list. */
CASE (any_order)
{
    struct gc_checkpoint list[NEXAMPLE];
    struct gc_checkpoint back[NEXAMPLE];

    for (size_t i = 0; i < COUNT (conformance); i++) {
        memcpy (list, example, sizeof (list));
        for (size_t k = 0; k < NEXAMPLE; k++)
            back[k] = example[NEXAMPLE - 1 - k];
        mark (&conformance[i].policy, true, list, NEXAMPLE);
        mark (&conformance[i].policy, true, back, NEXAMPLE);
        for (size_t k = 0; k < NEXAMPLE; k++)
            assert_int_equal (list[k].kept, back[NEXAMPLE - 1 - k].kept);
    }
}

CASE (larger_is_better)
{
    struct gc_checkpoint list[NEXAMPLE];

    memcpy (list, example, sizeof (list));
    assert_string_equal (mark (&(struct checkpoint_policy){ 2, 0, 0 }, false, list, NEXAMPLE),
                         "3 4 ");
    assert_string_equal (mark (&(struct checkpoint_policy){ 0, 1, 0 }, false, list, NEXAMPLE),
                         "3 8 ");
    assert_string_equal (mark (&(struct checkpoint_policy){ 1, 1, 1 }, false, list, NEXAMPLE),
                         "3 5 8 10 ");
}

CASE (no_numbers_count_as_no_validation)
{
    struct gc_checkpoint list[] = {
        { .trial = 1, .attempt = 1, .step = 1, .metric = -INFINITY },
        { .trial = 1, .attempt = 1, .step = 2, .metric = NAN },
        { .trial = 1, .attempt = 1, .step = 3, .metric = 9 },
        { .trial = 1, .attempt = 1, .step = 4, .metric = INFINITY },
    };

    assert_string_equal (mark (&(struct checkpoint_policy){ 0, 4, 0 }, true, list, 4), "3 ");
    assert_string_equal (mark (&(struct checkpoint_policy){ 4, 0, 0 }, false, list, 4), "3 ");
    assert_string_equal (mark (&(struct checkpoint_policy){ 0, 0, 2 }, true, list, 4), "3 4 ");
}

CASE (older_of_equal_ones)
{
    struct gc_checkpoint list[] = {
        { .trial = 1, .attempt = 1, .step = 30, .metric = 1 },
        { .trial = 1, .attempt = 1, .step = 20, .metric = 1 },
        { .trial = 2, .attempt = 1, .step = 21, .metric = 1 },
        { .trial = 3, .attempt = 1, .step = 20, .metric = 1 },
    };

    for (int smaller = 0; smaller < 2; smaller++) {
        mark (&(struct checkpoint_policy){ 0, 1, 0 }, smaller, list, 2);
        assert_false (list[0].kept);
        assert_true (list[1].kept);
        mark (&(struct checkpoint_policy){ 1, 0, 0 }, smaller, list, 4);
        assert_true (list[1].kept && !list[3].kept);
        mark (&(struct checkpoint_policy){ 2, 0, 0 }, smaller, list, 4);
        assert_true (list[3].kept && !list[2].kept);
    }
}

CASE (one_of_a_step)
{
    struct gc_checkpoint list[] = {
        { .trial = 1, .attempt = 1, .step = 5, .metric = 1 },
        { .trial = 1, .attempt = 2, .step = 5, .metric = 2 },
        { .trial = 1, .attempt = 3, .step = 5, .metric = 3 },
        { .trial = 1, .attempt = 3, .step = 4, .metric = 4 },
    };

    mark (&(struct checkpoint_policy){ 9, 9, 1 }, true, list, 4);
    assert_true (!list[0].kept && !list[1].kept && list[2].kept && list[3].kept);
    list[1].accepted = true;
    mark (&(struct checkpoint_policy){ 9, 9, 1 }, true, list, 4);
    assert_true (!list[0].kept && list[1].kept && !list[2].kept);
    list[1].bad = true;
    mark (&(struct checkpoint_policy){ 0, 0, 1 }, true, list, 4);
    assert_true (list[2].kept && !list[1].kept && !list[3].kept);
}

/* ---- files ---- */

#define CONF(best, trial_best, latest)                                                             \
    "name = \"t\"; entrypoint = \"true\";\n"                                                       \
    "searcher = { name = \"random\"; metric = \"loss\"; max_trials = 9;\n"                         \
    "             max_length = 100; };\n"                                                          \
    "checkpoint_policy = { save_experiment_best = " best "; save_trial_best = " trial_best         \
    "; save_trial_latest = " latest "; };\n"                                                       \
    "hyperparameters = { x = { type = \"float\"; minval = 0; maxval = 1; }; "                      \
    "};\n"

static struct slurmdl *maker;
static double weights[64];

static const char *path_of (const struct sweep *s, long trial, long attempt, int64_t step)
{
    static char path[320];

    snprintf (path, sizeof (path), "%s/ckpt", made_attempt (s, trial, attempt));
    mkdir (path, 0777);
    snprintf (path + strlen (path), sizeof (path) - strlen (path), "/%08lld.h5", (long long)step);
    return path;
}

static void put (const struct sweep *s, long trial, long attempt, int64_t step)
{
    struct slurmdl_error err = { "" };
    uint64_t n = 64;
    char from[256];

    if (!maker) {
        assert_non_null (maker = slurmdl_open (in_dir ("maker"), &err));
        assert_int_equal (slurmdl_protect (maker, "w", SLURMDL_F64, 1, &n, weights), 0);
    }
    assert_int_equal (slurmdl_save (maker, step, &err), 0);
    snprintf (from, sizeof (from), "%s/ckpt/%08lld.h5", slurmdl_dir (maker), (long long)step);
    assert_int_equal (rename (from, path_of (s, trial, attempt, step)), 0);
}

static void put_metric (const struct sweep *s, long trial, long attempt, int64_t step, double v)
{
    struct slurmdl_metrics *m = slurmdl_metrics_create (made_attempt (s, trial, attempt), NULL);

    assert_non_null (m);
    assert_int_equal (slurmdl_metrics_log (m, "loss", step, v), 0);
    assert_int_equal (slurmdl_metrics_log (m, "other", step, -v), 0);
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
}

static void spoil (const char *path)
{
    int fd = open (path, O_WRONLY);

    assert_true (fd >= 0);
    assert_int_equal (pwrite (fd, "?", 1, 4100), 1);
    close (fd);
}

static bool there (const struct sweep *s, long n, long k, int64_t step)
{
    return access (path_of (s, n, k, step), F_OK) == 0;
}

static size_t run (const struct sweep *s, bool dry)
{
    struct slurmdl_error err = { "" };
    struct gc_report r;
    size_t gone = 0;

    assert_int_equal (gc_run (s, dry, &r, &err), 0);
    for (size_t i = 0; i < r.n; i++)
        gone += r.files[i].outcome == GC_DELETED || r.files[i].outcome == GC_LEFTOVER;
    gc_report_free (&r);
    return gone;
}

/* Attempt 1 of trial 1 saved steps 1 to 3 and was lost; attempt 2 resumed from step 3.  Step 2 has
 * the best metric, step 3 the second best.
 */
static struct sweep *two_attempts (const char *conf)
{
    struct sweep *s = made_sweep (dir, conf, 1);

    assert_non_null (s);
    for (int64_t step = 1; step <= 3; step++)
        put (s, 1, 1, step);
    put_metric (s, 1, 1, 2, 0.1);
    put_metric (s, 1, 1, 3, 0.2);
    for (int64_t step = 4; step <= 6; step++)
        put (s, 1, 2, step);
    put_metric (s, 1, 2, 4, 0.3);
    put_metric (s, 1, 2, 5, 0.4);
    put_metric (s, 1, 2, 6, 0.5);
    made_result (s, 1, 2, 6, 0.5);
    return s;
}

static int close_all (void **state)
{
    slurmdl_close (maker);
    maker = NULL;
    return remove_dir (state);
}

CASE_WITH (best_and_latest_stay, make_dir, close_all)
{
    struct sweep *s = two_attempts (CONF ("0", "1", "1"));

    s->state = SWEEP_COMPLETED;
    assert_int_equal (run (s, true), 4);
    assert_true (there (s, 1, 1, 1)); /* a dry run deletes nothing */
    assert_int_equal (run (s, false), 4);
    assert_true (there (s, 1, 1, 2) && there (s, 1, 2, 6));
    assert_false (there (s, 1, 1, 1) || there (s, 1, 1, 3) || there (s, 1, 2, 4)
                  || there (s, 1, 2, 5));
    assert_int_equal (run (s, false), 0);
    sweep_close (s);
}

CASE_WITH (next_for_a_damaged_one, make_dir, close_all)
{
    struct sweep *s = two_attempts (CONF ("1", "0", "1"));

    s->state = SWEEP_COMPLETED;
    spoil (path_of (s, 1, 1, 2));
    spoil (path_of (s, 1, 2, 6));
    spoil (path_of (s, 1, 2, 5));
    assert_int_equal (run (s, false), 4);
    assert_true (there (s, 1, 1, 3) && there (s, 1, 2, 4));
    assert_false (there (s, 1, 1, 2) || there (s, 1, 2, 6));
    sweep_close (s);
}

CASE_WITH (nothing_goes_if_none_verifies, make_dir, close_all)
{
    struct sweep *s = two_attempts (CONF ("0", "1", "1"));

    s->state = SWEEP_COMPLETED;
    for (int64_t step = 1; step <= 6; step++)
        spoil (path_of (s, 1, step > 3 ? 2 : 1, step));
    assert_int_equal (run (s, false), 0);
    for (int64_t step = 1; step <= 6; step++)
        assert_true (there (s, 1, step > 3 ? 2 : 1, step));
    sweep_close (s);
}

CASE_WITH (nothing_goes_if_metrics_are_damaged, make_dir, close_all)
{
    struct sweep *s = two_attempts (CONF ("0", "1", "1"));
    char path[320];

    s->state = SWEEP_COMPLETED;
    snprintf (path, sizeof (path), "%s/metrics.h5", made_attempt (s, 1, 1));
    assert_int_equal (truncate (path, 100), 0);
    assert_int_equal (run (s, false), 0);
    sweep_close (s);
}

CASE_WITH (zero_keeps_what_is_gone_on_from, make_dir, close_all)
{
    struct sweep *s = two_attempts (CONF ("0", "0", "0"));
    char path[320];

    put (s, 1, 2, 8); /* for a longer segment */
    assert_int_equal (run (s, false), 5);
    assert_true (there (s, 1, 2, 6) && there (s, 1, 2, 8));
    assert_int_equal (unlink (path_of (s, 1, 2, 8)), 0);
    s->trials[0].state = TRIAL_OPEN;
    s->trials[0].target = 9;
    put (s, 1, 3, 7);
    assert_int_equal (run (s, true), 0); /* attempt 4 needs 7, the result needs 6 */
    spoil (path_of (s, 1, 3, 7));
    s->state = SWEEP_STOPPED;
    assert_int_equal (run (s, false), 1);
    assert_true (there (s, 1, 2, 6));
    s->state = SWEEP_COMPLETED;
    assert_int_equal (run (s, false), 1);
    snprintf (path, sizeof (path), "%s/ckpt", made_attempt (s, 1, 2));
    assert_int_equal (access (path, F_OK), -1);
    sweep_close (s);
}

/* Trial 2 starts from trial 1's checkpoint at length 4. */
CASE_WITH (another_trial_begins_there, make_dir, close_all)
{
    struct sweep *s = made_sweep (dir, CONF ("0", "0", "0"), 2);

    for (int64_t step = 3; step <= 8; step++)
        put (s, 1, 1, step);
    made_result (s, 1, 1, 4, 0.5);
    made_result (s, 1, 1, 8, 0.5);
    s->trials[1].from = 1;
    s->trials[1].from_length = 4;
    assert_int_equal (run (s, false), 4);
    assert_true (there (s, 1, 1, 4) && there (s, 1, 1, 8));
    made_result (s, 2, 1, 8, 0.4);
    assert_int_equal (run (s, false), 1);
    assert_true (there (s, 1, 1, 8));
    sweep_close (s);
}

CASE_WITH (failed_trials_keep_by_the_policy_only, make_dir, close_all)
{
    struct sweep *s = two_attempts (CONF ("0", "0", "0"));

    s->trials[0].state = TRIAL_FAILED;
    assert_int_equal (run (s, false), 6);
    sweep_close (s);
}

/* A checkpoint that is a directory cannot be unlinked. gc stops there, and reports the files after
 * it as kept.
 */
CASE_WITH (stops_at_what_cannot_be_removed, make_dir, close_all)
{
    struct sweep *s = two_attempts (CONF ("0", "0", "1"));
    struct slurmdl_error err = { "" };
    struct gc_report r;

    s->state = SWEEP_COMPLETED;
    assert_int_equal (unlink (path_of (s, 1, 1, 2)), 0);
    assert_int_equal (mkdir (path_of (s, 1, 1, 2), 0777), 0);
    assert_int_equal (gc_run (s, false, &r, &err), -1);
    assert_non_null (strstr (err.text, "00000002.h5: cannot remove"));
    assert_int_equal (r.n, 6);
    for (size_t i = 0; i < r.n; i++)
        assert_int_equal (r.files[i].outcome, i == 0 ? GC_DELETED : GC_KEPT);
    assert_true (!there (s, 1, 1, 1) && there (s, 1, 1, 3));
    gc_report_free (&r);
    sweep_close (s);
}

static const char hidden[] = ".0123456789abcdef0123456789abcdef";

static const char *hidden_path (const struct sweep *s, long trial)
{
    static char path[320];

    snprintf (path, sizeof (path), "%s/ckpt/%s", made_attempt (s, trial, 1), hidden);
    return path;
}

/* Make the file a symbolic link, as on a file system without hard links. */
static void make_link (const struct sweep *s, long trial, int64_t step)
{
    assert_int_equal (rename (path_of (s, trial, 1, step), hidden_path (s, trial)), 0);
    assert_int_equal (symlink (hidden, path_of (s, trial, 1, step)), 0);
}

/* An interrupted save (trial 1), and checkpoints that are symbolic links (2 and 3). */
CASE_WITH (hidden_files, make_dir, close_all)
{
    struct sweep *s = made_sweep (dir, CONF ("0", "0", "1"), 3);

    for (long n = 1; n <= 3; n++) {
        put (s, n, 1, 1);
        put (s, n, 1, 2);
    }
    assert_int_equal (close (open (hidden_path (s, 1), O_CREAT | O_WRONLY, 0666)), 0);
    make_link (s, 2, 1);
    make_link (s, 3, 2);
    made_result (s, 2, 1, 2, 0.5);
    made_result (s, 3, 1, 2, 0.5);
    assert_int_equal (run (s, false), 3); /* trial 1's attempt 1 still runs */
    assert_int_equal (access (hidden_path (s, 1), F_OK), 0);
    assert_int_equal (access (hidden_path (s, 2), F_OK), -1);
    made_result (s, 1, 1, 2, 0.5);
    assert_int_equal (run (s, false), 1);
    assert_int_equal (access (hidden_path (s, 1), F_OK), -1);
    for (long n = 1; n <= 3; n++)
        assert_true (there (s, n, 1, 2));
    sweep_close (s);
}

/* ---- files that training scripts saved themselves ---- */

#define FILES(policy)                                                                              \
    "name = \"t\"; entrypoint = \"true\";\n"                                                       \
    "searcher = { name = \"random\"; metric = \"loss\"; max_trials = 9;\n"                         \
    "             max_length = 100; };\n"                                                          \
    "checkpoint_policy = { " policy " };\n"                                                        \
    "hyperparameters = { x = { type = \"float\"; minval = 0; maxval = 1; }; "                      \
    "};\n"

static const char *own_path (const struct sweep *s, long n, long k, const char *name)
{
    static char path[320];
    char *slash;

    snprintf (path, sizeof (path), "%s/%s", made_attempt (s, n, k), name);
    for (slash = path + strlen (made_attempt (s, n, k)) + 1; (slash = strchr (slash, '/'));
         *slash++ = '/') {
        *slash = '\0';
        mkdir (path, 0777);
    }
    return path;
}

static void put_own (const struct sweep *s, long n, long k, const char *name)
{
    int fd = open (own_path (s, n, k, name), O_CREAT | O_WRONLY, 0666);

    assert_int_equal (write (fd, "weights", 7), 7);
    close (fd);
}

/* Returns the attempts of a trial that have the file, such as "13". */
static const char *having (const struct sweep *s, long n, const char *name)
{
    static char text[16];
    char *to = text;

    for (long k = 1; k <= 9; k++)
        if (access (own_path (s, n, k, name), F_OK) == 0)
            *to++ = (char)('0' + k);
    *to = '\0';
    return text;
}

static void log_attempts (const struct sweep *s, long n, long first, long last)
{
    for (long k = first; k <= last; k++)
        put_metric (s, n, k, k, 0.5);
}

/* The newest file may be damaged, so gc keeps two for the next attempt (trainer.h) to choose from.
 */
CASE_WITH (two_newest_of_an_open_trial, make_dir, close_all)
{
    struct sweep *s =
        made_sweep (dir, FILES ("save_trial_best = 0; files = (\"*.pt\", \"run\");"), 1);

    for (long k = 1; k <= 6; k++) {
        char name[32];
        put_own (s, 1, k, "last.pt");
        put_own (s, 1, k, "log");
        put_own (s, 1, k, "other.txt");
        put_own (s, 1, k, "work/run/state.bin");
        snprintf (name, sizeof (name), "work/epoch_%ld.pt", 4 * k);
        put_own (s, 1, k, name);
    }
    put_own (s, 1, 1, "best.pt");
    close (open (own_path (s, 1, 7, "last.pt"), O_CREAT | O_WRONLY, 0666));
    log_attempts (s, 1, 1, 4); /* 5 failed before its first metric */
    s->trials[0].over = 5;     /* 6 still runs */
    assert_int_equal (run (s, false), 6);
    assert_string_equal (having (s, 1, "last.pt"), "34567");
    assert_string_equal (having (s, 1, "work/run/state.bin"), "3456");
    assert_string_equal (having (s, 1, "work/epoch_8.pt"), "");
    assert_string_equal (having (s, 1, "work/epoch_12.pt"), "3");
    assert_string_equal (having (s, 1, "other.txt"), "123456");
    assert_string_equal (having (s, 1, "log"), "123456");
    assert_string_equal (having (s, 1, "best.pt"), "1");
    sweep_close (s);
}

CASE_WITH (nothing_goes_without_the_key, make_dir, close_all)
{
    struct sweep *s = made_sweep (dir, FILES ("save_trial_best = 0;"), 1);

    for (long k = 1; k <= 4; k++)
        put_own (s, 1, k, "last.pt");
    made_result (s, 1, 4, 9, 0.5);
    s->state = SWEEP_COMPLETED;
    assert_int_equal (run (s, false), 0);
    assert_string_equal (having (s, 1, "last.pt"), "1234");
    sweep_close (s);
}

/* Attempts 1 and 3 have results at lengths 1 and 9: 0.1 and 0.4 in trial 1, 0.2 and 0.3 in trial 2.
 */
static struct sweep *two_trials (const char *conf)
{
    struct sweep *s = made_sweep (dir, conf, 2);

    for (long k = 1; k <= 4; k++) {
        put_own (s, 1, k, "last.pt");
        put_own (s, 2, k, "last.pt");
    }
    made_result (s, 1, 1, 1, 0.1);
    made_result (s, 2, 1, 1, 0.2);
    made_result (s, 1, 3, 9, 0.4);
    made_result (s, 2, 3, 9, 0.3);
    s->trials[0].over = s->trials[1].over = 4;
    s->state = SWEEP_COMPLETED;
    return s;
}

CASE_WITH (of_an_ended_trial_by_the_policy, make_dir, close_all)
{
    static const char *const policies[][3] = {
        { FILES ("files = \"last.pt\";"), "13", "13" },
        { FILES ("files = \"last.pt\"; save_trial_best = 0;"), "3", "3" },
        { FILES ("files = \"last.pt\"; save_trial_best = 0;"
                 "save_trial_latest = 0; save_experiment_best = 1;"),
          "", "3" }, /* 0.1 is at another length, so it is not compared */
        { FILES ("files = \"last.pt\"; save_trial_best = 0;"
                 "save_trial_latest = 0;"),
          "", "" },
    };

    for (size_t i = 0; i < COUNT (policies); i++) {
        struct sweep *s = two_trials (policies[i][0]);
        run (s, false);
        assert_string_equal (having (s, 1, "last.pt"), policies[i][1]);
        assert_string_equal (having (s, 2, "last.pt"), policies[i][2]);
        sweep_close (s);
    }
}

/* Trial 1 has the best validation, but at length 1; trial 2 has the best result. */
CASE_WITH (the_best_trials_checkpoint_stays, make_dir, close_all)
{
    struct sweep *s = made_sweep (dir, CONF ("1", "0", "0"), 2);

    for (long n = 1; n <= 2; n++)
        for (int64_t step = 1; step <= 9; step += 8)
            put (s, n, 1, step);
    put_metric (s, 1, 1, 1, 0.1);
    put_metric (s, 2, 1, 9, 0.3);
    made_result (s, 1, 1, 1, 0.1);
    made_result (s, 2, 1, 1, 0.2);
    made_result (s, 1, 1, 9, 0.4);
    made_result (s, 2, 1, 9, 0.3);
    s->state = SWEEP_COMPLETED;
    assert_int_equal (run (s, false), 2);
    assert_true (there (s, 1, 1, 1) && there (s, 2, 1, 9));
    sweep_close (s);
}

RUN_CASES ()
