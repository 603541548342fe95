/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of several ranks: slabs, states, resharding, missing ranks. */
#include <glob.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "runtime/slurmdl.h"
#include "tests/ranks.h"
#include "tests/runtime/counted.h"
#include "tests/runtime/plain.h"

/* ---- a tensor cut into a grid of slabs ---- */

struct cut {
    int ndims;
    uint64_t shape[3];
    int grid[3];
};

struct test {
    const struct cut *cut;
    int size;
    bool async;
    int64_t step;
};

static struct slab slab_of (const struct cut *c, int rank)
{
    struct slab s = { .ndims = c->ndims };

    for (int i = c->ndims - 1; i >= 0; i--) {
        uint64_t g = (uint64_t)c->grid[i];
        uint64_t k = (uint64_t)rank % g;
        rank /= c->grid[i];
        s.offset[i] = c->shape[i] * k / g;
        s.dims[i] = c->shape[i] * (k + 1) / g - s.offset[i];
    }
    return s;
}

static int size_of (const struct cut *c)
{
    int n = 1;

    for (int i = 0; i < c->ndims; i++)
        n *= c->grid[i];
    return n;
}

/* The tensor's value at the k-th element of a slab. */
static int32_t value_of (const struct cut *c, const struct slab *s, uint64_t k)
{
    struct slab all = { .ndims = c->ndims };

    memcpy (all.dims, c->shape, sizeof (c->shape));
    return (int32_t)plain_place (&all, s, k) * 3 + 1;
}

static struct slurmdl *open_rank (const struct cut *c, int rank, int32_t **data)
{
    struct slab s = slab_of (c, rank);
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);

    NEED (run);
    *data = calloc (count_of (&s) + 1, sizeof (**data));
    NEED (slurmdl_protect_shard (run, "model/w", SLURMDL_I32, c->ndims, c->shape, s.offset, s.dims,
                                 count_of (&s) ? *data : NULL)
          == 0);
    return run;
}

static void save_cut (int rank, int size, void *arg)
{
    const struct test *t = arg;
    struct slab s = slab_of (t->cut, rank);
    struct slurmdl_error err = { "" };
    double loss = (double)t->step;
    char text[32];
    int32_t *data;
    struct slurmdl *run = open_rank (t->cut, rank, &data);

    NEED (slurmdl_protect (run, "loss", SLURMDL_F64, 0, NULL, &loss) == 0);
    for (uint64_t k = 0; k < count_of (&s); k++)
        data[k] = value_of (t->cut, &s, k);
    snprintf (text, sizeof (text), "rank %d", rank);
    NEED (slurmdl_state (run, "rng.%r", text, strlen (text)) == 0);
    NEED (slurmdl_state (run, "schedule", "all", 3) == 0);
    if (t->async) {
        NEED (slurmdl_save_async (run, t->step, &err) == 0);
        /* a later change must not reach the checkpoint */
        for (uint64_t k = 0; k < count_of (&s); k++)
            data[k] = -1;
        NEED (slurmdl_save_wait (run, &err) == 0);
    } else
        NEED (slurmdl_save (run, t->step, &err) == 0);
    NEED (slurmdl_close (run) == 0);
    free (data);
}

static void restore_cut (int rank, int size, void *arg)
{
    const struct test *t = arg;
    struct slab s = slab_of (t->cut, rank);
    struct slurmdl_error err = { "" };
    double loss = 0;
    int32_t *data;
    struct slurmdl *run = open_rank (t->cut, rank, &data);
    int64_t step = -1;
    void *bytes;
    size_t n;

    NEED (slurmdl_protect (run, "loss", SLURMDL_F64, 0, NULL, &loss) == 0);
    NEED (slurmdl_restore (run, &step, &err) == 1);
    NEED (step == t->step && loss == (double)t->step);
    for (uint64_t k = 0; k < count_of (&s); k++)
        NEED (data[k] == value_of (t->cut, &s, k));
    NEED (slurmdl_read_state (run, "schedule", &bytes, &n) == 0 && n == 3);
    NEED (!memcmp (bytes, "all", 3));
    free (bytes);
    if (size == t->size) {
        char text[32];
        snprintf (text, sizeof (text), "rank %d", rank);
        NEED (slurmdl_read_state (run, "rng.%r", &bytes, &n) == 0);
        NEED (n == strlen (text) && !memcmp (bytes, text, n));
        free (bytes);
    }
    NEED (slurmdl_read_state (run, "other", &bytes, &n) < 0 && errno == ENOENT);
    NEED (slurmdl_close (run) == 0);
    free (data);
}

