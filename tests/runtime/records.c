/* SPDX-License-Identifier: Apache-2.0 */
/* Records other than scalars, and which rows are superseded. */
#include <stdbool.h>

#include "runtime/metrics/header.h"
#include "tests/runtime/logged.h"

static int add_row (const struct slurmdl_row *r, void *arg)
{
    add (arg, "%s%ld:%s@%lld", r->superseded ? "-" : "", r->attempt, r->name, (long long)r->step);
    if (isnan (r->epoch))
        add (arg, " ");
    else
        add (arg, "/%g ", r->epoch);
    return 0;
}

/* ---- records ---- */

static int check_record (const struct slurmdl_record *r, void *arg)
{
    struct slurmdl_histogram h;
    struct slurmdl_image image;
    const double *v = r->data;
    int *seen = arg;

    assert_true (r->time > 1.6e9);
    *seen |= 1 << r->kind;
    switch (r->kind) {
    case SLURMDL_VECTOR:
        assert_int_equal (r->size, 24);
        assert_true (v[0] == 1 && v[1] == 2 && isnan (v[2]));
        break;
    case SLURMDL_HISTOGRAM:
        assert_int_equal (slurmdl_record_histogram (r, &h), 0);
        assert_int_equal (h.nbins, 2);
        assert_true (h.edges[0] == -1 && h.edges[2] == 3 && isnan (h.mean));
        assert_int_equal (h.counts[1], 7);
        assert_int_equal (h.n, 12);
        assert_int_equal (slurmdl_record_image (r, &image), -1);
        break;
    case SLURMDL_IMAGE:
        assert_int_equal (slurmdl_record_image (r, &image), 0);
        assert_int_equal (image.width * 10 + image.height, 21);
        assert_memory_equal (image.pixels, "rgbRGB", 6);
        assert_int_equal (slurmdl_record_histogram (r, &h), -1);
        break;
    case SLURMDL_TEXT:
        assert_string_equal (r->data, "");
        break;
    case SLURMDL_EVENT:
        assert_string_equal (r->data, "{\"lr\": 0.1}");
        assert_string_equal (r->name, "note");
        assert_int_equal (r->step, 4); /* that of the row before it */
        break;
    }
    return 0;
}

FOLDER_CASE (records_come_back)
{
    struct slurmdl *run = open_run ();
    int seen = 0;

    slurmdl_log (run, "loss", 4, 1);
    slurmdl_flush (run, NULL);
    slurmdl_log_vector (run, "v", 5, 3, (double[]){ 1, 2, NAN });
    slurmdl_log_histogram (run, "h", 6, 2, (double[]){ -1, 0, 3 }, (uint64_t[]){ 5, 7 });
    slurmdl_log_text (run, "t", 7, "");
    slurmdl_log_image (run, "i", 8, 2, 1, 3, (const unsigned char *)"rgbRGB");
    assert_int_equal (slurmdl_event (run, "note", "{\"lr\": 0.1}"), 0);
    assert_int_equal (slurmdl_flush (run, NULL), 0);
    slurmdl_records_read_dir (attempt_dir (1), check_record, &seen, NULL);
    assert_int_equal (seen, 0x3e);
    assert_int_equal (slurmdl_close (run), 0);
    seen = 0;
    slurmdl_records_read_dir (attempt_dir (1), check_record, &seen, NULL);
    assert_int_equal (seen, 0x3e);
}

