/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: save, restore, damage, and which one a restore picks. */
#include <dlfcn.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "runtime/checkpoint/manifest.h"
#include "runtime/slurmdl.h"
#include "tests/runtime/unattended.h"

/* ---- a model ---- */

enum { N = 3000 };

struct model {
    float w[N];
    int64_t k[2][3];
    uint8_t flag;
    uint16_t half[4];
};

static void fill (struct model *m, int seed)
{
    memset (m, 0, sizeof (*m));
    for (int i = 0; i < N; i++)
        m->w[i] = (float)(i * seed) / 7;
    for (int i = 0; i < 6; i++)
        m->k[i / 3][i % 3] = (int64_t)i << (32 + seed);
    m->flag = (uint8_t)seed;
    m->half[0] = 0x3c00; /* 1.0 */
    m->half[3] = (uint16_t)seed;
}

static void protect (struct slurmdl *run, struct model *m)
{
    const uint64_t n = N;
    const uint64_t shape[2] = { 2, 3 };
    const uint64_t four = 4;

    assert_int_equal (slurmdl_protect (run, "model/w", SLURMDL_F32, 1, &n, m->w), 0);
    assert_int_equal (slurmdl_protect (run, "model/deep/k", SLURMDL_I64, 2, shape, m->k), 0);
    assert_int_equal (slurmdl_protect (run, "flag", SLURMDL_U8, 0, NULL, &m->flag), 0);
    assert_int_equal (slurmdl_protect (run, "half", SLURMDL_F16, 1, &four, m->half), 0);
}

/* ---- checkpoints ---- */

static struct slurmdl *open_run (struct model *m, int seed)
{
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);

    assert_non_null (run);
    fill (m, seed);
    protect (run, m);
    return run;
}

UNATTENDED_CASE (save_and_restore)
{
    struct slurmdl_error err;
    struct model saved, m;
    struct slurmdl *run = open_run (&saved, 3);
    int64_t step = -1;

    assert_int_equal (slurmdl_restore (run, &step, &err), 0);
    assert_int_equal (step, -1);
    for (int i = 1; i <= 5; i++) {
        fill (&saved, i);
        assert_int_equal (slurmdl_save (run, i, &err), 0);
    }
    /* only the two newest remain */
    assert_int_equal (access (in_dir ("run/a.1/ckpt/00000003.h5"), F_OK), -1);
    assert_int_equal (access (in_dir ("run/a.1/ckpt/00000004.h5"), F_OK), 0);
    assert_int_equal (slurmdl_checkpoint_verify (in_dir ("run/a.1/ckpt/00000005.h5"), &step, &err),
                      0);
    assert_int_equal (step, 5);
    assert_int_equal (slurmdl_close (run), 0);

    run = open_run (&m, 0);
    assert_int_equal (slurmdl_restore (run, &step, &err), 1);
    assert_int_equal (step, 5);
    assert_memory_equal (&m, &saved, sizeof (m));
    slurmdl_close (run);
}

/* Save at steps 1, 2, ... with these values of the metric (0: none), logged
 * before or after the save.  'stay' has one character per step: 'y' if its
 * checkpoint must remain.
 */
static void check_retention (const double *values, int n, bool after, const char *larger,
                             const char *stay)
{
    struct model m;
    struct slurmdl *run;
    char path[64];

    setenv ("DL_METRIC", "loss", 1);
    setenv ("DL_KEEP_BEST", "1", 1);
    setenv ("DL_LARGER_IS_BETTER", larger, 1);
    run = open_run (&m, 1);
    for (int i = 1; i <= n; i++) {
        if (values[i - 1] != 0 && !after)
            slurmdl_log (run, "loss", i, values[i - 1]);
        slurmdl_log (run, "other", i, -i);
        assert_int_equal (slurmdl_save (run, i, NULL), 0);
        if (values[i - 1] != 0 && after)
            slurmdl_log (run, "loss", i, values[i - 1]);
    }
    for (int i = 1; i <= n; i++) {
        snprintf (path, sizeof (path), "run/a.%ld/ckpt/%08d.h5", slurmdl_attempt (run), i);
        assert_int_equal (access (in_dir (path), F_OK) == 0, stay[i - 1] == 'y');
    }
    slurmdl_close (run);
    unsetenv ("DL_METRIC");
    unsetenv ("DL_KEEP_BEST");
    unsetenv ("DL_LARGER_IS_BETTER");
}

