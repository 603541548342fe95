/* SPDX-License-Identifier: Apache-2.0 */
/* Logging to a disk that fails or hangs, from child processes and threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "runtime/base/clock.h"
#include "tests/runtime/logged.h"

/* For LeakSanitizer: memory that a hanging thread, or a parent, still owns. */
const char *__lsan_default_suppressions (void);
const char *__lsan_default_suppressions (void)
{
    return "leak:metrics_create";
}

/* ---- a disk that fails or hangs ---- */

static atomic_int refusal; /* errno; -1: hang */
static atomic_int hanging; /* how many calls hang now */
static atomic_int forgets; /* drop writes, and report it only at the next sync */

static int disk (void)
{
    int e = atomic_load (&refusal);

    atomic_fetch_add (&hanging, 1);
    while (atomic_load (&refusal) < 0)
        usleep (1000);
    atomic_fetch_sub (&hanging, 1);
    errno = e;
    return e > 0 ? -1 : 0;
}

static void await_hanging (int n)
{
    for (int i = 0; i < 60000 && atomic_load (&hanging) != n; i++)
        usleep (1000);
    assert_int_equal (atomic_load (&hanging), n);
}

ssize_t pwrite (int fd, const void *buf, size_t n, off_t at)
{
    if (atomic_load (&forgets))
        return (ssize_t)n;
    return disk () < 0 ? -1 : syscall (SYS_pwrite64, fd, buf, n, at);
}

int fdatasync (int fd)
{
    if (atomic_exchange (&forgets, 0)) {
        errno = ENOSPC;
        return -1;
    }
    return disk () < 0 ? -1 : (int)syscall (SYS_fdatasync, fd);
}

static int count_row (const struct slurmdl_row *r, void *arg)
{
    long *n = arg;

    n[r->value != 1]++;
    return 0;
}

FOLDER_CASE (a_disk_that_refuses)
{
    static const int errnos[] = { ENOSPC, EDQUOT, EIO };
    struct slurmdl_error err;
    long rows[2] = { 0 };
    struct slurmdl *run;

    for (size_t k = 0; k < 3; k++) {
        run = open_run ();
        assert_int_equal (slurmdl_trouble (run, &err), 0);
        atomic_store (&refusal, errnos[k]);
        for (int i = 0; i < 5000; i++)
            assert_int_equal (slurmdl_log (run, "a", i, 1), 0);
        assert_int_equal (slurmdl_log_text (run, "t", 1, "text"), 0);
        assert_int_equal (slurmdl_flush (run, &err), -1);
        assert_int_equal (errno, errnos[k]);
        assert_int_equal (slurmdl_trouble (run, &err), 1);
        assert_non_null (strstr (err.text, "cannot write"));
        assert_int_equal (slurmdl_flush (run, &err), -1);
        assert_int_equal (slurmdl_trouble (run, &err), 0); /* reported only once */
        atomic_store (&refusal, 0);
        assert_int_equal (slurmdl_flush (run, &err), 0);
        assert_int_equal (slurmdl_lost (run), 0);
        assert_int_equal (slurmdl_close (run), 0);
        rows[0] = rows[1] = 0;
        slurmdl_metrics_read_dir (attempt_dir ((long)k + 1), count_row, rows, NULL);
        assert_int_equal (rows[0], 5000);
    }
}

/* A network file system may report a full server only when the client syncs. */
FOLDER_CASE (a_client_that_fails_at_sync)
{
    struct slurmdl *run = open_run ();
    struct text got = { .n = 0 };
    struct slurmdl_error err;
    long rows[2] = { 0 };

    assert_int_equal (slurmdl_log (run, "a", 0, 1), 0);
    assert_int_equal (slurmdl_flush (run, &err), 0);
    atomic_store (&forgets, 1);
    for (int i = 1; i < 100; i++)
        assert_int_equal (slurmdl_log (run, i % 2 ? "a" : "b", i, 1), 0);
    assert_int_equal (slurmdl_log_text (run, "t", 1, "text"), 0);
    assert_int_equal (slurmdl_flush (run, &err), -1);
    assert_int_equal (errno, ENOSPC);
    assert_int_equal (slurmdl_flush (run, &err), 0);
    assert_int_equal (slurmdl_lost (run), 0);
    assert_int_equal (slurmdl_close (run), 0);
    assert_int_equal (slurmdl_metrics_read_dir (attempt_dir (1), count_row, rows, &err), 0);
    assert_int_equal (rows[0], 100);
    slurmdl_records_read_dir (attempt_dir (1), add_record, &got, NULL);
    assert_non_null (strstr (got.text, "text"));
}

/* Training continues.  Rows that do not fit into the queue are counted as lost,
 * and the file records how many.
 */