FOLDER_CASE (save_and_reshard)
{
    static const struct cut saved[] = {
        { 1, { 7 }, { 3 } },       { 2, { 5, 6 }, { 2, 1 } },
        { 2, { 5, 6 }, { 1, 3 } }, { 3, { 4, 3, 5 }, { 2, 1, 2 } },
        { 1, { 2 }, { 4 } }, /* some ranks have an empty slab */
    };
    static const int grids[][3] = { { 1, 1, 1 }, { 2, 1, 1 }, { 4, 1, 1 },
                                    { 1, 2, 1 }, { 2, 2, 1 }, { 1, 1, 3 } };
    struct test t = { 0 };

    for (size_t i = 0; i < COUNT (saved); i++) {
        t = (struct test){ &saved[i], size_of (&saved[i]), i % 2, (int64_t)i + 1 };
        assert_int_equal (ranks (t.size, -1, save_cut, &t), 0);
        assert_int_equal (ranks (t.size, -1, restore_cut, &t), 0);
        for (size_t g = 0; g < COUNT (grids); g++) {
            struct cut other = saved[i];
            struct test u = t;
            memcpy (other.grid, grids[g], sizeof (other.grid));
            u.cut = &other;
            assert_int_equal (ranks (size_of (&other), -1, restore_cut, &u), 0);
        }
        remove_dir (NULL);
    }
}

/* ---- failures ---- */

static void expect_missing (int rank, int size, void *arg)
{
    const struct test *t = arg;
    struct slurmdl_error err = { "" };
    int32_t *data;
    struct slurmdl *run = open_rank (t->cut, rank, &data);

    NEED (slurmdl_save (run, 1, &err) == -1 && errno == ETIMEDOUT);
    /* rank 0 names the missing rank; the others wait for rank 0 */
    NEED (strstr (err.text, rank == 0 ? "rank 2 of 3" : "rank 0 of 3"));
    slurmdl_close (run);
}

FOLDER_CASE (a_missing_rank_is_named)
{
    static const struct cut c = { 1, { 9 }, { 3 } };
    struct test t = { &c, 3, false, 1 };

    setenv ("DL_RANK_TIMEOUT", "0.5", 1);
    assert_int_equal (ranks (3, 2, expect_missing, &t), 0);
    assert_int_equal (checkpoints (), 0);
    unsetenv ("DL_RANK_TIMEOUT");
}

static void die_or_learn (int rank, int size, void *arg)
{
    const struct test *t = arg;
    struct slurmdl_error err = { "" };
    int32_t *data;
    struct slurmdl *run = open_rank (t->cut, rank, &data);

    NEED (slurmdl_save (run, 1, &err) == 0);
    if (rank == 1)
        _exit (0);
    NEED (slurmdl_save (run, 2, &err) == -1 && errno == ESRCH);
    NEED (strstr (err.text, "rank 1 (process "));
    slurmdl_close (run);
}

/* Nobody waits for the timeout: the others learn of the death at once. */
FOLDER_CASE (a_dead_rank_is_named)
{
    static const struct cut c = { 1, { 9 }, { 3 } };
    struct test t = { &c, 3, false, 1 };

    assert_int_equal (ranks (3, -1, die_or_learn, &t), 0);
    assert_int_equal (checkpoints (), 1);
}

static bool both_are_there (void)
{
    glob_t g;
    bool rv = glob (in_dir ("run/.ranks.*/hello.[01]"), 0, NULL, &g) == 0 && g.gl_pathc == 2;

    globfree (&g);
    return rv;
}