UNATTENDED_CASE (the_best_stays)
{
    static const double values[] = { 5, 2, 4, 2, NAN, 0, 9 };

    check_retention (values, 7, false, "0", "nynnnyy");
    check_retention (values, 7, true, "0", "nynnnyy");
    check_retention (values, 6, false, "1", "ynnnyy");
    check_retention (values, 7, false, "1", "nnnnnyy");
    /* logged after the save, so the second is known to be the best only at the next save */
    check_retention (values, 2, true, "0", "yy");
}

UNATTENDED_CASE (save_a_step_again)
{
    struct model saved, m;
    struct slurmdl *run = open_run (&saved, 1);
    int64_t step;

    assert_int_equal (slurmdl_save (run, 4, NULL), 0);
    fill (&saved, 2);
    assert_int_equal (slurmdl_save (run, 4, NULL), 0);
    slurmdl_close (run);
    run = open_run (&m, 0);
    assert_int_equal (slurmdl_restore (run, &step, NULL), 1);
    assert_memory_equal (&m, &saved, sizeof (m));
    assert_int_equal (slurmdl_save (run, -1, NULL), -1);
    slurmdl_close (run);
}

UNATTENDED_CASE (other_models_are_refused)
{
    struct slurmdl_error err;
    struct model saved;
    struct slurmdl *run = open_run (&saved, 1);
    float small[10] = { 7 };
    const uint64_t ten = 10;
    int64_t step = 9;

    assert_int_equal (slurmdl_save (run, 1, NULL), 0);
    assert_int_equal (slurmdl_protect (run, "model/w", SLURMDL_F32, 1, &ten, small), 0);
    assert_int_equal (slurmdl_restore (run, &step, &err), -1);
    assert_int_equal (errno, EINVAL);
    assert_non_null (strstr (err.text, "'model/w' has another type or shape"));
    assert_true (small[0] == 7 && step == 9);
    slurmdl_close (run);
    run = slurmdl_open (in_dir ("run"), NULL);
    slurmdl_protect (run, "new", SLURMDL_F32, 1, &ten, small);
    assert_int_equal (slurmdl_restore (run, &step, &err), -1);
    assert_non_null (strstr (err.text, "'new' is missing"));
    slurmdl_close (run);
}

UNATTENDED_CASE (bad_regions)
{
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    static const char *const names[] = { "", "/a", "a/", "a//b", "manifest", ".", NULL };
    const uint64_t huge[2] = { UINT64_MAX, 2 };
    const uint64_t one = 1, none = 0;
    char x;

    for (int i = 0; names[i]; i++)
        assert_int_equal (slurmdl_protect (run, names[i], SLURMDL_I8, 0, NULL, &x), -1);
    assert_int_equal (slurmdl_protect (run, "a", SLURMDL_I8, 1, &one, NULL), -1);
    assert_int_equal (slurmdl_protect (run, "a", SLURMDL_I8, 1, &none, NULL), 0);
    assert_int_equal (slurmdl_protect (run, "a", SLURMDL_I8, 1, NULL, &x), -1);
    assert_int_equal (slurmdl_protect (run, "\xff", SLURMDL_I8, 0, NULL, &x), -1);
    assert_int_equal (slurmdl_state (run, "\xff", &x, 1), -1);
    assert_int_equal (slurmdl_protect (run, "a", 99, 0, NULL, &x), -1);
    assert_int_equal (slurmdl_protect (run, "a", SLURMDL_I8, 9, huge, &x), -1);
    assert_int_equal (slurmdl_protect (run, "a", SLURMDL_I8, 2, huge, &x), -1);
    assert_int_equal (errno, EOVERFLOW);
    slurmdl_close (run);
}

/* ---- damage: restore skips an incomplete checkpoint ---- */

static int save_two (struct model *m)
{
    struct slurmdl *run = open_run (m, 1);

    assert_int_equal (slurmdl_save (run, 1, NULL), 0);
    fill (m, 2);
    assert_int_equal (slurmdl_save (run, 2, NULL), 0);
    slurmdl_close (run);
    return open (in_dir ("run/a.1/ckpt/00000002.h5"), O_RDWR | O_CLOEXEC);
}