FOLDER_CASE (nonsense_is_refused)
{
    static const char *const bad[] = { "\x80",         "\xc0\x80",         "a\xe2\x82",
                                       "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff" };
    struct slurmdl *run = open_run ();
    struct text got = { .n = 0 };

    assert_int_equal (slurmdl_log (run, "\xff", 1, 1), -1);
    assert_int_equal (errno, EINVAL);
    for (size_t i = 0; i < COUNT (bad); i++)
        assert_int_equal (slurmdl_log_text (run, "t", 0, bad[i]), -1);
    assert_int_equal (errno, EINVAL);
    assert_int_equal (slurmdl_log_text (run, "t", 0, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), 0);
    assert_int_equal (slurmdl_event (run, "", "{}"), -1);
    assert_int_equal (slurmdl_log_vector (run, "v", 0, 0, (double[]){ 0 }), -1);
    assert_int_equal (slurmdl_log_vector (run, "v", 0, 1 << 22, (double[]){ 0 }), -1);
    assert_int_equal (
        slurmdl_log_histogram (run, "h", 0, 2, (double[]){ 0, 1, 1 }, (uint64_t[]){ 0, 0 }), -1);
    assert_int_equal (slurmdl_log_image (run, "i", 0, 1, 1, 5, (unsigned char[8]){ 0 }), -1);
    assert_int_equal (
        slurmdl_log_image (run, "i", 0, 1u << 31, 1u << 31, 4, (unsigned char[8]){ 0 }), -1);
    assert_int_equal (slurmdl_log_to (NULL, 0, 0), -1);
    assert_int_equal (slurmdl_lost (run), 0);
    assert_int_equal (slurmdl_close (run), 0);
    slurmdl_records_read_dir (attempt_dir (1), add_record, &got, NULL);
    assert_string_equal (got.text, "3 t@0 \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80; ");
}

/* ---- samples ---- */

static int take_histogram (const struct slurmdl_record *r, void *arg)
{
    struct slurmdl_histogram h;
    struct slurmdl_histogram *to = arg;
    static uint64_t counts[64];
    static double edges[65];

    assert_int_equal (slurmdl_record_histogram (r, &h), 0);
    assert_int_equal (h.nbins, 64);
    memcpy (counts, h.counts, sizeof (counts));
    memcpy (edges, h.edges, sizeof (edges));
    *to = h;
    to->counts = counts;
    to->edges = edges;
    return 0;
}

static struct slurmdl_histogram histogram_of (enum slurmdl_type type, size_t n, const void *values)
{
    static long attempt;
    struct slurmdl *run = open_run ();
    struct slurmdl_histogram h = { 0 };

    assert_int_equal (slurmdl_log_samples (run, "s", 0, type, n, values), 0);
    attempt = slurmdl_attempt (run);
    assert_int_equal (slurmdl_close (run), 0);
    slurmdl_records_read_dir (attempt_dir (attempt), take_histogram, &h, NULL);
    return h;
}

FOLDER_CASE (samples)
{
    double v[131];
    struct slurmdl_histogram h;

    for (int i = 0; i < 128; i++)
        v[i] = i;
    v[128] = NAN;
    v[129] = INFINITY;
    v[130] = -INFINITY;
    h = histogram_of (SLURMDL_F64, 131, v);
    assert_true (h.n == 131 && h.nan == 1 && h.infinite == 2);
    assert_true (h.min == 0 && h.max == 127 && h.mean == 63.5);
    assert_true (fabs (h.sd - sqrt ((128. * 128 - 1) / 12)) < 1e-12);
    assert_true (h.edges[0] == 0 && h.edges[64] == 127);
    for (int i = 0; i < 64; i++)
        assert_int_equal (h.counts[i], 2);
    h = histogram_of (SLURMDL_F64, 2, (double[]){ -1.7e308, 1.7e308 });
    assert_true (h.counts[0] == 1 && h.counts[63] == 1);
    assert_true (isfinite (h.edges[32]));
    h = histogram_of (SLURMDL_F32, 0, NULL);
    assert_true (h.n == 0 && isnan (h.mean) && h.edges[0] < h.edges[1]);
}

