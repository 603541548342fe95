/* SPDX-License-Identifier: Apache-2.0 */
/* Large and asynchronous saves, the time limit, and files outside of a run. */
#include <limits.h>
#include <time.h>

#include "runtime/checkpoint/commit.h"
#include "runtime/slurmdl.h"
#include "tests/runtime/counted.h"

/* ---- large files: direct I/O, verified by the thread ---- */

enum { BIG = 5 << 20 };

static uint32_t *big_data (int seed)
{
    uint32_t *p = malloc (BIG * sizeof (*p));

    for (uint32_t i = 0; i < BIG; i++)
        p[i] = i * 2654435761u + (uint32_t)seed;
    return p;
}

FOLDER_CASE (big_files)
{
    uint64_t n = BIG - 3, odd = 777;
    struct slurmdl_error err = { "" };
    uint32_t *saved = big_data (1);
    uint32_t *found = malloc (BIG * sizeof (*found));
    uint8_t bytes[777], back[777];
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    int64_t step;

    memset (bytes, 7, sizeof (bytes));
    /* at unaligned addresses */
    slurmdl_protect (run, "a", SLURMDL_U32, 1, &n, saved + 1);
    slurmdl_protect (run, "b", SLURMDL_U8, 1, &odd, bytes);
    slurmdl_protect (run, "c", SLURMDL_U32, 1, &n, saved + 2);
    for (int i = 1; i <= 2; i++)
        assert_int_equal (slurmdl_save (run, i, &err), 0);
    for (int i = 3; i <= 6; i++) /* the third waits for the first */
        assert_int_equal (slurmdl_save_async (run, i, &err), 0);
    assert_int_equal (slurmdl_save_wait (run, &err), 0);
    assert_int_equal (checkpoints (), 2);
    slurmdl_close (run);
    assert_int_equal (slurmdl_checkpoint_verify (in_dir ("run/a.1/ckpt/00000006.h5"), &step, &err),
                      0);
    run = slurmdl_open (in_dir ("run"), NULL);
    slurmdl_protect (run, "a", SLURMDL_U32, 1, &n, found + 3);
    slurmdl_protect (run, "b", SLURMDL_U8, 1, &odd, back);
    assert_int_equal (slurmdl_restore (run, &step, &err), 1);
    assert_int_equal (step, 6);
    assert_memory_equal (found + 3, saved + 1, n * 4);
    assert_memory_equal (back, bytes, sizeof (bytes));
    /* restore some tensors by name */
    memset (back, 0, sizeof (back));
    found[3]++;
    assert_int_equal (slurmdl_restore_only (run, "[bx]", NULL, &step, &err), 1);
    assert_memory_equal (back, bytes, sizeof (bytes));
    assert_true (found[3] == saved[1] + 1);
    slurmdl_close (run);
    free (saved);
    free (found);
}

/* A save uses the memory that was prepared, and allocates no more. */
FOLDER_CASE (prepared)
{
    uint64_t n = BIG;
    uint32_t *data = big_data (5);
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    struct slurmdl_error err;

    slurmdl_save_prepare (run); /* does nothing: no tensor is protected yet */
    slurmdl_protect (run, "x", SLURMDL_U32, 1, &n, data);
    for (int i = 0; i < 3; i++)
        slurmdl_save_prepare (run);
    assert_int_equal (slurmdl_save_wait (run, &err), 0);
    setenv ("DL_SNAPSHOT_MAX", "1000", 1); /* forbid more memory from here on */
    for (int i = 1; i <= 3; i++) {
        assert_int_equal (slurmdl_save_async (run, i, &err), 0);
        assert_string_equal (err.text, "");
        assert_int_equal (slurmdl_save_wait (run, &err), 0);
    }
    unsetenv ("DL_SNAPSHOT_MAX");
    slurmdl_save_prepare (run); /* slurmdl_close() must end it */
    assert_int_equal (slurmdl_close (run), 0);
    free (data);
}

FOLDER_CASE (no_memory_for_a_copy)
{
    /* with many ranks, each may use little of the machine's memory */
    static const char *const names[] = { "DL_SNAPSHOT_MAX", "LOCAL_WORLD_SIZE",
                                         "SLURM_NTASKS_PER_NODE" };
    uint64_t n = BIG;
    uint32_t *saved = big_data (1);
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);

    slurmdl_protect (run, "a", SLURMDL_U32, 1, &n, saved);
    for (int i = 0; i < 3; i++) {
        struct slurmdl_error err = { "" };

        setenv (names[i], "1000000", 1);
        assert_int_equal (slurmdl_save_async (run, i + 1, &err), 0);
        assert_non_null (strstr (err.text, "was not asynchronous"));
        assert_true (checkpoints () > (i > 0));
        unsetenv (names[i]);
    }
    slurmdl_close (run);
    free (saved);
}

