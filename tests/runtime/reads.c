/* SPDX-License-Identifier: Apache-2.0 */
/* A restore reads no more than the saved parts that overlap what it needs. */
#include <stdbool.h>

#include "runtime/slurmdl.h"
#include "tests/folder.h"
#include "tests/ranks.h"

/* Rows of 1 MiB, which are saved in parts of 16 rows. */
enum { ROWS = 40, COLUMNS = 256 << 10, PART = 16, MIB = 1 << 20 };

static const uint64_t shape[2] = { ROWS, COLUMNS };

static float value_at (uint64_t row, uint64_t column)
{
    return (float)(row * 1000 + column % 997);
}

static float *make_rows (uint64_t first, uint64_t n)
{
    float *data = malloc (n * COLUMNS * sizeof (*data));

    for (uint64_t i = 0; i < n * COLUMNS; i++)
        data[i] = value_at (first + i / COLUMNS, i % COLUMNS);
    return data;
}

/* Bytes that this process has read so far; -1: the kernel does not count them. */
static long long bytes_read (void)
{
    FILE *f = fopen ("/proc/self/io", "r");
    long long n = -1;

    if (f && fscanf (f, "rchar: %lld", &n) != 1)
        n = -1;
    if (f)
        fclose (f);
    return n;
}

/* Whether it is so many MiB, plus less than one for tables and messages. */
static bool is_about (long long bytes, long long mib)
{
    if (bytes >= mib * MIB && bytes < (mib + 1) * MIB)
        return true;
    fprintf (stderr, "# read %.2f MiB, not %lld\n", (double)bytes / MIB, mib);
    return false;
}

static struct slurmdl *open_alone (float **w, float **other)
{
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);

    *w = make_rows (0, ROWS);
    *other = make_rows (7, ROWS);
    assert_int_equal (slurmdl_protect (run, "w", SLURMDL_F32, 2, shape, *w), 0);
    assert_int_equal (slurmdl_protect (run, "other", SLURMDL_F32, 2, shape, *other), 0);
    return run;
}

static void save_alone (void)
{
    struct slurmdl_error err = { "" };
    float *w, *other;
    struct slurmdl *run = open_alone (&w, &other);

    assert_int_equal (slurmdl_save (run, 1, &err), 0);
    assert_int_equal (slurmdl_close (run), 0);
    free (w);
    free (other);
}

static void restore_rows (int rank, int size, void *arg)
{
    const uint64_t n = (uint64_t)(ROWS / size);
    uint64_t offset[2] = { n * (uint64_t)rank, 0 };
    uint64_t local[2] = { n, COLUMNS };
    uint64_t last = offset[0] + n - 1;
    struct slurmdl_error err = { "" };
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    float *want = make_rows (offset[0], n);
    float *data = calloc (n * COLUMNS, sizeof (*data));
    long long before;
    int64_t step;

    NEED (slurmdl_protect_shard (run, "w", SLURMDL_F32, 2, shape, offset, local, data) == 0);
    NEED (slurmdl_stop_here (run, 0) == 0); /* makes the ranks meet first */
    before = bytes_read ();
    NEED (slurmdl_restore (run, &step, &err) == 1);
    NEED (!memcmp (data, want, n * COLUMNS * sizeof (*data)));
    /* the last part is shorter */
    last = last / PART * PART + PART;
    NEED (is_about (bytes_read () - before,
                    (long long)((last < ROWS ? last : ROWS) - offset[0] / PART * PART)));
    slurmdl_close (run);
}

static const char no_count[] = "this kernel does not count what is read";

/* One rank saves; four restore a quarter each. */
FOLDER_CASE (ranks_read_their_rows)
{
    if (bytes_read () < 0)
        SKIP_CASE (no_count);
    save_alone ();
    assert_int_equal (ranks (4, -1, restore_rows, NULL), 0);
}

static void save_and_restore_columns (int rank, int size, void *arg)
{
    const uint64_t n = (uint64_t)(COLUMNS / size);
    uint64_t offset[2] = { 0, n * (uint64_t)rank };
    uint64_t local[2] = { ROWS, n };
    struct slurmdl_error err = { "" };
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    float *data = malloc (ROWS * n * sizeof (*data));
    long long before;
    int64_t step;

    for (uint64_t i = 0; i < ROWS * n; i++)
        data[i] = value_at (i / n, offset[1] + i % n);
    NEED (slurmdl_protect_shard (run, "w", SLURMDL_F32, 2, shape, offset, local, data) == 0);
    NEED (slurmdl_save (run, 1, &err) == 0);
    NEED (slurmdl_save_wait (run, &err) == 0); /* the save reads back what it wrote */
    memset (data, 0, ROWS * n * sizeof (*data));
    before = bytes_read ();
    NEED (slurmdl_restore (run, &step, &err) == 1);
    NEED (is_about (bytes_read () - before, ROWS / size));
    for (uint64_t i = 0; i < ROWS * n; i++)
        NEED (data[i] == value_at (i / n, offset[1] + i % n));
    slurmdl_close (run);
}

/* With columns, each rank reads just what it saved. */
FOLDER_CASE (ranks_read_their_columns)
{
    if (bytes_read () < 0)
        SKIP_CASE (no_count);
    assert_int_equal (ranks (4, -1, save_and_restore_columns, NULL), 0);
}

FOLDER_CASE (one_name_alone)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run;
    float *w, *other, *want;
    long long before;
    int64_t step;

    if (bytes_read () < 0)
        SKIP_CASE (no_count);
    save_alone ();
    run = open_alone (&w, &other);
    want = make_rows (7, ROWS);
    memset (other, 0, ROWS * MIB);
    before = bytes_read ();
    assert_int_equal (slurmdl_restore_only (run, "ot*", NULL, &step, &err), 1);
    assert_true (is_about (bytes_read () - before, ROWS));
    assert_memory_equal (other, want, ROWS * MIB);
    slurmdl_close (run);
    free (w);
    free (other);
    free (want);
}

FOLDER_CASE (one_row_alone)
{
    const uint64_t offset[2] = { 33, 5 };
    const uint64_t dims[2] = { 1, 3 };
    struct slurmdl_error err = { "" };
    struct slurmdl_checkpoint *c;
    struct slurmdl_tensor t;
    float three[3];
    long long before = bytes_read ();

    if (bytes_read () < 0)
        SKIP_CASE (no_count);
    save_alone ();
    c = slurmdl_checkpoint_open (in_dir ("run/a.1/ckpt/00000001.h5"), &err);
    assert_non_null (c);
    assert_int_equal (
        slurmdl_checkpoint_info (c, (size_t)slurmdl_checkpoint_find_tensor (c, "w"), &t), 0);
    assert_int_equal (t.shards, 3);
    before = bytes_read ();
    assert_int_equal (slurmdl_checkpoint_read (c, "w", offset, dims, three, &err), 0);
    /* the third part, which has 8 rows */
    assert_true (is_about (bytes_read () - before, ROWS - 2 * PART));
    for (uint64_t i = 0; i < 3; i++)
        assert_true (three[i] == value_at (33, 5 + i));
    slurmdl_checkpoint_close (c);
}

int main (void)
{
    unsetenv ("SLURM_JOB_END_TIME");
    return run_cases (NULL, NULL);
}