/* A value such as 1.5 in each type; a single value falls in the middle bin. */
FOLDER_CASE (samples_of_each_type)
{
    static const struct {
        enum slurmdl_type type;
        unsigned char bytes[16];
        double value;
    } of[] = {
        { SLURMDL_I8, { 0xff }, -1 },
        { SLURMDL_U8, { 0xff }, 255 },
        { SLURMDL_BOOL, { 1 }, 1 },
        { SLURMDL_I16, { 0xfe, 0xff }, -2 },
        { SLURMDL_U16, { 0xfe, 0xff }, 65534 },
        { SLURMDL_I32, { 0xfe, 0xff, 0xff, 0xff }, -2 },
        { SLURMDL_U32, { 0, 0, 0, 0x80 }, 2147483648. },
        { SLURMDL_I64, { 1 }, 1 },
        { SLURMDL_U64, { 2 }, 2 },
        { SLURMDL_F16, { 0x00, 0x3e }, 1.5 },
        { SLURMDL_F16, { 0x01, 0x00 }, 0x1p-24 },
        { SLURMDL_BF16, { 0xc0, 0x3f }, 1.5 },
        { SLURMDL_F8_E4M3, { 0x3c }, 1.5 },
        { SLURMDL_F8_E4M3, { 0x7e }, 448 },
        { SLURMDL_F8_E5M2, { 0xbe }, -1.5 },
        { SLURMDL_F32, { 0, 0, 0xc0, 0x3f }, 1.5 },
        { SLURMDL_C64, { 0, 0, 0x40, 0x40, 0, 0, 0x80, 0x40 }, 5 },
        { SLURMDL_C128, { [6] = 0x08, [7] = 0x40, [14] = 0x10, [15] = 0x40 }, 5 },
    };

    for (size_t i = 0; i < COUNT (of); i++) {
        struct slurmdl_histogram h = histogram_of (of[i].type, 1, of[i].bytes);
        assert_true (h.min == of[i].value && h.max == of[i].value);
        assert_true (h.counts[32] == 1 && h.edges[0] < of[i].value);
    }
}

/* ---- epochs and superseded rows ---- */

FOLDER_CASE (epochs)
{
    struct slurmdl *run = open_run ();
    struct text got = { .n = 0 };

    slurmdl_log (run, "a", 1, 1);
    assert_int_equal (slurmdl_epoch (run, 1), 0);
    slurmdl_log (run, "a", 2, 1);
    assert_int_equal (slurmdl_epoch (run, 2.5), 0);
    slurmdl_log (run, "b", 2, 1);
    slurmdl_close (run);
    slurmdl_metrics_read_dir (attempt_dir (1), add_row, &got, NULL);
    assert_string_equal (got.text, "1:a@1 1:epoch@1/1 1:a@2/1 1:epoch@2/2.5 1:b@2/2.5 ");
}

/* Log the steps from .. to, and save at 'save' unless it is 0. */
static void train (int64_t from, int64_t to, int64_t save, bool restore)
{
    struct slurmdl *run = open_run ();
    int64_t step = 0;
    double x = 1;

    slurmdl_protect (run, "x", SLURMDL_F64, 0, NULL, &x);
    if (restore)
        assert_int_equal (slurmdl_restore (run, &step, NULL), 1);
    for (int64_t i = from; i <= to; i++) {
        slurmdl_log (run, "a", i, 1);
        if (i == save)
            assert_int_equal (slurmdl_save (run, i, NULL), 0);
    }
    assert_int_equal (slurmdl_close (run), 0);
}

static int add_pause (const struct slurmdl_record *r, void *arg)
{
    struct text *t = arg;
    long long step;
    double seconds;

    if (sscanf (r->data, "{\"step\": %lld, \"seconds\": %lf}", &step, &seconds) == 2
        && step == r->step && seconds >= 0 && seconds < 600)
        t->n +=
            (size_t)snprintf (t->text + t->n, sizeof (t->text) - t->n, "%s@%lld ", r->name, step);
    return 0;
}

/* dl goodput needs to know how long saves and restores took. */
FOLDER_CASE (saves_and_restores_are_recorded)
{
    struct text got = { .n = 0 };

    train (1, 3, 2, false);
    train (3, 4, 4, true);
    assert_int_equal (slurmdl_records_read_dir (attempt_dir (1), add_pause, &got, NULL), 0);
    assert_string_equal (got.text, "saved@2 ");
    got.n = 0;
    assert_int_equal (slurmdl_records_read_dir (attempt_dir (2), add_pause, &got, NULL), 0);
    assert_string_equal (got.text, "restored@2 saved@4 ");
}

FOLDER_CASE (a_resumed_run_supersedes)
{
    struct text got = { .n = 0 };
    int64_t step = -1;

    train (1, 5, 2, false);
    train (0, -1, 0, true); /* as if killed before it logged anything */
    slurmdl_trial_read (dir, add_row, &got, NULL);
    assert_string_equal (got.text, "1:a@1 1:a@2 -1:a@3 -1:a@4 -1:a@5 ");
    assert_int_equal (slurmdl_resumed_at (attempt_dir (1), &step), 0);
    assert_int_equal (slurmdl_resumed_at (attempt_dir (2), &step), 1);
    assert_int_equal (step, 2);
    train (3, 4, 4, true);
    got.n = 0;
    slurmdl_trial_read (dir, add_row, &got, NULL);
    assert_string_equal (got.text, "1:a@1 1:a@2 -1:a@3 -1:a@4 -1:a@5 3:a@3 3:a@4 ");
}

