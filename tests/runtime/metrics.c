/* SPDX-License-Identifier: Apache-2.0 */
/* needs: root in part */
/* Metrics files: every logged row can be read back, whatever happens meanwhile. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "runtime/metrics/header.h"
#include "runtime/metrics/metrics.h"
#include "runtime/metrics/table.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/crc32c.c"
#include "tests/folder.h"

struct seen {
    long n;
    long wrong; /* rows that are not the expected row n */
    int names;  /* "n0", "n1", ... in turn; 0: only "x" */
};

static int check_row (const struct slurmdl_row *row, void *arg)
{
    struct seen *s = arg;
    char name[16];

    snprintf (name, sizeof (name), "n%ld", s->names ? s->n % s->names : 0);
    s->wrong += row->step != s->n || row->value != (double)s->n / 8
                || strcmp (row->name, s->names ? name : "x") != 0 || row->time < 1.6e9;
    s->n++;
    return 0;
}

static struct seen read_all (int names)
{
    struct seen s = { .names = names };
    struct slurmdl_error err = { "" };

    if (slurmdl_metrics_read (in_dir ("metrics.h5"), check_row, &s, &err) < 0)
        print_error ("%s\n", err.text);
    return s;
}

/* The file has exactly the first 'n' rows, whose names cycle through 'names'. */
static void check_rows (long n, int names)
{
    struct seen s = read_all (names);

    assert_int_equal (s.n, n);
    assert_int_equal (s.wrong, 0);
}

static void log_some (struct slurmdl_metrics *m, long from, long to, int names)
{
    char name[16];

    for (long i = from; i < to; i++) {
        snprintf (name, sizeof (name), "n%ld", names ? i % names : 0);
        assert_int_equal (slurmdl_metrics_log (m, names ? name : "x", i, (double)i / 8), 0);
    }
}

FOLDER_CASE (crc_of_known_bytes)
{
    /* RFC 3720, B.4: 32 bytes of zeros, of ones, and 0 to 31 */
    unsigned char bytes[32] = { 0 };

    assert_int_equal (crc32c (0, bytes, 32), 0x8a9136aa);
    memset (bytes, 0xff, 32);
    assert_int_equal (crc32c (0, bytes, 32), 0x62a8ab43);
    for (unsigned char i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal (crc32c (0, bytes, 32), 0x46dd794e);
    for (size_t n = 0; n <= 32; n++) {
        uint32_t first = crc32c (0, bytes, n);
        uint32_t second = crc32c (0, bytes + n, 32 - n);
        assert_int_equal (crc32c (first, bytes + n, 32 - n), crc32c_plain (0, bytes, 32));
        assert_int_equal (crc32c_join (first, second, 32 - n), 0x46dd794e);
    }
}

FOLDER_CASE (rows_come_back)
{
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, NULL);

    assert_non_null (m);
    log_some (m, 0, 1000, 7);
    assert_int_equal (slurmdl_metrics_flush (m, NULL), 0);
    check_rows (1000, 7); /* while the writer has it open */
    log_some (m, 1000, 1001, 7);
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
    check_rows (1001, 7);
}

FOLDER_CASE (rows_are_written_by_themselves)
{
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, NULL);
    struct seen s = { 0 };

    log_some (m, 0, 5, 0);
    for (int i = 0; i < 1200 && s.n < 5; i++) {
        usleep (50000);
        s = read_all (0);
    }
    assert_int_equal (s.n, 5);
    slurmdl_metrics_destroy (m);
}

/* Grow past the room of the first layout, several times over. */
FOLDER_CASE (file_grows)
{
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, NULL);
    struct stat st;

    log_some (m, 0, 100, 3);
    assert_int_equal (slurmdl_metrics_flush (m, NULL), 0);
    log_some (m, 100, 150000, 3);
    assert_int_equal (slurmdl_metrics_flush (m, NULL), 0);
    check_rows (150000, 3);
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
    check_rows (150000, 3);
    assert_int_equal (stat (in_dir ("metrics.h5"), &st), 0);
    assert_in_range (st.st_size, 150000 * 32, 150000 * 32 + 8192);
}