static void *leave_once_both_are_there (void *arg)
{
    struct timespec t = { 0, 10 * 1000 * 1000 };

    while (!both_are_there ())
        nanosleep (&t, NULL);
    _exit (0);
    return arg;
}

static void leave_or_learn (int rank, int size, void *arg)
{
    const struct test *t = arg;
    struct slurmdl_error err = { "" };
    int32_t *data;
    struct slurmdl *run = open_rank (t->cut, rank, &data);
    pthread_t thread;

    if (rank == 0)
        pthread_create (&thread, NULL, leave_once_both_are_there, NULL);
    NEED (slurmdl_save (run, 1, &err) == -1 && errno == ESRCH);
    NEED (strstr (err.text, "rank 0 (process "));
    slurmdl_close (run);
}

/* Rank 2 never starts, and rank 0 exits while it waits for rank 2. */
FOLDER_CASE (rank_0_may_end_before_all_have_met)
{
    static const struct cut c = { 1, { 9 }, { 3 } };
    struct test t = { &c, 3, false, 1 };
    int status[2] = { -1, -1 };
    pid_t pids[2];

    for (int r = 1; r >= 0; r--)
        pids[r] = start_rank (r, 3, leave_or_learn, &t);
    for (int r = 0; r < 2; r++)
        waitpid (pids[r], &status[r], 0);
    assert_int_equal (status[0], 0);
    assert_int_equal (status[1], 0);
}

static void save_bad_slabs (int rank, int size, void *arg)
{
    const uint64_t *local = arg; /* sizes of the slabs of a tensor of 8 */
    uint64_t all = 8;
    uint64_t offset = (uint64_t)rank * 4;
    struct slurmdl_error err = { "" };
    char data[8] = "";
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);

    if (rank == 1 && *local == 5)
        offset = 3;
    NEED (run);
    NEED (slurmdl_protect_shard (run, "w", SLURMDL_I8, 1, &all, &offset, &local[rank], data) == 0);
    NEED (slurmdl_save (run, 1, &err) == -1 && errno == EINVAL);
    NEED (strstr (err.text, "'w': the shards of the ranks overlap"));
    slurmdl_close (run);
}

FOLDER_CASE (slabs_must_cover_the_tensor_once)
{
    uint64_t hole[2] = { 3, 4 };
    uint64_t twice[2] = { 5, 5 };
    uint64_t out[2] = { 9, 0 };
    uint64_t all = 8, zero = 0;
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    char data[8];

    assert_int_equal (slurmdl_protect_shard (run, "w", SLURMDL_I8, 1, &all, &zero, out, data), -1);
    assert_int_equal (errno, EINVAL);
    slurmdl_close (run);
    assert_int_equal (ranks (2, -1, save_bad_slabs, hole), 0);
    assert_int_equal (ranks (2, -1, save_bad_slabs, twice), 0);
    assert_int_equal (checkpoints (), 0);
}

static void save_other_steps (int rank, int size, void *arg)
{
    const struct test *t = arg;
    struct slurmdl_error err = { "" };
    int32_t *data;
    struct slurmdl *run = open_rank (t->cut, rank, &data);

    NEED (slurmdl_save (run, rank + 1, &err) == -1);
    NEED (strstr (err.text, "rank 1 saves step 2, rank 0 step 1"));
    /* the next save works again */
    NEED (slurmdl_save (run, 5, &err) == 0);
    slurmdl_close (run);
}

FOLDER_CASE (ranks_save_the_same_step)
{
    static const struct cut c = { 1, { 9 }, { 2 } };
    struct test t = { &c, 2, false, 1 };

    assert_int_equal (ranks (2, -1, save_other_steps, &t), 0);
    assert_int_equal (checkpoints (), 1);
}

/* ---- damage that only one rank sees ---- */

static void restore_older (int rank, int size, void *arg)
{
    const struct test *t = arg;
    struct slurmdl_error err = { "" };
    int32_t *data;
    struct slurmdl *run = open_rank (t->cut, rank, &data);
    int64_t step = 0;

    NEED (slurmdl_restore (run, &step, &err) == 1);
    NEED (step == t->step);
    slurmdl_close (run);
}