/* A trainer with its own checkpoints never calls slurmdl_restore(). */
FOLDER_CASE (repeated_steps_are_superseded)
{
    struct text got = { .n = 0 };

    train (1, 4, 0, false);
    train (3, 3, 0, false);
    slurmdl_trial_read (dir, add_row, &got, NULL);
    assert_string_equal (got.text, "1:a@1 1:a@2 -1:a@3 -1:a@4 2:a@3 ");
}

/* A run restores in the middle, as after a loss of NaN. */
FOLDER_CASE (back_in_one_run)
{
    struct slurmdl *run = open_run ();
    struct text got = { .n = 0 };
    int64_t step = 0;
    double x = 1;

    slurmdl_protect (run, "x", SLURMDL_F64, 0, NULL, &x);
    for (int64_t i = 1; i <= 4; i++) {
        slurmdl_log (run, "a", i, 1);
        if (i == 2)
            slurmdl_save (run, i, NULL);
    }
    assert_int_equal (slurmdl_restore (run, &step, NULL), 1);
    slurmdl_log (run, "a", 3, 1);
    slurmdl_close (run);
    slurmdl_metrics_read_dir (attempt_dir (1), add_row, &got, NULL);
    assert_string_equal (got.text, "1:a@1 1:a@2 1:a@3 ");
    got.n = 0;
    slurmdl_trial_read (dir, add_row, &got, NULL);
    assert_string_equal (got.text, "1:a@1 1:a@2 -1:a@3 -1:a@4 1:a@3 ");
}

/* ---- a file crafted to stall its readers ---- */

/* Make the file claim 'n' records, all in a hole; returns -1 if the file system
 * cannot hold so large a file.
 */
static int claim (const char *path, const char *name, uint64_t n, uint64_t size)
{
    uint64_t place[2] = { 1 << 20, n * size };
    char bytes[8192];
    struct header_image image = { bytes, 0 };
    struct header_dataset d;
    FILE *f = fopen (path, "r+");
    int rv;

    assert_non_null (f);
    image.size = fread (bytes, 1, sizeof (bytes), f);
    assert_int_equal (header_find (&image, name, &d), 0);
    fseek (f, (long)d.length, SEEK_SET);
    fwrite (&n, sizeof (n), 1, f);
    fseek (f, (long)d.storage, SEEK_SET);
    fwrite (place, sizeof (place), 1, f);
    fflush (f);
    rv = ftruncate (fileno (f), (off_t)(place[0] + place[1]));
    fclose (f);
    return rv;
}

static int no_row (const struct slurmdl_row *r, void *arg)
{
    fail ();
    return 0;
}

/* A reader must not go through terabytes of zeros, which would take an hour. */
FOLDER_CASE (claims)
{
    struct slurmdl *run = open_run ();
    char name[200];
    int large;

    slurmdl_log (run, "a", 1, 1);
    slurmdl_close (run);
    snprintf (name, sizeof (name), "%s/metrics.h5", attempt_dir (1));
    alarm (300);
    large = claim (name, "metrics", (uint64_t)1 << 37, 32);
    if (large == 0) {
        assert_int_equal (slurmdl_metrics_read (name, no_row, NULL, NULL), 0);
        assert_int_equal (claim (name, "records", (uint64_t)1 << 36, 48), 0);
        assert_int_equal (slurmdl_metrics_read (name, no_row, NULL, NULL), 0);
    }
    assert_int_equal (claim (name, "names", (uint64_t)1 << 20, 64), 0);
    assert_int_equal (slurmdl_metrics_read (name, no_row, NULL, NULL), -1);
    alarm (0);
    if (large != 0)
        SKIP_CASE ("the file system holds no file of 4 TiB; only the names were checked");
}

RUN_CASES ()
