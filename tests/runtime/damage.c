/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged checkpoints of several ranks, restored by other numbers of ranks. */
#include <stdbool.h>

#include "runtime/slurmdl.h"
#include "tests/folder.h"
#include "tests/ranks.h"

/* A tensor whose rows are divided among the ranks. */
enum { ROWS = 60, COLUMNS = 31, SAVERS = 3 };

static const uint64_t shape[2] = { ROWS, COLUMNS };

static double value_at (uint64_t row, uint64_t column, int64_t step)
{
    return (double)(row * COLUMNS + column) + 0.25 * (double)step;
}

struct part {
    uint64_t offset[2], local[2];
    double data[ROWS * COLUMNS];
};

static struct slurmdl *open_part (struct part *p, int rank, int size)
{
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    uint64_t first = (uint64_t)(ROWS * rank / size);

    p->offset[0] = first;
    p->offset[1] = 0;
    p->local[0] = (uint64_t)(ROWS * (rank + 1) / size) - first;
    p->local[1] = COLUMNS;
    NEED (run);
    NEED (slurmdl_protect_shard (run, "w", SLURMDL_F64, 2, shape, p->offset, p->local, p->data)
          == 0);
    return run;
}

/* Save steps 1 and 2. */
static void save_both (int rank, int size, void *arg)
{
    static struct part p;
    struct slurmdl_error err = { "" };
    struct slurmdl *run = open_part (&p, rank, size);

    for (int64_t step = 1; step <= 2; step++) {
        for (uint64_t i = 0; i < p.local[0] * COLUMNS; i++)
            p.data[i] = value_at (p.offset[0] + i / COLUMNS, i % COLUMNS, step);
        NEED (slurmdl_state (run, "rng.%r", &step, sizeof (step)) == 0);
        NEED (slurmdl_save (run, step, &err) == 0);
    }
    NEED (slurmdl_close (run) == 0);
}

static void restore_first (int rank, int size, void *arg)
{
    static struct part p;
    struct slurmdl_error err = { "" };
    struct slurmdl *run = open_part (&p, rank, size);
    int64_t want = *(int64_t *)arg;
    int64_t step = 0;

    NEED (slurmdl_restore (run, &step, &err) == 1 && step == want);
    for (uint64_t i = 0; i < p.local[0] * COLUMNS; i++)
        NEED (p.data[i] == value_at (p.offset[0] + i / COLUMNS, i % COLUMNS, want));
    slurmdl_close (run);
}

static void restore_nothing (int rank, int size, void *arg)
{
    static struct part p;
    struct slurmdl_error err = { "" };
    struct slurmdl *run = open_part (&p, rank, size);
    int64_t step = -7;

    NEED (slurmdl_restore (run, &step, &err) == -1 && errno == EBADMSG);
    NEED (step == -7 && strstr (err.text, "every checkpoint is damaged"));
    slurmdl_close (run);
}

struct image {
    unsigned char *bytes;
    size_t n;
};

static const char *file_of (int64_t step)
{
    char name[64];

    snprintf (name, sizeof (name), "run/a.1/ckpt/%08lld.h5", (long long)step);
    return in_dir (name);
}

static void put_file (int64_t step, const struct image *i, size_t n)
{
    FILE *f = fopen (file_of (step), "w");

    assert_non_null (f);
    assert_int_equal (fwrite (i->bytes, 1, n, f), n);
    assert_int_equal (fclose (f), 0);
}

static struct image get_file (int64_t step)
{
    FILE *f = fopen (file_of (step), "r");
    struct image i;

    assert_non_null (f);
    fseek (f, 0, SEEK_END);
    i.n = (size_t)ftell (f);
    rewind (f);
    i.bytes = malloc (i.n);
    assert_int_equal (fread (i.bytes, 1, i.n, f), i.n);
    fclose (f);
    return i;
}

/* Offset of the tensor's data, whose values occur nowhere else. */
static size_t data_of (const struct image *i, int64_t step)
{
    double first[2] = { value_at (0, 0, step), value_at (0, 1, step) };

    for (size_t at = 0; at + sizeof (first) < i->n; at++)
        if (!memcmp (i->bytes + at, first, sizeof (first)))
            return at;
    fail ();
    return 0;
}

static struct image save_all (void)
{
    int64_t both = 2;

    assert_int_equal (ranks (SAVERS, -1, save_both, NULL), 0);
    for (int size = 1; size <= 4; size++)
        assert_int_equal (ranks (size, -1, restore_first, &both), 0);
    return get_file (2);
}

static void expect_first (int size)
{
    int64_t one = 1;

    assert_int_equal (ranks (size, -1, restore_first, &one), 0);
}

/* A restore ignores the zeros that align the tensor to a page. */
static bool in_padding (const struct image *i, size_t at, size_t data)
{
    for (size_t k = at; k < data; k++)
        if (i->bytes[k])
            return false;
    return at < data;
}

FOLDER_CASE (a_flipped_bit)
{
    struct image i = save_all ();
    size_t data = data_of (&i, 2);
    int size = 0;

    for (size_t at = 3; at < i.n; at += 1 + i.n / 100) {
        if (in_padding (&i, at, data))
            continue;
        i.bytes[at] ^= (unsigned char)(1 << at % 8);
        put_file (2, &i, i.n);
        expect_first (1 + size++ % 4);
        i.bytes[at] ^= (unsigned char)(1 << at % 8);
    }
    free (i.bytes);
}

FOLDER_CASE (a_file_cut_short)
{
    struct image i = save_all ();
    int size = 0;

    for (size_t n = i.n - 1; n > 0; n -= n < i.n / 25 ? n : i.n / 25) {
        put_file (2, &i, n);
        expect_first (1 + size++ % 4);
    }
    free (i.bytes);
}

/* As if a rank's slab had never reached the disk. */
FOLDER_CASE (a_missing_slab)
{
    struct image i = save_all ();
    size_t at = data_of (&i, 2);
    size_t n = ROWS / SAVERS * COLUMNS * sizeof (double);

    for (int rank = 0; rank < SAVERS; rank++) {
        unsigned char *slab = i.bytes + at + (size_t)rank * n;
        unsigned char *copy = malloc (n);
        memcpy (copy, slab, n);
        memset (slab, 0, n);
        put_file (2, &i, i.n);
        for (int size = 1; size <= 4; size++)
            expect_first (size);
        memcpy (slab, copy, n);
        free (copy);
    }
    free (i.bytes);
}

/* A file with slabs of two steps. */
FOLDER_CASE (a_slab_of_another_step)
{
    struct image i = save_all ();
    struct image old = get_file (1);
    size_t n = ROWS / SAVERS * COLUMNS * sizeof (double);

    memcpy (i.bytes + data_of (&i, 2) + n, old.bytes + data_of (&old, 1) + n, n);
    put_file (2, &i, i.n);
    for (int size = 1; size <= 4; size++)
        expect_first (size);
    free (i.bytes);
    free (old.bytes);
}

FOLDER_CASE (nothing_is_left)
{
    struct image i = save_all ();
    struct image old = get_file (1);

    i.bytes[data_of (&i, 2) + 100] ^= 1;
    old.bytes[data_of (&old, 1) + ROWS * COLUMNS * sizeof (double) - 1] ^= 1;
    put_file (1, &old, old.n);
    put_file (2, &i, i.n);
    for (int size = 1; size <= 4; size++)
        assert_int_equal (ranks (size, -1, restore_nothing, NULL), 0);
    free (i.bytes);
    free (old.bytes);
}

int main (void)
{
    unsetenv ("SLURM_JOB_END_TIME");
    return run_cases (NULL, NULL);
}
