/* SPDX-License-Identifier: Apache-2.0 */
/* Check put-if-absent and the decision log. */
#include <limits.h>
#include <sys/resource.h>

#include "launcher/sweep/log.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/small_file.h"
#include "tests/folder.h"

static int files_in_dir (void)
{
    char cmd[128];
    FILE *f;
    int n = -1;

    snprintf (cmd, sizeof (cmd), "ls -A %s | wc -l", dir);
    if ((f = popen (cmd, "r"))) {
        if (fscanf (f, "%d", &n) != 1)
            n = -1;
        pclose (f);
    }
    return n;
}

FOLDER_CASE (first_put_wins)
{
    struct slurmdl_error err = { "" };
    char *text;
    size_t len;

    assert_int_equal (publish_if_absent (in_dir ("x"), "one", 3, &err), LINKED);
    assert_int_equal (publish_if_absent (in_dir ("x"), "two", 3, &err), 1);
    text = file_read (in_dir ("x"), 100, &len, &err);
    assert_string_equal (text, "one");
    assert_int_equal (len, 3);
    assert_int_equal (files_in_dir (), 1); /* no temporary file is left */
    assert_null (file_read (in_dir ("x"), 2, NULL, &err));
    assert_int_equal (errno, EBADMSG);
    free (text);
}

FOLDER_CASE (put_into_a_missing_folder)
{
    struct slurmdl_error err = { "" };

    assert_int_equal (publish_if_absent (in_dir ("no/x"), "1", 1, &err), -1);
    assert_int_equal (errno, ENOENT);
    assert_non_null (strstr (err.text, "cannot write"));
}

enum { RACERS = 8, ROUNDS = 50 };

static void race (int me)
{
    char name[16];
    char text[16];

    for (int i = 0; i < ROUNDS; i++) {
        snprintf (name, sizeof (name), "r%d", i);
        snprintf (text, sizeof (text), "%d", me);
        int rv = publish_if_absent (in_dir (name), text, strlen (text), NULL);
        if (rv == 0) {
            snprintf (name, sizeof (name), "won%d.%d", i, me);
            close (open (in_dir (name), O_CREAT | O_WRONLY, 0600));
        }
        if (rv < 0)
            _exit (1);
    }
    _exit (0);
}

FOLDER_CASE (one_winner_per_name)
{
    for (int i = 0; i < RACERS; i++)
        if (fork () == 0)
            race (i);
    for (int i = 0; i < RACERS; i++) {
        int status;
        wait (&status);
        assert_int_equal (status, 0);
    }
    /* one file per round, and exactly one winner of each */
    assert_int_equal (files_in_dir (), 2 * ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        char name[32];
        char *text;
        snprintf (name, sizeof (name), "r%d", i);
        assert_non_null (text = file_read (in_dir (name), 16, NULL, NULL));
        snprintf (name, sizeof (name), "won%d.%s", i, text);
        assert_int_equal (access (in_dir (name), F_OK), 0);
        free (text);
    }
}

/* ---- log ---- */

/* The trial numbers that collect() saw. */
struct seen {
    long n, sum;
    long at[2000];
};

static int collect (const struct event *event, void *arg, struct slurmdl_error *err)
{
    struct seen *seen = arg;

    assert_int_equal (event->op, EVENT_EXIT);
    assert_true (seen->n < 2000);
    seen->at[seen->n++] = (long)event->trial;
    seen->sum += (long)event->trial;
    return 0;
}

static int append (struct log *log, int n)
{
    struct event event = { .op = EVENT_EXIT, .trial = n, .by = "test" };

    return log_append (log, &event, 1, NULL);
}

FOLDER_CASE (entries_come_in_order)
{
    struct log *a = log_create (in_dir ("log"), NULL);
    struct log *b = log_create (in_dir ("log"), NULL);
    struct seen seen = { 0 };

    assert_int_equal (append (a, 1), 0);
    assert_int_equal (append (b, 2), 1); /* b has not seen entry 1 */
    assert_int_equal (log_sync (b, collect, &seen, NULL), 1);
    assert_int_equal (append (b, 2), 0);
    errno = ENOENT; /* left over from an earlier call */
    assert_int_equal (append (b, 3), 0);
    errno = ENOENT;
    assert_int_equal (append (b, 4), 0);
    assert_int_equal (log_sync (b, collect, &seen, NULL), 0);
    assert_int_equal (log_length (b), 4);
    assert_int_equal (log_sync (a, collect, &seen, NULL), 3);
    assert_int_equal (seen.n, 4);
    assert_int_equal (seen.at[0], 1);
    assert_int_equal (seen.at[1], 2);
    log_destroy (a);
    log_destroy (b);
}

/* A worker waits for space if errno says that the disk is full, so a background sync of the
 * directory must not change errno.
 */