FOLDER_CASE (a_disk_that_hangs)
{
    struct slurmdl *run = open_run ();
    struct slurmdl_metric *a = slurmdl_metric (run, "a");
    struct text got = { .n = 0 };
    long rows[2] = { 0 };
    struct slurmdl_error err;
    long refused = 0;
    double begin;

    slurmdl_log_to (a, 0, 1);
    assert_int_equal (slurmdl_flush (run, NULL), 0);
    atomic_store (&refusal, -1);
    slurmdl_log_to (a, 0, 1);
    await_hanging (1);
    begin = monotonic ();
    for (int i = 0; i < 1100000; i++)
        refused += slurmdl_log_to (a, i, 1) < 0;
    assert_true (monotonic () - begin < 60);
    assert_true (refused > 0 && refused < 1100000 - 1000000);
    assert_int_equal (slurmdl_lost (run), refused);
    assert_int_equal (slurmdl_trouble (run, &err), 1);
    assert_non_null (strstr (err.text, "are lost"));
    atomic_store (&refusal, 0);
    assert_int_equal (slurmdl_flush (run, NULL), -1); /* some are lost */
    assert_int_equal (slurmdl_close (run), -1);
    slurmdl_metrics_read_dir (attempt_dir (1), count_row, rows, NULL);
    assert_int_equal (rows[0], 1100002 - refused);
    slurmdl_records_read_dir (attempt_dir (1), add_record, &got, NULL);
    assert_non_null (strstr (got.text, "{\"lost\": "));
}

FOLDER_CASE (closing_while_it_hangs)
{
    struct slurmdl *run = open_run ();
    double begin = monotonic ();

    atomic_store (&refusal, -1);
    slurmdl_log (run, "a", 1, 1);
    assert_int_equal (slurmdl_close (run), -1);
    assert_int_equal (errno, ETIMEDOUT);
    assert_in_range (monotonic () - begin, 9, 100);
    atomic_store (&refusal, 0);
    await_hanging (0);
    usleep (300000); /* the thread exits, and must not free anything of the test */
}

FOLDER_CASE (children_of_fork)
{
    struct slurmdl *run = open_run ();
    struct slurmdl_metric *a = slurmdl_metric (run, "a");
    long rows[2] = { 0 };
    int status;

    for (int k = 0; k < 8; k++) {
        slurmdl_log_to (a, k, 1);
        pid_t pid = fork ();
        if (pid == 0) {
            alarm (100);
            int bad = slurmdl_log_to (a, k, 2) == 0 || slurmdl_log (run, "b", k, 2) == 0
                      || errno != EPERM || slurmdl_log_text (run, "t", k, "child") == 0
                      || slurmdl_epoch (run, 1) == 0 || slurmdl_flush (run, NULL) == 0
                      || slurmdl_close (run) != 0;
            exit (bad);
        }
        waitpid (pid, &status, 0);
        assert_int_equal (status, 0);
    }
    assert_int_equal (slurmdl_close (run), 0);
    slurmdl_metrics_read_dir (attempt_dir (1), count_row, rows, NULL);
    assert_int_equal (rows[0], 8);
    assert_int_equal (rows[1], 0);
}

enum { THREADS = 4, PER_THREAD = 20000 };

static void *log_all_kinds (void *arg)
{
    struct slurmdl *run = arg;
    char name[16];

    for (int i = 0; i < PER_THREAD; i++) {
        snprintf (name, sizeof (name), "n%d", i / 100);
        slurmdl_log (run, name, i, 1);
        if (i % 100 == 0)
            slurmdl_log_vector (run, name, i, 1, (double[]){ 1 });
        if (i % 5000 == 0)
            slurmdl_flush (run, NULL);
        slurmdl_trouble (run, NULL);
    }
    return NULL;
}

static int count_record (const struct slurmdl_record *r, void *arg)
{
    *(long *)arg += r->size == 8;
    return 0;
}

FOLDER_CASE (threads)
{
    struct slurmdl *run = open_run ();
    long rows[2] = { 0 };
    pthread_t t[THREADS];
    long records = 0;

    for (int i = 0; i < THREADS; i++)
        pthread_create (&t[i], NULL, log_all_kinds, run);
    for (int i = 0; i < THREADS; i++)
        pthread_join (t[i], NULL);
    assert_int_equal (slurmdl_close (run), 0);
    slurmdl_metrics_read_dir (attempt_dir (1), count_row, rows, NULL);
    assert_int_equal (rows[0], THREADS * PER_THREAD);
    slurmdl_records_read_dir (attempt_dir (1), count_record, &records, NULL);
    assert_int_equal (records, THREADS * PER_THREAD / 100);
}

FOLDER_CASE (other_ranks_log_nowhere)
{
    struct slurmdl *run;

    setenv ("RANK", "1", 1);
    setenv ("WORLD_SIZE", "2", 1);
    run = open_run ();
    unsetenv ("RANK");
    unsetenv ("WORLD_SIZE");
    assert_int_equal (slurmdl_log_to (slurmdl_metric (run, "a"), 1, 1), 0);
    assert_int_equal (slurmdl_log_text (run, "t", 1, "text"), 0);
    assert_int_equal (slurmdl_epoch (run, 1), 0);
    assert_int_equal (slurmdl_event (run, "e", "{}"), 0);
    assert_int_equal (slurmdl_lost (run), 0);
    assert_int_equal (slurmdl_close (run), 0);
}

RUN_CASES ()
