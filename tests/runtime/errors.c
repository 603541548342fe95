/* SPDX-License-Identifier: Apache-2.0 */
/* Each public function that takes 'err' clears it, and fills it when it fails. */
#include <ctype.h>
#include <time.h>

#include "tests/folder.h"
#include "tests/runtime/comm/world.h"

enum { POISON = 0x5a, SPARE_NAMES = 1100 };

static struct slurmdl_error err;
static float values[4];
static const uint64_t four = 4;

/* Whether a check failed in this process; a rank of a world exits with it. */
static int bad;

static void filled (const char *function, int failed)
{
    static const char poison[] = { POISON, POISON, POISON, POISON };
    size_t n = strnlen (err.text, sizeof (err.text));

    if (failed && n > 0 && n < sizeof (err.text) && memcmp (err.text, poison, 4))
        return;
    fprintf (stderr, "%s: %s\n", function,
             failed ? "err is not cleared, or not filled" : "did not fail");
    bad = 1;
}

/* clang-format off */
#define POISONED(f, bad_value, ...)                                            \
    do {                                                                       \
        memset (&err, POISON, sizeof (err));                                   \
        int failed = f (__VA_ARGS__, &err) == (bad_value);                     \
        filled (#f, failed);                                                   \
    } while (0)
#define FAILS(f, ...) POISONED (f, -1, __VA_ARGS__)
#define GIVES_NULL(f, ...) POISONED (f, NULL, __VA_ARGS__)
#define REPORTS(f, ...) POISONED (f, 1, __VA_ARGS__)
/* clang-format on */

static char *in_folder (const char *name)
{
    char *path;

    assert_true (asprintf (&path, "%s/%s", dir, name) > 0);
    return path;
}

static void put_file (const char *name)
{
    char *path = in_folder (name);
    FILE *f = fopen (path, "w");

    assert_non_null (f);
    fputs ("this is no HDF5 file\n", f);
    fclose (f);
    free (path);
}

static int any_row (const struct slurmdl_row *row, void *arg)
{
    return 0;
}

static int any_record (const struct slurmdl_record *record, void *arg)
{
    return 0;
}

/* ---- slurmdl.h ---- */

static void lose_metrics (struct slurmdl *run, struct slurmdl_metrics *m)
{
    char name[32];

    for (int i = 0; i < SPARE_NAMES; i++) {
        snprintf (name, sizeof (name), "name%d", i);
        slurmdl_log (run, name, 1, 0);
        slurmdl_metrics_log (m, name, 1, 0);
    }
}

FOLDER_CASE (a_run)
{
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, NULL);
    struct slurmdl *run = slurmdl_open (dir, NULL);
    int64_t step;

    bad = 0;
    assert_non_null (run);
    lose_metrics (run, m);
    GIVES_NULL (slurmdl_open, "/dev/null/run");
    REPORTS (slurmdl_trouble, run);
    FAILS (slurmdl_flush, run);
    FAILS (slurmdl_metrics_flush, m);
    FAILS (slurmdl_save, run, -1);
    FAILS (slurmdl_save_async, run, -1);
    slurmdl_protect (run, "w", SLURMDL_F32, 1, &four, values);
    assert_int_equal (slurmdl_save (run, 1, NULL), 0);
    slurmdl_protect (run, "other", SLURMDL_F32, 1, &four, values);
    FAILS (slurmdl_restore, run, &step);
    FAILS (slurmdl_restore_only, run, NULL, "/nonexistent", &step);
    slurmdl_close (run);
    slurmdl_metrics_destroy (m);
    assert_int_equal (bad, 0);
}

FOLDER_CASE (a_save_by_the_thread)
{
    struct slurmdl *run = slurmdl_open (dir, NULL);
    char *ckpt;
    FILE *f;

    bad = 0;
    assert_true (asprintf (&ckpt, "%s/ckpt", slurmdl_dir (run)) > 0);
    assert_non_null (f = fopen (ckpt, "w"));
    fclose (f);
    free (ckpt);
    slurmdl_protect (run, "w", SLURMDL_F32, 1, &four, values);
    if (slurmdl_save_async (run, 1, NULL) == 0)
        FAILS (slurmdl_save_wait, run);
    slurmdl_close (run);
    assert_int_equal (bad, 0);
}