/* A path that is too long is rejected, not truncated. */
FOLDER_CASE (long_names)
{
    static char folder[PATH_MAX], tmp[PATH_MAX], path[PATH_MAX];
    struct slurmdl_error err;

    assert_int_equal (chdir (dir), 0);
    for (int i = 0; i < PATH_MAX - 20; i++)
        folder[i] = i % 2 ? '/' : '.';
    assert_int_equal (finish_paths (folder, 1, tmp, path, &err), -1);
    assert_int_equal (errno, ENAMETOOLONG);
    folder[PATH_MAX - 200] = '\0';
    assert_int_equal (finish_paths (folder, 1, tmp, path, &err), 0);
    assert_int_equal (chdir ("/"), 0);
}

/* The next call reports an error of the thread, once. */
FOLDER_CASE (errors_come_later)
{
    uint64_t n = 4;
    float w[4] = { 1 };
    struct slurmdl_error err = { "" };
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    FILE *f = fopen (in_dir ("run/a.1/ckpt"), "w"); /* not a directory */

    fclose (f);
    slurmdl_protect (run, "w", SLURMDL_F32, 1, &n, w);
    assert_int_equal (slurmdl_save_async (run, 1, &err), 0);
    assert_int_equal (slurmdl_save_wait (run, &err), -1);
    assert_non_null (strstr (err.text, "cannot create"));
    assert_int_equal (slurmdl_save_wait (run, &err), 0);
    assert_int_equal (slurmdl_save_async (run, 2, &err), 0);
    assert_int_equal (slurmdl_close (run), -1);
}

FOLDER_CASE (stop_alone)
{
    struct slurmdl *run;
    char text[32];

    snprintf (text, sizeof (text), "%lld", (long long)time (NULL) + 60);
    setenv ("SLURM_JOB_END_TIME", text, 1);
    run = slurmdl_open (in_dir ("run"), NULL);
    for (int i = 0; i < 6000 && !slurmdl_should_stop (run); i++)
        usleep (10000);
    assert_int_equal (slurmdl_should_stop (run), 1); /* 60 s before the end */
    assert_int_equal (slurmdl_stop_here (run, 1), 1);
    slurmdl_close (run);
    unsetenv ("SLURM_JOB_END_TIME");
}

FOLDER_CASE (write_and_read)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_writer *w = slurmdl_writer_open (in_dir ("x.h5"), 9, &err);
    struct slurmdl_tensor t = { .name = "g/x", .type = SLURMDL_I16, .ndims = 2, .dims = { 3, 4 } };
    int16_t x[12], y[4];
    uint64_t offset[2] = { 1, 1 }, dims[2] = { 2, 2 };
    struct slurmdl_checkpoint *c;

    for (int16_t i = 0; i < 12; i++)
        x[i] = i;
    assert_non_null (w);
    assert_int_equal (slurmdl_writer_add (w, &t, x, &err), 0);
    assert_int_equal (slurmdl_writer_add (w, &t, x, &err), -1); /* twice */
    strcpy (t.name, "g");
    assert_int_equal (slurmdl_writer_add (w, &t, x, &err), -1); /* a group */
    strcpy (t.name, "scalar");
    t.ndims = 0;
    t.type = SLURMDL_BF16;
    assert_int_equal (slurmdl_writer_add (w, &t, x, &err), 0);
    assert_int_equal (access (in_dir ("x.h5"), F_OK), -1);
    assert_int_equal (slurmdl_writer_commit (w, &err), 0);
    assert_non_null (c = slurmdl_checkpoint_open (in_dir ("x.h5"), &err));
    assert_int_equal (slurmdl_checkpoint_step (c), 9);
    assert_int_equal (slurmdl_checkpoint_count (c), 2);
    assert_int_equal (slurmdl_checkpoint_info (c, 2, &t), -1);
    assert_int_equal (slurmdl_checkpoint_find_tensor (c, "scalar"), 1);
    assert_int_equal (slurmdl_checkpoint_read (c, "g/x", offset, dims, y, &err), 0);
    assert_true (y[0] == 5 && y[1] == 6 && y[2] == 9 && y[3] == 10);
    offset[0] = 2;
    assert_int_equal (slurmdl_checkpoint_read (c, "g/x", offset, dims, y, &err), -1);
    assert_int_equal (errno, EINVAL);
    slurmdl_checkpoint_close (c);
    w = slurmdl_writer_open (in_dir ("y.h5"), 9, &err);
    slurmdl_writer_abort (w);
    assert_int_equal (access (in_dir ("y.h5"), F_OK), -1);
}

int main (void)
{
    unsetenv ("SLURM_JOB_END_TIME");
    unsetenv ("RANK");
    return run_cases (NULL, NULL);
}