/* A restore ignores the padding between tensors. */
static bool in_padding (const struct part *rest, size_t n, off_t at)
{
    for (size_t i = 0; i < n; i++)
        if ((uint64_t)at >= rest[i].at && (uint64_t)at - rest[i].at < rest[i].bytes)
            return rest[i].at > 0 && rest[i].bytes < MANIFEST_ALIGNMENT
                   && (rest[i].at + rest[i].bytes) % MANIFEST_ALIGNMENT == 0;
    return false;
}

UNATTENDED_CASE (flipped_bits)
{
    struct model one, two, m;
    int fd = save_two (&two);
    struct manifest list;
    struct part *rest;
    size_t n;
    off_t size = lseek (fd, 0, SEEK_END);
    struct slurmdl *run = open_run (&m, 0);

    fill (&one, 1);
    assert_int_equal (manifest_read (fd, &list), 0);
    rest = manifest_rest (&list, list.length, &n);
    for (off_t at = 0; at < size; at += 1 + at % 61) {
        bool padding = in_padding (rest, n, at);
        int64_t step = 0;
        unsigned char byte;
        assert_int_equal (pread (fd, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal (pwrite (fd, &byte, 1, at), 1);
        assert_int_equal (slurmdl_restore (run, &step, NULL), 1);
        /* every other bit of the newer checkpoint matters */
        assert_int_equal (step, padding ? 2 : 1);
        assert_memory_equal (&m, padding ? &two : &one, sizeof (m));
        byte ^= 0x10;
        assert_int_equal (pwrite (fd, &byte, 1, at), 1);
    }
    free (rest);
    manifest_free (&list);
    close (fd);
    slurmdl_close (run);
}

UNATTENDED_CASE (what_is_passed_over_is_told)
{
    struct slurmdl_error err;
    struct model m;
    int fd = save_two (&m);
    struct slurmdl *run = open_run (&m, 0);
    int64_t step = 0;

    assert_int_equal (slurmdl_restore (run, &step, &err), 1);
    assert_string_equal (err.text, "");
    assert_int_equal (ftruncate (fd, 5000), 0);
    assert_int_equal (slurmdl_restore (run, &step, &err), 1);
    assert_int_equal (step, 1);
    assert_non_null (strstr (err.text, "2.h5: is not a checkpoint, or is damaged: skipped"));
    assert_int_equal (truncate (in_dir ("run/a.1/ckpt/00000001.h5"), 0), 0);
    close (fd);
    slurmdl_close (run);
}

/* The kind of damage makes no difference. */
UNATTENDED_CASE (none_that_is_whole_is_an_error)
{
    static const off_t lengths[] = { 0, 100, 5000, -1 };
    char both[] = "(a.1/ckpt/00000002.h5, a.1/ckpt/00000001.h5)";
    struct slurmdl_error err;
    struct model m;
    int fd = save_two (&m);
    struct slurmdl *run = open_run (&m, 0);
    char *older = strdup (in_dir ("run/a.1/ckpt/00000001.h5"));
    char *newer = strdup (in_dir ("run/a.1/ckpt/00000002.h5"));
    int64_t step = 7;

    assert_int_equal (truncate (older, 100), 0);
    for (size_t i = 0; i < COUNT (lengths); i++) {
        if (lengths[i] >= 0)
            assert_int_equal (ftruncate (fd, lengths[i]), 0);
        else { /* a directory takes its name */
            assert_int_equal (unlink (newer), 0);
            assert_int_equal (mkdir (newer, 0700), 0);
        }
        assert_int_equal (slurmdl_restore (run, &step, &err), -1);
        assert_int_equal (errno, EBADMSG);
        assert_non_null (strstr (err.text, both));
        assert_non_null (strstr (err.text, "move them away"));
        assert_int_equal (slurmdl_restore_only (run, "w*", NULL, &step, &err), -1);
        assert_int_equal (errno, EBADMSG);
        assert_int_equal (step, 7);
    }
    assert_int_equal (rmdir (newer), 0);
    assert_int_equal (unlink (older), 0);
    assert_int_equal (slurmdl_restore (run, &step, &err), 0);
    assert_string_equal (err.text, "");
    free (older);
    free (newer);
    close (fd);
    slurmdl_close (run);
}

/* Root can read everything, so root switches to another user. */
UNATTENDED_CASE (what_cannot_be_read_is_an_error)
{
    static const char *const way[] = { ".", "run", "run/a.1", "run/a.1/ckpt" };
    struct slurmdl_error err;
    struct model m;
    int fd = save_two (&m);
    struct slurmdl *run = open_run (&m, 0);
    int64_t step = 7;
    bool root = geteuid () == 0;

    close (fd);
    for (size_t i = 0; i < COUNT (way); i++)
        assert_int_equal (chmod (in_dir (way[i]), 0755), 0);
    assert_int_equal (chmod (in_dir ("run/a.1/ckpt/00000001.h5"), 0644), 0);
    assert_int_equal (chmod (in_dir ("run/a.1/ckpt/00000002.h5"), 0), 0);
    if (root)
        assert_int_equal (seteuid (65534), 0);
    assert_int_equal (slurmdl_restore (run, &step, &err), -1);
    assert_int_equal (errno, EACCES);
    assert_null (strstr (err.text, "00000001.h5"));
    if (root)
        assert_int_equal (seteuid (0), 0);
    assert_int_equal (chmod (in_dir ("run/a.1/ckpt/00000001.h5"), 0), 0);
    if (root)
        assert_int_equal (seteuid (65534), 0);
    assert_int_equal (slurmdl_restore (run, &step, &err), -1);
    assert_int_equal (errno, EACCES);
    assert_non_null (strstr (err.text, "00000002.h5: cannot read: "));
    assert_non_null (strstr (err.text, "nor can be read: a.1/ckpt/00000001.h5"));
    if (root)
        assert_int_equal (seteuid (0), 0);
    assert_int_equal (chmod (in_dir ("run/a.1/ckpt/00000001.h5"), 0600), 0);
    assert_int_equal (chmod (in_dir ("run/a.1/ckpt/00000002.h5"), 0600), 0);
    assert_int_equal (chmod (in_dir ("run/a.1/ckpt"), 0), 0);
    if (root)
        assert_int_equal (seteuid (65534), 0);
    assert_int_equal (slurmdl_restore (run, &step, &err), -1);
    assert_int_equal (errno, EACCES);
    if (root)
        assert_int_equal (seteuid (0), 0);
    assert_int_equal (chmod (in_dir ("run/a.1/ckpt"), 0700), 0);
    assert_int_equal (step, 7);
    assert_int_equal (slurmdl_restore (run, &step, &err), 1);
    slurmdl_close (run);
}

/* A disk that fails every read from the n-th on, wherever that is. */
static long reads_left = -1;

ssize_t pread (int fd, void *buf, size_t n, off_t at)
{
    if (reads_left == 0) {
        errno = EIO;
        return -1;
    }
    if (reads_left > 0)
        reads_left--;
    return syscall (SYS_pread64, fd, buf, n, at);
}

UNATTENDED_CASE (a_disk_that_refuses_says_nothing_of_a_file)
{
    struct slurmdl_error err;
    struct model m;
    int fd = save_two (&m);
    struct slurmdl *run = open_run (&m, 0);
    bool touched = false, named = false;
    int64_t step = 7;
    int rv = -1;

    close (fd);
    for (long n = 0; rv < 0; n++) {
        assert_true (n < 1000);
        reads_left = n;
        if ((rv = slurmdl_restore (run, &step, &err)) < 0) {
            assert_int_equal (errno, EIO);
            assert_int_equal (step, 7);
            assert_non_null (strstr (err.text, "00000002.h5: cannot read: "));
            touched |= strstr (err.text, "protected memory has parts") != NULL;
            named |= strstr (err.text, "nor can be read: a.1/ckpt/00000001.h5") != NULL;
        }
        reads_left = -1;
    }
    assert_int_equal (rv, 1);
    assert_int_equal (step, 2);
    assert_true (touched && named);
    slurmdl_close (run);
}

/* A dangling link: the disk it points to is not mounted. */
UNATTENDED_CASE (what_leads_nowhere_is_an_error)
{
    struct slurmdl_error err;
    struct model m;
    int fd = save_two (&m);
    struct slurmdl *run = open_run (&m, 0);
    char *folder = strdup (in_dir ("run/a.1/ckpt"));
    char *away = strdup (in_dir ("away"));
    char *file = strdup (in_dir ("run/a.1/ckpt/00000002.h5"));
    int64_t step = 7;

    close (fd);
    assert_int_equal (unlink (file), 0);
    assert_int_equal (symlink ("/nonexistent/2.h5", file), 0);
    assert_int_equal (slurmdl_restore (run, &step, &err), 1);
    assert_int_equal (step, 1);
    assert_non_null (strstr (err.text, "00000002.h5: cannot read: "));
    assert_int_equal (unlink (in_dir ("run/a.1/ckpt/00000001.h5")), 0);
    assert_int_equal (slurmdl_restore (run, &step, &err), -1);
    assert_non_null (strstr (err.text, "a.1/ckpt/00000002.h5"));
    assert_int_equal (rename (folder, away), 0);
    assert_int_equal (symlink ("/nonexistent", folder), 0);
    assert_int_equal (slurmdl_restore (run, &step, &err), -1);
    assert_non_null (strstr (err.text, "a.1/ckpt: cannot look for"));
    free (folder);
    free (away);
    free (file);
    slurmdl_close (run);
}

UNATTENDED_CASE (what_is_no_file_is_told)
{
    static const struct {
        const char *name, *why;
        int error;
    } cases[] = {
        { "nothing.h5", "cannot read: No such file", ENOENT },
        { "run", "cannot read: Is a directory", EISDIR },
        { "pipe", "is not a checkpoint", EBADMSG },
    };
    struct slurmdl_error err;
    struct model m;
    struct slurmdl *run = open_run (&m, 1);
    int64_t step = 7;

    assert_int_equal (mkfifo (in_dir ("pipe"), 0600), 0);
    for (size_t i = 0; i < COUNT (cases); i++) {
        const char *path = in_dir (cases[i].name);
        assert_int_equal (slurmdl_restore_only (run, NULL, path, &step, &err), -1);
        assert_int_equal (errno, cases[i].error);
        assert_non_null (strstr (err.text, cases[i].why));
        assert_int_equal (slurmdl_checkpoint_verify (path, &step, &err), -1);
        assert_int_equal (errno, cases[i].error);
    }
    assert_int_equal (step, 7);
    slurmdl_close (run);
}

UNATTENDED_CASE (cut_files)
{
    struct model two, m;
    int fd = save_two (&two);
    off_t size = lseek (fd, 0, SEEK_END);
    struct slurmdl *run = open_run (&m, 0);

    for (off_t cut = size - 1; cut >= 0; cut -= 1 + size / 97) {
        int64_t step = 0;
        assert_int_equal (ftruncate (fd, cut), 0);
        assert_int_equal (slurmdl_restore (run, &step, NULL), 1);
        assert_int_equal (step, 1);
    }
    close (fd);
    slurmdl_close (run);
}

/* Restore never goes past the training length.  If several attempts saved the
 * same step, it prefers the attempt whose result was accepted.
 */
UNATTENDED_CASE (which_is_found)
{
    struct model m;
    struct slurmdl *run;
    int64_t step;
    char *path;

    for (int attempt = 1; attempt <= 3; attempt++) {
        run = open_run (&m, attempt);
        for (int s = 1; s <= attempt; s++)
            assert_int_equal (slurmdl_save (run, s * 10, NULL), 0);
        slurmdl_close (run);
    }
    path = slurmdl_checkpoint_find (in_dir ("run"), INT64_MAX, 0, &step);
    assert_non_null (strstr (path, "a.3/ckpt/00000030.h5"));
    assert_int_equal (step, 30);
    free (path);
    path = slurmdl_checkpoint_find (in_dir ("run"), 29, 2, &step);
    assert_non_null (strstr (path, "a.2/ckpt/00000020.h5"));
    free (path);
    path = slurmdl_checkpoint_find (in_dir ("run"), 29, 0, &step);
    assert_non_null (strstr (path, "a.3/ckpt/00000020.h5"));
    free (path);
    assert_null (slurmdl_checkpoint_find (in_dir ("run"), 5, 0, &step));
    assert_int_equal (errno, ENOENT);
}

/* ---- device memory ---- */

/* The backend built from tests/fakes/device.c, and its memory. */
static void *load (unsigned char **device)
{
    void *module = dlopen (BACKEND_DIR "/slurmdl-cuda.so", RTLD_NOW);

    assert_non_null (module);
    *device = ((void *(*)(void))dlsym (module, "fake_device_memory")) ();
    return module;
}

/* Device memory is saved as the host would see it, and restored to the device.
 * Earlier tests in this process saved before CUDA was loaded.
 */
UNATTENDED_CASE (device_memory)
{
    void *module;
    uint64_t n = 5;
    unsigned char host[5] = { 0 };
    unsigned char *device;
    struct slurmdl *run;
    int64_t step;

    setenv ("DL_BACKEND_DIR", "", 1); /* the same as unset */
    module = load (&device);
    run = slurmdl_open (in_dir ("run"), NULL);
    slurmdl_protect (run, "d", SLURMDL_U8, 1, &n, host);
    assert_int_equal (slurmdl_save (run, 0, NULL), 0);
    slurmdl_close (run);
    setenv ("DL_BACKEND_DIR", BACKEND_DIR, 1);
    dlclose (module);
    module = load (&device);
    memcpy (device, "\x5b\x58\x59\x5e\x5f", 5); /* 1 2 3 4 5, mangled */
    run = slurmdl_open (in_dir ("run"), NULL);
    slurmdl_protect (run, "d", SLURMDL_U8, 1, &n, device);
    assert_int_equal (slurmdl_save (run, 1, NULL), 0);
    memset (device, 0, 5);
    assert_int_equal (slurmdl_restore (run, &step, NULL), 1);
    assert_memory_equal (device, "\x5b\x58\x59\x5e\x5f", 5);
    slurmdl_protect (run, "d", SLURMDL_U8, 1, &n, host);
    assert_int_equal (slurmdl_restore (run, &step, NULL), 1);
    assert_memory_equal (host, "\1\2\3\4\5", 5);
    slurmdl_close (run);
    dlclose (module);
}

/* slurmdl_save_async() waits for its snapshot, which goes to pinned memory. */
UNATTENDED_CASE (device_snapshot)
{
    void *module;
    uint64_t n = 600000;
    unsigned char *host = calloc (1, n);
    unsigned char *device;
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    struct slurmdl_error err;
    int (*pinned) (void);
    int64_t step;

    module = load (&device);
    pinned = (int (*) (void))dlsym (module, "fake_pinned");
    for (int k = 0; k < 2; k++) {
        if (k == 1)
            setenv ("FAKE_NO_PINNED", "1", 1);
        memset (device, 0x5a ^ (7 + k), n);
        slurmdl_protect (run, "d", SLURMDL_U8, 1, &n, device);
        assert_int_equal (slurmdl_save_async (run, 1 + k, &err), 0);
        memset (device, 0, n);
        assert_int_equal (pinned (), 1);
        assert_int_equal (slurmdl_save_wait (run, &err), 0);
        slurmdl_protect (run, "d", SLURMDL_U8, 1, &n, host);
        assert_int_equal (slurmdl_restore (run, &step, NULL), 1);
        assert_int_equal (step, 1 + k);
        assert_true (host[0] == 7 + k && !memcmp (host, host + 1, n - 1));
    }
    unsetenv ("FAKE_NO_PINNED");
    slurmdl_close (run);
    assert_int_equal (pinned (), 0);
    dlclose (module);
    free (host);
}

/* ---- metrics ---- */

static int count_row (const struct slurmdl_row *row, void *arg)
{
    ++*(int *)arg;
    return 0;
}

/* A save flushes the metrics first: SIGKILL right after it loses no row. */
UNATTENDED_CASE (metrics_before_checkpoint)
{
    char attempt[32];
    int status;
    int rows;

    for (int step = 1; step <= 10; step++) {
        pid_t pid = fork ();
        if (pid == 0) {
            struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
            slurmdl_log (run, "loss", step, 0.5);
            if (slurmdl_save (run, step, NULL) == 0)
                kill (getpid (), SIGKILL);
            _exit (1);
        }
        assert_int_equal (waitpid (pid, &status, 0), pid);
        assert_true (WIFSIGNALED (status));
        snprintf (attempt, sizeof (attempt), "run/a.%d", step);
        rows = 0;
        slurmdl_metrics_read_dir (in_dir (attempt), count_row, &rows, NULL);
        assert_int_equal (rows, 1);
    }
}

RUN_CASES ()