static void save_twice (int rank, int size, void *arg)
{
    const struct test *t = arg;
    int32_t *data;
    struct slurmdl *run = open_rank (t->cut, rank, &data);

    for (int k = 0; k < 9 / size; k++)
        data[k] = 0x5a5a5a5a;
    NEED (slurmdl_save (run, 1, NULL) == 0 && slurmdl_save (run, 2, NULL) == 0);
    slurmdl_close (run);
}

FOLDER_CASE (all_ranks_restore_the_same)
{
    static const struct cut c = { 1, { 9 }, { 3 } };
    struct test t = { &c, 3, false, 1 };
    static char file[1 << 20];
    FILE *f;
    size_t n, at;

    assert_int_equal (ranks (3, -1, save_twice, &t), 0);
    f = fopen (in_dir ("run/a.1/ckpt/00000002.h5"), "r+");
    assert_non_null (f);
    n = fread (file, 1, sizeof (file), f);
    for (at = 0; at + 4 < n && memcmp (file + at, "ZZZZ", 4); at++)
        ;
    assert_true (at + 36 < n);
    fseek (f, (long)at + 32, SEEK_SET); /* the last element: rank 2's */
    fputc ('!', f);
    fclose (f);
    assert_int_equal (ranks (3, -1, restore_older, &t), 0);
}

/* A mismatch on one rank fails on all of them, with the same error. */
static void restore_misfit (int rank, int size, void *arg)
{
    static const struct cut c = { 1, { 9 }, { 3 } };
    const int *misfit = arg;
    struct slurmdl_error err = { "" };
    double loss;
    int32_t *data;
    struct slurmdl *run = open_rank (&c, rank, &data);
    int64_t step = 0;

    NEED (slurmdl_protect (run, "loss", rank == *misfit ? SLURMDL_I32 : SLURMDL_F64, 0, NULL, &loss)
          == 0);
    errno = 0;
    NEED (slurmdl_restore (run, &step, &err) == -1 && errno == EINVAL);
    NEED (strstr (err.text, "loss"));
    slurmdl_close (run);
    free (data);
}

FOLDER_CASE (a_misfit_fails_on_all_ranks)
{
    static const struct cut c = { 1, { 9 }, { 3 } };
    struct test t = { &c, 3, false, 1 };

    assert_int_equal (ranks (3, -1, save_cut, &t), 0);
    for (int misfit = 0; misfit < 3; misfit++)
        assert_int_equal (ranks (3, -1, restore_misfit, &misfit), 0);
}

/* ---- every bit of a sharded file matters ---- */

FOLDER_CASE (flipped_bits_of_shards)
{
    static const struct cut c = { 1, { 9 }, { 3 } };
    struct test t = { &c, 3, false, 1 };
    struct slurmdl_error err;
    char path[128];
    int64_t step;
    long size;
    FILE *f;

    assert_int_equal (ranks (3, -1, save_cut, &t), 0);
    snprintf (path, sizeof (path), "%s", in_dir ("run/a.1/ckpt/00000001.h5"));
    assert_int_equal (slurmdl_checkpoint_verify (path, &step, &err), 0);
    f = fopen (path, "r+");
    fseek (f, 0, SEEK_END);
    size = ftell (f);
    for (long at = 0; at < size; at++) {
        int byte;
        fseek (f, at, SEEK_SET);
        byte = fgetc (f);
        fseek (f, at, SEEK_SET);
        fputc (byte ^ 1 << at % 8, f);
        fflush (f);
        assert_int_equal (slurmdl_checkpoint_verify (path, &step, &err), -1);
        fseek (f, at, SEEK_SET);
        fputc (byte, f);
        fflush (f);
    }
    assert_int_equal (slurmdl_checkpoint_verify (path, &step, &err), 0);
    for (long cut = size - 1; cut >= 0; cut -= 1 + cut / 50) {
        assert_int_equal (ftruncate (fileno (f), cut), 0);
        assert_int_equal (slurmdl_checkpoint_verify (path, &step, &err), -1);
    }
    fclose (f);
}

int main (void)
{
    unsetenv ("SLURM_JOB_END_TIME");
    return run_cases (NULL, NULL);
}