FOLDER_CASE (each_writer_has_its_file)
{
    struct slurmdl_metrics *a = slurmdl_metrics_create (dir, NULL);
    struct slurmdl_metrics *b = slurmdl_metrics_create (dir, NULL);
    struct seen s = { 0 };

    log_some (a, 0, 10, 0);
    log_some (b, 10, 30, 0);
    slurmdl_metrics_destroy (a);
    slurmdl_metrics_destroy (b);
    assert_int_equal (access (in_dir ("metrics.h5"), F_OK), 0);
    assert_int_equal (access (in_dir ("metrics.1.h5"), F_OK), 0);
    assert_int_equal (slurmdl_metrics_read_dir (dir, check_row, &s, NULL), 0);
    assert_int_equal (s.n, 30);
}

FOLDER_CASE (names_are_checked)
{
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, NULL);
    char name[80];

    assert_int_equal (slurmdl_metrics_log (m, "", 0, 0), -1);
    assert_int_equal (errno, EINVAL);
    memset (name, 'a', sizeof (name));
    name[64] = '\0';
    assert_int_equal (slurmdl_metrics_log (m, name, 0, 0), -1);
    name[63] = '\0';
    assert_int_equal (slurmdl_metrics_log (m, name, 0, NAN), 0);
    for (int i = 0; i < 1022; i++) { /* and "slurmdl" makes 1024 */
        snprintf (name, sizeof (name), "name%d", i);
        assert_int_equal (slurmdl_metrics_log (m, name, 0, 0), 0);
    }
    assert_int_equal (slurmdl_metrics_log (m, "one more", 0, 0), -1);
    assert_int_equal (errno, ENOSPC);
    assert_int_equal (slurmdl_metrics_log (m, "name7", 1, 0), 0);
    assert_int_equal (slurmdl_metrics_destroy (m), -1); /* it lost "one more" */
}

enum { THREADS = 4, PER_THREAD = 20000 };

static void *log_from_thread (void *arg)
{
    for (int i = 0; i < PER_THREAD; i++)
        slurmdl_metrics_log (arg, i % 2 ? "odd" : "even", i, 1);
    return NULL;
}

static int add_up (const struct slurmdl_row *row, void *arg)
{
    *(double *)arg += row->value;
    return 0;
}

FOLDER_CASE (threads_share_a_file)
{
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, NULL);
    pthread_t t[THREADS];
    double sum = 0;

    for (int i = 0; i < THREADS; i++)
        pthread_create (&t[i], NULL, log_from_thread, m);
    for (int i = 0; i < THREADS; i++)
        pthread_join (t[i], NULL);
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
    slurmdl_metrics_read (in_dir ("metrics.h5"), add_up, &sum, NULL);
    assert_true (sum == THREADS * PER_THREAD);
}

FOLDER_CASE (child_does_not_write)
{
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, NULL);
    int status;
    pid_t pid;

    log_some (m, 0, 1, 0);
    if ((pid = fork ()) == 0) {
        int rv = slurmdl_metrics_log (m, "x", 1, 1);
        slurmdl_metrics_destroy (m);
        _exit (rv == -1 ? 0 : 1);
    }
    waitpid (pid, &status, 0);
    assert_int_equal (status, 0);
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
    check_rows (1, 0);
}

static bool on_small_disk (void)
{
    return mount ("none", dir, "tmpfs", 0, "size=300k") == 0;
}

/* Also after a case that failed half-way, with its files open. */
static int remove_disk (void **state)
{
    umount2 (dir, MNT_DETACH);
    return remove_dir (state);
}

/* A flush reports a full disk.  Rows stay in memory, and are written once there
 * is room again.
 */
CASE_WITH (full_disk, make_dir, remove_disk)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_metrics *m;
    FILE *f;

    if (!on_small_disk ())
        SKIP_CASE ("a full disk needs root");
    m = slurmdl_metrics_create (dir, NULL);
    f = fopen (in_dir ("filler"), "w");
    for (int i = 0; i < 300 && fputs ("x", f) >= 0; i++)
        fprintf (f, "%1023s", "");
    fclose (f);
    log_some (m, 0, 20000, 0);
    assert_int_equal (slurmdl_metrics_flush (m, &err), -1);
    assert_int_equal (errno, ENOSPC);
    assert_non_null (strstr (err.text, "cannot write: No space left"));
    assert_non_null (strstr (err.text, "0 are lost"));
    assert_true (read_all (0).wrong == 0);
    unlink (in_dir ("filler"));
    assert_int_equal (mount ("none", dir, "tmpfs", MS_REMOUNT, "size=4m"), 0);
    assert_int_equal (slurmdl_metrics_flush (m, &err), 0);
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
    check_rows (20000, 0);
}