FOLDER_CASE (reading)
{
    char *attempt = in_folder ("a.9");
    char *file = in_folder ("a.9/metrics.h5");
    int64_t step;

    bad = 0;
    assert_int_equal (mkdir (attempt, 0700), 0);
    put_file ("a.9/metrics.h5");
    GIVES_NULL (slurmdl_metrics_create, "/nonexistent");
    FAILS (slurmdl_metrics_read, file, any_row, NULL);
    FAILS (slurmdl_metrics_read_dir, attempt, any_row, NULL);
    FAILS (slurmdl_trial_read, dir, any_row, NULL);
    FAILS (slurmdl_records_read, file, any_record, NULL);
    FAILS (slurmdl_records_read_dir, attempt, any_record, NULL);
    FAILS (slurmdl_checkpoint_verify, file, &step);
    FAILS (slurmdl_checkpoint_remove, dir);
    GIVES_NULL (slurmdl_checkpoint_open, file);
    free (attempt);
    free (file);
    assert_int_equal (bad, 0);
}

FOLDER_CASE (a_checkpoint)
{
    struct slurmdl_tensor t = { .name = "w", .type = SLURMDL_F32, .ndims = 1 };
    struct slurmdl_tensor nameless = t;
    struct slurmdl_checkpoint *c;
    struct slurmdl_writer *w;
    char *path = in_folder ("1.h5");
    char *lost = in_folder ("lost");
    char *in_lost = in_folder ("lost/1.h5");
    char *moved = in_folder ("moved");

    bad = 0;
    t.dims[0] = four;
    *nameless.name = '\0';
    GIVES_NULL (slurmdl_writer_open, "/dev/null", 1);
    assert_non_null (w = slurmdl_writer_open (path, 1, NULL));
    FAILS (slurmdl_writer_add, w, &nameless, values);
    assert_int_equal (slurmdl_writer_add (w, &t, values, NULL), 0);
    assert_int_equal (slurmdl_writer_commit (w, NULL), 0);
    assert_non_null (c = slurmdl_checkpoint_open (path, NULL));
    FAILS (slurmdl_checkpoint_read, c, "other", NULL, NULL, values);
    slurmdl_checkpoint_close (c);
    assert_int_equal (mkdir (lost, 0700), 0);
    assert_non_null (w = slurmdl_writer_open (in_lost, 1, NULL));
    assert_int_equal (rename (lost, moved), 0);
    FAILS (slurmdl_writer_commit, w);
    free (path);
    free (lost);
    free (in_lost);
    free (moved);
    assert_int_equal (bad, 0);
}

/* ---- slurmdl_comm.h ---- */

static void broken (struct slurmdl_comm *w)
{
    struct slurmdl_request r = {
        .name = "z", .n = 4, .type = SLURMDL_F32, .in = values, .out = values
    };
    size_t sizes[2] = { 4, 4 };
    long last;

    GIVES_NULL (slurmdl_comm_split, w, 0, 0);
    FAILS (slurmdl_allreduce, w, values, values, 4, SLURMDL_F32, SLURMDL_SUM);
    FAILS (slurmdl_reduce, w, values, values, 4, SLURMDL_F32, SLURMDL_SUM, 0);
    FAILS (slurmdl_reduce_scatter, w, values, values, 4, NULL, SLURMDL_F32, SLURMDL_SUM);
    FAILS (slurmdl_allgather, w, values, 4, values, NULL);
    FAILS (slurmdl_broadcast, w, values, 4, 0);
    FAILS (slurmdl_alltoall, w, values, sizes, values, sizes);
    FAILS (slurmdl_barrier, w);
    FAILS (slurmdl_submit, w, &r);
    FAILS (slurmdl_join, w, &last);
}

