/* SPDX-License-Identifier: Apache-2.0 */
/* Files that earlier versions have written stay readable. */
#include "runtime/slurmdl.h"
#include "tests/unit.h"

/* The folder has, of format N of each, checkpoint-N.h5 and metrics-N.h5. */
static const char *old_file (const char *name)
{
    static char path[4096];
    const char *top = getenv ("srcdir");

    snprintf (
        path, sizeof (path), "%s/tests/runtime/old/%s", top ? top : ".", name);
    return path;
}

static struct slurmdl_checkpoint *open_old (const char *name)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_checkpoint *c;
    int64_t step = 0;

    assert_int_equal (slurmdl_checkpoint_verify (old_file (name), &step, &err),
                      0);
    assert_int_equal (step, 50);
    c = slurmdl_checkpoint_open (old_file (name), &err);
    assert_non_null (c);
    assert_int_equal (slurmdl_checkpoint_step (c), 50);
    return c;
}

/* The tensor is there, of this type and size, and has these bytes. */
static void expect (struct slurmdl_checkpoint *c,
                    const char *name,
                    enum slurmdl_type type,
                    const void *want,
                    size_t n)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_tensor t;
    unsigned char data[64];
    int64_t i = slurmdl_checkpoint_find_tensor (c, name);

    assert_true (i >= 0);
    assert_int_equal (slurmdl_checkpoint_info (c, (size_t)i, &t), 0);
    assert_int_equal (t.type, type);
    assert_int_equal (t.bytes, n);
    assert_true (n <= sizeof (data));
    assert_int_equal (slurmdl_checkpoint_read (c, name, NULL, NULL, data, &err),
                      0);
    assert_memory_equal (data, want, n);
}

static void checkpoint_of_version_1 (void **state)
{
    static const float w[6] = { 0, 1, 2, 3, 4, 5 };
    static const double lr = 0.5;
    static const int64_t step = -3;
    static const uint8_t bytes[5] = { 1, 2, 3, 4, 5 };
    struct slurmdl_checkpoint *c = open_old ("checkpoint-1.h5");

    assert_int_equal (slurmdl_checkpoint_count (c), 4);
    expect (c, "model/weights", SLURMDL_F32, w, sizeof (w));
    expect (c, "lr", SLURMDL_F64, &lr, sizeof (lr));
    expect (c, "optimizer/step", SLURMDL_I64, &step, sizeof (step));
    expect (c, "bytes", SLURMDL_U8, bytes, sizeof (bytes));
    slurmdl_checkpoint_close (c);
}

/* Of two ranks. */
static void checkpoint_of_version_2 (void **state)
{
    static const uint16_t half[2] = { 0x3f80, 0xbf80 };
    static const double lr = 0.5;
    struct slurmdl_checkpoint *c = open_old ("checkpoint-2.h5");
    struct slurmdl_tensor t;
    float w[12];

    for (int i = 0; i < 12; i++)
        w[i] = (float)i;
    assert_int_equal (slurmdl_checkpoint_count (c), 6);
    expect (c, "model/weights", SLURMDL_F32, w, sizeof (w));
    expect (c, "model/half", SLURMDL_BF16, half, sizeof (half));
    expect (c, "lr", SLURMDL_F64, &lr, sizeof (lr));
    expect (c, "state/rng.0", SLURMDL_U8, "rank 0", 6);
    expect (c, "state/rng.1", SLURMDL_U8, "rank 1", 6);
    expect (c, "state/loader", SLURMDL_U8, "{}", 2);
    slurmdl_checkpoint_info (
        c, (size_t)slurmdl_checkpoint_find_tensor (c, "model/weights"), &t);
    assert_int_equal (t.shards, 2);
    slurmdl_checkpoint_close (c);
}

struct seen {
    long losses, others, last;
    double epoch;
};

static int see_row (const struct slurmdl_row *r, void *arg)
{
    struct seen *s = arg;

    s->epoch = r->epoch;
    if (strstr (r->name, "loss")) {
        s->last = ++s->losses;
        assert_int_equal (r->step, s->losses);
        assert_true (r->value == 1.0 / (double)r->step);
    } else
        s->others++;
    return 0;
}

static int see_record (const struct slurmdl_record *r, void *arg)
{
    long *n = arg;

    assert_int_equal (r->kind, ++*n);
    if (r->kind == SLURMDL_TEXT)
        assert_string_equal (r->data, "hello");
    if (r->kind == SLURMDL_EVENT)
        assert_string_equal (r->data, "{\"a\":1}");
    return 0;
}

static void metrics_of_version_1 (void **state)
{
    struct slurmdl_error err = { "" };
    struct seen s = { 0 };
    long records = 0;

    assert_int_equal (
        slurmdl_metrics_read (old_file ("metrics-1.h5"), see_row, &s, &err), 0);
    assert_int_equal (s.losses, 50);
    assert_int_equal (s.others, 5); /* validation/error */
    assert_int_equal (
        slurmdl_records_read (
            old_file ("metrics-1.h5"), see_record, &records, &err),
        0);
    assert_int_equal (records, 0);
}

/* With epochs and records. */
static void metrics_of_version_2 (void **state)
{
    struct slurmdl_error err = { "" };
    struct seen s = { 0 };
    long records = 0;

    assert_int_equal (
        slurmdl_metrics_read (old_file ("metrics-2.h5"), see_row, &s, &err), 0);
    assert_int_equal (s.losses, 50);
    assert_int_equal (s.others, 50); /* each call of slurmdl_epoch() */
    assert_true (s.epoch == 5);
    assert_int_equal (
        slurmdl_records_read (
            old_file ("metrics-2.h5"), see_record, &records, &err),
        0);
    assert_int_equal (records, 5);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test (checkpoint_of_version_1),
    cmocka_unit_test (checkpoint_of_version_2),
    cmocka_unit_test (metrics_of_version_1),
    cmocka_unit_test (metrics_of_version_2),
};

RUN_TESTS (tests)