/* A thread that logs more than the memory holds waits for the disk. */
FOLDER_CASE (much_at_once)
{
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, NULL);
    enum { MUCH = 3000000 };

    for (long i = 0; i < MUCH; i++)
        if (slurmdl_metrics_log (m, "x", i, (double)i / 8) < 0)
            fail_msg ("row %ld is lost", i);
    assert_int_equal (slurmdl_metrics_flush (m, NULL), 0);
    check_rows (MUCH, 0); /* the file is still open, and has grown */
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
    check_rows (MUCH, 0);
}

/* A full disk blocks nobody: rows that exceed the memory are lost at once. */
CASE_WITH (full_disk_does_not_block, make_dir, remove_disk)
{
    struct slurmdl_metrics *m;
    long lost = 0;

    if (!on_small_disk ())
        SKIP_CASE ("a full disk needs root");
    m = slurmdl_metrics_create (dir, NULL);
    log_some (m, 0, 20000, 0);
    assert_int_equal (slurmdl_metrics_flush (m, NULL), -1);
    for (long i = 0; i < 3000000; i++)
        lost += slurmdl_metrics_log (m, "x", i, 0) < 0;
    assert_true (lost > 1000000);
    /* the event stays in memory until the end */
    assert_int_equal (metrics_event (m, "note", 1, "{}"), 0);
    assert_int_equal (slurmdl_metrics_destroy (m), -1);
}

FOLDER_CASE (not_a_metrics_file)
{
    struct slurmdl_error err = { "" };
    FILE *f = fopen (in_dir ("metrics.h5"), "w");

    fputs ("this is no HDF5 file", f);
    fclose (f);
    assert_int_equal (slurmdl_metrics_read (in_dir ("metrics.h5"), add_up, NULL, &err), -1);
    assert_int_equal (errno, EBADMSG);
    assert_non_null (strstr (err.text, "metrics.h5"));
    assert_int_equal (slurmdl_metrics_read_dir (in_dir ("none"), add_up, NULL, NULL), 0);
    assert_null (slurmdl_metrics_create (in_dir ("none"), &err));
}

static hid_t copy_attribute (hid_t from, hid_t to)
{
    hid_t space = H5Screate (H5S_SCALAR);
    hid_t a = H5Acreate2 (to, "attempt", H5T_STD_I32BE, space, H5P_DEFAULT, H5P_DEFAULT);
    hid_t old = H5Aopen (from, "attempt", H5P_DEFAULT);
    long long attempt;

    H5Aread (old, H5T_NATIVE_LLONG, &attempt);
    H5Awrite (a, H5T_NATIVE_LLONG, &attempt);
    H5Aclose (old);
    H5Sclose (space);
    return H5Aclose (a);
}