/* Rank 0 learns that the other did not submit its tensor, and aborts. */
static int ranks (struct slurmdl_comm *w, void *arg)
{
    long me = slurmdl_comm_rank (w);
    struct slurmdl_request r = {
        .name = me ? "y" : "x", .n = 4, .type = SLURMDL_F32, .in = values, .out = values
    };
    int64_t ticket = slurmdl_submit (w, &r, NULL);
    struct timespec nap = { 0, 10000000 };
    void *out;
    size_t n;

    bad = ticket < 0;
    FAILS (slurmdl_timeline, w, "/nonexistent/timeline.%r", 0);
    FAILS (slurmdl_take, w, ticket + 1000, &out, &n, NULL);
    if (me == 0) {
        int news = 0;
        for (int i = 0; !news && i < 3000; i++) {
            memset (&err, POISON, sizeof (err));
            if (!(news = slurmdl_comm_trouble (w, &err)))
                nanosleep (&nap, NULL);
        }
        filled ("slurmdl_comm_trouble", news);
        slurmdl_comm_abort (w, "the test goes on");
        return bad;
    }
    FAILS (slurmdl_wait, w, ticket);
    broken (w);
    return bad;
}

FOLDER_CASE (a_communicator)
{
    struct slurmdl_comm_options o = { .size = 1, .backend = "pigeon" };

    bad = 0;
    GIVES_NULL (slurmdl_comm_open, &o);
    assert_int_equal (bad, 0);
    setenv ("DL_STALL_SECONDS", "1", 1);
    assert_int_equal (world_run (2, 0, ranks, NULL, 60, NULL), 0);
}

FOLDER_CASE (elastic)
{
    char *folder = in_folder ("elastic");
    struct slurmdl_elastic_options o = { .dir = "/dev/null/x" };
    struct slurmdl_elastic *e;
    int64_t step;

    bad = 0;
    GIVES_NULL (slurmdl_elastic_open, &o);
    o = (struct slurmdl_elastic_options){ .dir = folder, .min = 2, .settle = 0.1, .timeout = 0.2 };
    assert_non_null (e = slurmdl_elastic_open (&o, NULL));
    FAILS (slurmdl_elastic_protect, e, "w", 99, 1, &four, values);
    FAILS (slurmdl_elastic_protect_shard, e, "w", 99, 1, &four, &four, &four, values);
    FAILS (slurmdl_elastic_state, e, NULL, "", 0);
    FAILS (slurmdl_elastic_commit, e, 1);
    FAILS (slurmdl_elastic_restore, e, &step);
    GIVES_NULL (slurmdl_elastic_form, e);
    slurmdl_elastic_close (e);
    free (folder);
    assert_int_equal (bad, 0);
}

/* ---- completeness ---- */

static char *text_of (const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *f = fopen (path, "r");

    assert_non_null (f);
    assert_true (getdelim (&text, &room, '\0', f) > 0);
    fclose (f);
    return text;
}

static void without_comments (char *text)
{
    char *end;

    for (char *c = text; (c = strstr (c, "/*")) && (end = strstr (c, "*/"));)
        memset (c, ' ', (size_t)(end + 2 - c));
}

/* The name before the first parenthesis of a declaration. */
static void name_of (char *declaration, char *name, size_t size)
{
    char *end = strchr (declaration, '(');
    char *begin;

    while (end > declaration && isspace ((unsigned char)end[-1]))
        end--;
    for (begin = end; isalnum ((unsigned char)begin[-1]) || begin[-1] == '_';)
        begin--;
    snprintf (name, size, "%.*s", (int)(end - begin), begin);
}

CASE (none_is_forgotten)
{
    static const char *const headers[] = { "slurmdl.h", "slurmdl_comm.h" };
    char *test = text_of (SOURCES "/tests/runtime/errors.c");
    int found = 0;

    for (int i = 0; i < 2; i++) {
        char path[4096], name[64];
        snprintf (path, sizeof (path), SOURCES "/runtime/%s", headers[i]);
        char *text = text_of (path);
        without_comments (text);
        for (char *part = strtok (text, ";"); part; part = strtok (NULL, ";")) {
            if (!strstr (part, "struct slurmdl_error *err)"))
                continue;
            name_of (part, name, sizeof (name) - 1);
            strcat (name, ",");
            /* stalls.c tests these two, with a rank that never submits */
            if (!strstr (test, name) && strcmp (name, "slurmdl_comm_trouble,")
                && strcmp (name, "slurmdl_comm_close,"))
                fail_msg ("%s is not tested", name);
            found++;
        }
        free (text);
    }
    free (test);
    assert_true (found > 40);
}

int main (void)
{
    alarm (120);
    return run_cases (NULL, NULL);
}
