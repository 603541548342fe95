/* SPDX-License-Identifier: Apache-2.0 */
/* Put-if-absent and the decision log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/log.h"
#include "launcher/put.h"
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

static void first_put_wins (void **state)
{
    struct slurmdl_error err = { "" };
    char *text;
    size_t len;

    (void)state;
    assert_int_equal (put_if_absent (in_dir ("x"), "one", 3, &err), 0);
    assert_int_equal (put_if_absent (in_dir ("x"), "two", 3, &err), 1);
    text = put_read (in_dir ("x"), 100, &len, &err);
    assert_string_equal (text, "one");
    assert_int_equal (len, 3);
    assert_int_equal (files_in_dir (), 1); /* no temporary file stays */
    assert_null (put_read (in_dir ("x"), 2, NULL, &err));
    assert_int_equal (errno, EFBIG);
    free (text);
}

static void put_into_nowhere (void **state)
{
    struct slurmdl_error err = { "" };

    (void)state;
    assert_int_equal (put_if_absent (in_dir ("no/x"), "1", 1, &err), -1);
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
        int rv = put_if_absent (in_dir (name), text, strlen (text), NULL);
        if (rv == 0) {
            snprintf (name, sizeof (name), "won%d.%d", i, me);
            close (open (in_dir (name), O_CREAT | O_WRONLY, 0600));
        }
        if (rv < 0)
            _exit (1);
    }
    _exit (0);
}

static void one_winner_a_name (void **state)
{
    (void)state;
    for (int i = 0; i < RACERS; i++)
        if (fork () == 0)
            race (i);
    for (int i = 0; i < RACERS; i++) {
        int status;
        wait (&status);
        assert_int_equal (status, 0);
    }
    /* ROUNDS names, and for each exactly one that says it won */
    assert_int_equal (files_in_dir (), 2 * ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        char name[32];
        char *text;
        snprintf (name, sizeof (name), "r%d", i);
        assert_non_null (text = put_read (in_dir (name), 16, NULL, NULL));
        snprintf (name, sizeof (name), "won%d.%s", i, text);
        assert_int_equal (access (in_dir (name), F_OK), 0);
        free (text);
    }
}

/* ---- log ---- */

static int collect (const json_t *event, void *arg, struct slurmdl_error *err)
{
    (void)err;
    return json_array_append (arg, (json_t *)event);
}

static json_t *number (int n)
{
    return json_pack ("[{s:i}]", "n", n);
}

static int append (struct log *log, int n)
{
    json_t *events = number (n);
    int rv = log_append (log, events, NULL);

    json_decref (events);
    return rv;
}

static void entries_come_in_order (void **state)
{
    struct log *a = log_create (in_dir ("log"), NULL);
    struct log *b = log_create (in_dir ("log"), NULL);
    json_t *seen = json_array ();

    (void)state;
    assert_int_equal (append (a, 1), 0);
    assert_int_equal (append (b, 2), 1); /* b has not seen entry 1 */
    assert_int_equal (log_sync (b, collect, seen, NULL), 1);
    assert_int_equal (append (b, 2), 0);
    assert_int_equal (log_sync (b, collect, seen, NULL), 1);
    assert_int_equal (log_sync (b, collect, seen, NULL), 0);
    assert_int_equal (log_length (b), 2);
    assert_int_equal (json_array_size (seen), 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal (json_integer_value (
                              json_object_get (json_array_get (seen, i), "n")),
                          i + 1);
    json_decref (seen);
    log_destroy (a);
    log_destroy (b);
}

static void writers_share_a_log (void **state)
{
    struct log *log = log_create (in_dir ("log"), NULL);
    json_t *seen = json_array ();
    json_t *event;
    size_t i;
    int sum = 0;

    (void)state;
    for (int p = 0; p < 4; p++)
        if (fork () == 0) {
            for (int k = 0; k < 25; k++)
                while (append (log, p * 25 + k) == 1)
                    log_sync (log, collect, json_array (), NULL);
            _exit (0);
        }
    for (int p = 0; p < 4; p++)
        wait (NULL);
    assert_int_equal (log_sync (log, collect, seen, NULL), 100);
    json_array_foreach (seen, i, event)
    {
        sum += (int)json_integer_value (json_object_get (event, "n"));
    }
    assert_int_equal (sum, 4950);
    json_decref (seen);
    log_destroy (log);
}

/* Change one byte at each place of an entry in turn: each is noticed. */
static void damage_is_noticed (void **state)
{
    struct log *log = log_create (in_dir ("log"), NULL);
    json_t *seen = json_array ();
    const char *path = in_dir ("log/00000001");
    char copy[PATH_MAX];
    char byte;
    struct stat st;
    int fd;

    (void)state;
    snprintf (copy, sizeof (copy), "%s", path);
    assert_int_equal (append (log, 7), 0);
    assert_int_equal (stat (copy, &st), 0);
    fd = open (copy, O_RDWR);
    for (off_t at = 0; at < st.st_size; at++) {
        struct slurmdl_error err = { "" };
        assert_int_equal (pread (fd, &byte, 1, at), 1);
        byte ^= 1;
        assert_int_equal (pwrite (fd, &byte, 1, at), 1);
        assert_int_equal (log_sync (log, collect, seen, &err), -1);
        assert_int_equal (errno, EBADMSG);
        assert_non_null (strstr (err.text, "damaged"));
        byte ^= 1;
        assert_int_equal (pwrite (fd, &byte, 1, at), 1);
    }
    for (off_t cut = 0; cut < st.st_size; cut++) {
        char *text = put_read (copy, 1000, NULL, NULL);
        assert_int_equal (ftruncate (fd, cut), 0);
        assert_int_equal (log_sync (log, collect, seen, NULL), -1);
        assert_int_equal (pwrite (fd, text, (size_t)st.st_size, 0), st.st_size);
        free (text);
    }
    assert_int_equal (json_array_size (seen), 0);
    assert_int_equal (log_sync (log, collect, seen, NULL), 1);
    close (fd);
    json_decref (seen);
    log_destroy (log);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER (first_put_wins),
        cmocka_unit_test_setup_teardown (
            put_into_nowhere, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown (
            one_winner_a_name, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown (
            entries_come_in_order, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown (
            writers_share_a_log, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown (
            damage_is_noticed, make_dir, remove_dir),
    };
    return cmocka_run_group_tests_name ("log", tests, NULL, NULL);
}