FOLDER_CASE (a_full_disk_is_reported)
{
    struct log *log = log_create (in_dir ("log"), NULL);
    struct rlimit all, none;

    log_defer (log, true);
    assert_int_equal (append (log, 1), 0);
    log_begin_fsync (log);
    assert_int_equal (log_fsync (log, NULL), 0);
    signal (SIGXFSZ, SIG_IGN);
    assert_int_equal (getrlimit (RLIMIT_FSIZE, &all), 0);
    none = (struct rlimit){ 0, all.rlim_max };
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &none), 0);
    assert_int_equal (append (log, 2), -1);
    assert_int_equal (errno, EFBIG);
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &all), 0);
    assert_int_equal (append (log, 2), 0);
    log_destroy (log);
}

enum { WRITERS = 4, EACH = 160 };

static void write_many (struct log *log, int writer)
{
    static struct seen seen;

    for (int k = 1; k <= EACH; k++)
        while (append (log, writer * EACH + k) == 1)
            log_sync (log, collect, &seen, NULL);
    _exit (0);
}

static void read_log (struct seen *seen)
{
    struct log *log = log_create (in_dir ("log"), NULL);

    *seen = (struct seen){ 0 };
    assert_int_equal (log_sync (log, collect, seen, NULL), WRITERS * EACH);
    log_destroy (log);
}

/* The log has several blocks.  Read it from intact, damaged and missing packs. */
FOLDER_CASE (writers_share_a_log)
{
    struct log *log = log_create (in_dir ("log"), NULL);
    static struct seen packed, single, damaged;
    long n = WRITERS * EACH;
    int fd;

    for (int p = 0; p < WRITERS; p++)
        if (fork () == 0)
            write_many (log, p);
    for (int p = 0; p < WRITERS; p++)
        wait (NULL);
    read_log (&packed);
    assert_int_equal (packed.n, n);
    assert_int_equal (packed.sum, n * (n + 1) / 2);
    assert_int_equal (access (in_dir ("log/000000.pack"), F_OK), 0);
    assert_int_equal (access (in_dir ("log/000001.pack"), F_OK), 0);
    fd = open (in_dir ("log/000001.pack"), O_RDWR);
    assert_int_equal (pwrite (fd, "?", 1, 100), 1);
    close (fd);
    read_log (&damaged);
    assert_memory_equal (&packed, &damaged, sizeof (packed));
    unlink (in_dir ("log/000000.pack"));
    unlink (in_dir ("log/000001.pack"));
    read_log (&single);
    assert_memory_equal (&packed, &single, sizeof (packed));
    assert_int_equal (access (in_dir ("log/000001.pack"), F_OK), 0);
    log_destroy (log);
}

/* Once a block is packed, its separate entries are not needed. */
FOLDER_CASE (a_pack_stands_for_its_block)
{
    struct log *log = log_create (in_dir ("log"), NULL);
    static struct seen seen;
    char path[32];

    for (int k = 1; k <= LOG_BLOCK + 3; k++) {
        assert_int_equal (append (log, k), 0);
        assert_int_equal (log_sync (log, collect, &seen, NULL), 0);
    }
    for (int k = 1; k <= LOG_BLOCK; k++) {
        snprintf (path, sizeof (path), "log/000000/%08d", k);
        assert_int_equal (unlink (in_dir (path)), 0);
    }
    log_destroy (log);
    log = log_create (in_dir ("log"), NULL);
    seen = (struct seen){ 0 };
    assert_int_equal (log_sync (log, collect, &seen, NULL), LOG_BLOCK + 3);
    assert_int_equal (seen.at[LOG_BLOCK], LOG_BLOCK + 1);
    assert_int_equal (append (log, 7), 0);
    log_destroy (log);
}

/* Any flipped byte and any truncation of an entry is detected. */
FOLDER_CASE (damage_is_noticed)
{
    struct log *log = log_create (in_dir ("log"), NULL);
    struct seen seen = { 0 };
    const char *path = in_dir ("log/000000/00000001");
    char copy[PATH_MAX];
    char byte;
    struct stat st;
    int fd;

    snprintf (copy, sizeof (copy), "%s", path);
    assert_int_equal (append (log, 7), 0);
    log_destroy (log);
    log = log_create (in_dir ("log"), NULL);
    assert_int_equal (stat (copy, &st), 0);
    fd = open (copy, O_RDWR);
    for (off_t at = 0; at < st.st_size; at++) {
        struct slurmdl_error err = { "" };
        assert_int_equal (pread (fd, &byte, 1, at), 1);
        byte ^= 1;
        assert_int_equal (pwrite (fd, &byte, 1, at), 1);
        assert_int_equal (log_sync (log, collect, &seen, &err), -1);
        assert_int_equal (errno, EBADMSG);
        assert_non_null (strstr (err.text, "damaged"));
        byte ^= 1;
        assert_int_equal (pwrite (fd, &byte, 1, at), 1);
    }
    for (off_t cut = 0; cut < st.st_size; cut++) {
        char *text = file_read (copy, 1000, NULL, NULL);
        assert_int_equal (ftruncate (fd, cut), 0);
        assert_int_equal (log_sync (log, collect, &seen, NULL), -1);
        assert_int_equal (pwrite (fd, text, (size_t)st.st_size, 0), st.st_size);
        free (text);
    }
    assert_int_equal (seen.n, 0);
    assert_int_equal (log_sync (log, collect, &seen, NULL), 1);
    close (fd);
    log_destroy (log);
}

RUN_CASES ()
