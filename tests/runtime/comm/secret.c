/* SPDX-License-Identifier: Apache-2.0 */
/* The secret of a step and keys derived from it, notices in files, and cleaned
 * texts.
 */
#include "runtime/comm/net/secret.h"
#include "runtime/comm/net/clean.h"
#include "runtime/comm/net/notice.h"
#include "tests/folder.h"

CASE (parsing)
{
    static const char *const wrong[] = { "",
                                         "0",
                                         "0123456789abcdef0123456789abcde",
                                         "g123456789abcdef0123456789abcdef",
                                         "0123456789abcdef0123456789abcdef0",
                                         "00000000000000000000000000000000",
                                         " 123456789abcdef0123456789abcdef" };
    unsigned char key[HANDSHAKE_KEY];
    char text[SECRET_DIGITS + 1];
    struct slurmdl_error err = { "" };

    assert_int_equal (secret_parse ("0123456789abcdef0123456789ABCDEF", key), 0);
    secret_print (key, text);
    assert_string_equal (text, "0123456789abcdef0123456789abcdef");
    for (size_t i = 0; i < COUNT (wrong); i++)
        assert_int_equal (secret_parse (wrong[i], key), -1);
    setenv ("DL_SECRET", "hunter2", 1);
    assert_int_equal (secret_of_environment ("test", key, &err), SECRET_INVALID);
    assert_non_null (strstr (err.text, "DL_SECRET is not 32 hexadecimal digits"));
    assert_null (strstr (err.text, "hunter2"));
    unsetenv ("DL_SECRET");
    assert_int_equal (secret_of_environment ("test", key, &err), SECRET_UNSET);
}

/* A key is the same within a step, and differs between steps and purposes. */
CASE (deriving)
{
    unsigned char key[5][HANDSHAKE_KEY];

    setenv ("DL_SECRET", "0123456789abcdef0123456789abcdef", 1);
    setenv ("SLURM_JOB_ID", "7", 1);
    setenv ("SLURM_STEP_ID", "0", 1);
    assert_int_equal (secret_of_environment ("test", key[0], NULL), SECRET_FOUND);
    assert_int_equal (secret_of_environment ("test", key[1], NULL), SECRET_FOUND);
    assert_int_equal (secret_of_environment ("other", key[2], NULL), SECRET_FOUND);
    setenv ("SLURM_STEP_ID", "1", 1);
    assert_int_equal (secret_of_environment ("test", key[3], NULL), SECRET_FOUND);
    /* nor is it the same after the job was requeued */
    setenv ("SLURM_STEP_ID", "0", 1);
    setenv ("SLURM_RESTART_COUNT", "1", 1);
    assert_int_equal (secret_of_environment ("test", key[4], NULL), SECRET_FOUND);
    assert_memory_not_equal (key[0], key[4], HANDSHAKE_KEY);
    unsetenv ("SLURM_RESTART_COUNT");
    assert_memory_equal (key[0], key[1], HANDSHAKE_KEY);
    assert_memory_not_equal (key[0], key[2], HANDSHAKE_KEY);
    assert_memory_not_equal (key[0], key[3], HANDSHAKE_KEY);
    unsetenv ("DL_SECRET");
    unsetenv ("SLURM_JOB_ID");
    unsetenv ("SLURM_STEP_ID");
}

static void path_in_home (char *path, const char *name)
{
    snprintf (path, 128, "%s/.slurm-dl%s%s", dir, *name ? "/" : "", name);
}

FOLDER_CASE (in_a_file)
{
    char a[NOTICE_TEXT], path[128], other[128];
    struct slurmdl_error err = { "" };
    struct stat st;

    unsetenv ("HOME");
    errno = 0;
    assert_int_equal (notice_get ("no such file", a, &err), -1);
    assert_int_not_equal (errno, 0);
    *err.text = '\0';
    setenv ("HOME", dir, 1);
    assert_int_equal (notice_get ("7.0.0.1", a, NULL), -1);
    assert_int_equal (errno, ENOENT);
    assert_int_equal (notice_put ("7.0.0.1", "first", &err), 0);
    assert_int_equal (notice_get ("7.0.0.1", a, &err), 0);
    assert_string_equal (a, "first");
    /* a leftover is replaced */
    assert_int_equal (notice_put ("7.0.0.1", "second", &err), 0);
    assert_int_equal (notice_get ("7.0.0.1", a, &err), 0);
    assert_string_equal (a, "second");
    assert_int_equal (notice_get ("7.1.0.1", a, NULL), -1);
    assert_int_equal (errno, ENOENT);
    path_in_home (path, "7.0.0.1");
    assert_int_equal (stat (path, &st), 0);
    assert_int_equal (st.st_mode & 0777, 0600);
    /* a file that others can read is rejected, and so is a link */
    chmod (path, 0640);
    assert_int_equal (notice_get ("7.0.0.1", a, &err), -1);
    assert_int_equal (errno, EPERM);
    assert_non_null (strstr (err.text, "readable only by you"));
    chmod (path, 0600);
    path_in_home (other, "other");
    assert_int_equal (symlink (path, other), 0);
    assert_int_equal (notice_get ("other", a, NULL), -1);
    unlink (other);
    assert_int_equal (mkfifo (other, 0600), 0);
    assert_int_equal (notice_get ("other", a, NULL), -1);
    assert_int_equal (truncate (path, 3), 0); /* without a newline */
    assert_int_equal (notice_get ("7.0.0.1", a, NULL), -1);
    notice_remove ("7.0.0.1");
    assert_int_equal (notice_get ("7.0.0.1", a, NULL), -1);
    assert_int_equal (errno, ENOENT);
    path_in_home (path, "");
    chmod (path, 0755);
    *err.text = '\0';
    assert_int_equal (notice_put ("7.2.0.1", "x", &err), -1);
    assert_non_null (strstr (err.text, "~/.slurm-dl/7.2.0.1"));
}

CASE (cleaning)
{
    static const struct {
        const char *text, *clean;
    } rows[] = { { "rank 1 (n1)", "rank 1 (n1)" },
                 { "\x1b[2J\r\n\t\x7f", "?[2J????" },
                 { "\xc3\xbc \xe2\x82\xac", "\xc3\xbc \xe2\x82\xac" },
                 { "\x9b"
                   "31m \xc2\x9b",
                   "?31m \xc2?" } };
    char text[64];

    for (size_t i = 0; i < COUNT (rows); i++) {
        snprintf (text, sizeof (text), "%s", rows[i].text);
        assert_string_equal (clean_text (text), rows[i].clean);
    }
}

RUN_CASES ()