/* Copy the file as h5repack --low=1 --high=1 does. */
static void repack (const char *path, const char *other)
{
    static const char *const names[] = { "names", "metrics", "records", "bytes" };
    hid_t list = H5Pcreate (H5P_FILE_ACCESS);
    hid_t from = H5Fopen (path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t to;

    H5Pset_libver_bounds (list, H5F_LIBVER_V18, H5F_LIBVER_V18);
    to = H5Fcreate (other, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    for (int i = 0; i < 4; i++)
        assert_true (H5Ocopy (from, names[i], to, names[i], H5P_DEFAULT, H5P_DEFAULT) >= 0);
    copy_attribute (from, to);
    H5Fclose (to);
    H5Fclose (from);
    H5Pclose (list);
}

static int add_attempt (const struct slurmdl_row *row, void *arg)
{
    *(long *)arg += row->attempt * row->step;
    return 0;
}

FOLDER_CASE (libhdf5_reads_other_layouts)
{
    struct slurmdl_metrics *m;
    struct source in_place, repacked;
    char path[64], other[64];
    long sums[2] = { 0, 0 };

    setenv ("DL_ATTEMPT", "3", 1);
    m = slurmdl_metrics_create (dir, NULL);
    unsetenv ("DL_ATTEMPT");
    log_some (m, 0, 3000, 7);
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
    snprintf (path, sizeof (path), "%s", in_dir ("metrics.h5"));
    snprintf (other, sizeof (other), "%s", in_dir ("other.h5"));
    repack (path, other);
    assert_int_equal (source_open (&in_place, path), 0);
    assert_int_equal (source_open (&repacked, other), 0);
    assert_true (in_place.file < 0 && repacked.file >= 0);
    source_close (&in_place);
    source_close (&repacked);
    assert_int_equal (slurmdl_metrics_read (path, add_attempt, &sums[0], NULL), 0);
    assert_int_equal (slurmdl_metrics_read (other, add_attempt, &sums[1], NULL), 0);
    assert_true (sums[0] == 3L * 2999 * 3000 / 2 && sums[1] == sums[0]);
}

static void check_about (const char *name, int64_t wanted)
{
    char bytes[8192];
    struct header_image image = { bytes, 0 };
    FILE *f = fopen (in_dir ("metrics.h5"), "r");
    uint64_t at;
    int64_t n;

    image.size = fread (bytes, 1, sizeof (bytes), f);
    fclose (f);
    at = header_number (&image, name);
    assert_in_range (at, 1, image.size - 8);
    memcpy (&n, bytes + at, sizeof (n));
    assert_int_equal (n, wanted);
}

/* A file that was made ahead of time is later given to another attempt. */
FOLDER_CASE (a_spare_file_gets_its_attempt)
{
    static const char hidden[] = ".0123456789abcdef0123456789abcdef";
    struct metrics_file_about about = metrics_about ("exp", 1, 1);
    struct slurmdl_metrics *m = metrics_spare (dir, hidden, &about);
    struct seen s = { 0 };
    int folder;

    assert_non_null (m);
    assert_int_equal (access (in_dir (hidden), F_OK), 0);
    assert_int_equal (access (in_dir ("metrics.h5"), F_OK), -1);
    about = metrics_about ("exp", 1234567890123, 7);
    folder = open (dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal (metrics_move (m, dir, folder, &about), 0);
    close (folder);
    log_some (m, 0, 10, 0);
    assert_int_equal (slurmdl_metrics_flush (m, NULL), 0);
    check_about ("trial", 1234567890123);
    check_about ("attempt", 7);
    log_some (m, 10, 3000, 0); /* too many: a larger file replaces it */
    assert_int_equal (slurmdl_metrics_flush (m, NULL), 0);
    check_about ("trial", 1234567890123);
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
    check_about ("attempt", 7);
    assert_int_equal (access (in_dir (hidden), F_OK), -1);
    assert_int_equal (slurmdl_metrics_read_dir (dir, check_row, &s, NULL), 0);
    assert_int_equal (s.n, 3000);
    assert_int_equal (s.wrong, 0);
}

/* If the file is removed, the writer writes all rows again.  If its directory
 * is removed, flush reports it.
 */
FOLDER_CASE (removed_meanwhile)
{
    struct slurmdl_error err;
    struct seen s = { 0 };
    char sub[512];
    struct slurmdl_metrics *m;

    snprintf (sub, sizeof (sub), "%s", in_dir ("sub"));
    assert_int_equal (mkdir (sub, 0777), 0);
    m = slurmdl_metrics_create (sub, NULL);
    log_some (m, 0, 10, 0);
    assert_int_equal (slurmdl_metrics_flush (m, NULL), 0);
    assert_int_equal (unlink (in_dir ("sub/metrics.h5")), 0);
    log_some (m, 10, 20, 0);
    assert_int_equal (slurmdl_metrics_flush (m, NULL), 0);
    assert_int_equal (slurmdl_metrics_read_dir (sub, check_row, &s, NULL), 0);
    assert_int_equal (s.n, 20);
    assert_int_equal (s.wrong, 0);
    assert_int_equal (unlink (in_dir ("sub/metrics.h5")), 0);
    assert_int_equal (rmdir (sub), 0);
    log_some (m, 20, 30, 0);
    assert_int_equal (slurmdl_metrics_flush (m, &err), -1);
    assert_non_null (strstr (err.text, "sub/metrics.h5: cannot write: the file or its "
                                       "folder was removed"));
    assert_int_equal (slurmdl_metrics_destroy (m), -1);
}

/* Whatever the header holds, the reader stays within it. */
FOLDER_CASE (damaged_headers)
{
    static const char *const names[] = { "names", "metrics", "bytes", "none" };
    char *bytes = malloc (8192); /* on the heap, so that sanitizers catch overruns */
    FILE *f;
    size_t n;

    assert_int_equal (slurmdl_metrics_destroy (slurmdl_metrics_create (dir, NULL)), 0);
    f = fopen (in_dir ("metrics.h5"), "r");
    n = fread (bytes, 1, 8192, f);
    fclose (f);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        struct header_image image = { bytes, n - bit % 8 * 100 };
        struct header_dataset d;
        int64_t attempt;
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        header_attempt (&image, &attempt);
        for (int i = 0; i < 4; i++)
            if (header_find (&image, names[i], &d) == 0)
                assert_true (d.storage + 16 <= image.size);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    free (bytes);
}

/* Offset of the row with this value, which follows its step and time. */
static long find_row (const char *bytes, long size, double value)
{
    for (long at = 0; at + 8 <= size; at += 8)
        if (!memcmp (bytes + at, &value, 8))
            return at - 16;
    fail ();
    return 0;
}

enum damage { FLIP_BIT, ZERO_STEP, ZERO_ROW };

/* Damage the row with this value; ZERO_STEP zeroes only its step. */
static void spoil (double value, enum damage how)
{
    static char bytes[1 << 20];
    FILE *f = fopen (in_dir ("metrics.h5"), "r+");
    long size = (long)fread (bytes, 1, sizeof (bytes), f);
    long at = find_row (bytes, size, value);

    if (how == FLIP_BIT)
        bytes[at] ^= 4;
    else
        memset (bytes + at, 0, how == ZERO_STEP ? 8 : 32);
    rewind (f);
    fwrite (bytes, 1, (size_t)size, f);
    fclose (f);
}

/* The reader returns the rows that are left and reports the lost ones.  Zeros
 * at the end are rows that were never written.
 */
FOLDER_CASE (damaged_rows_are_reported)
{
    /* clang-format off */
    static const struct {
        double value;
        enum damage how;
        const char *lost; /* part of the message; NULL: no error */
    } steps[] = {
        { 9 + 16, ZERO_ROW,  NULL },
        { 8 + 16, ZERO_STEP, "1 row is lost, the first is number 9 " },
        { 3 + 16, FLIP_BIT,  "2 rows are lost, the first is number 4 " },
        { 6 + 16, ZERO_ROW,  "3 rows are lost, the first is number 4 " },
        { 0 + 16, FLIP_BIT,  "4 rows are lost, the first is number 1 " },
    };
    /* clang-format on */
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, NULL);
    double wanted = 0;

    for (int i = 0; i < 10; i++) {
        assert_int_equal (slurmdl_metrics_log (m, "x", i, i + 16), 0);
        wanted += i + 16;
    }
    assert_int_equal (slurmdl_metrics_destroy (m), 0);
    for (size_t i = 0; i < COUNT (steps); i++) {
        struct slurmdl_error err = { "" };

        spoil (steps[i].value, steps[i].how);
        wanted -= steps[i].value;
        for (int folder = 0; folder < 2; folder++) {
            double sum = 0;
            int rv;
            errno = 0;
            rv = folder ? slurmdl_metrics_read_dir (dir, add_up, &sum, &err)
                        : slurmdl_metrics_read (in_dir ("metrics.h5"), add_up, &sum, &err);
            assert_true (sum == wanted);
            assert_int_equal (rv, steps[i].lost ? -1 : 0);
            if (steps[i].lost) {
                assert_int_equal (errno, EBADMSG);
                assert_non_null (strstr (err.text, "metrics.h5: damaged: "));
                assert_non_null (strstr (err.text, steps[i].lost));
            }
        }
    }
}

RUN_CASES ()
