/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are opened in a directory that others can write to. */
#include "runtime/storage/inside.c"
#include "runtime/storage/link.h"
#include "tests/folder.h"

#define HIDDEN ".0123456789abcdef0123456789abcdef"

/* What others may plant there, and the errno of opening it for reading. */
static const struct {
    const char *name;
    int error;
} rows[] = {
    { "file", 0 },         { "sub/file", 0 },         { "own", 0 }, /* our own link */
    { "link", ELOOP },     { "up", ELOOP },           { "cycle", ELOOP }, { "dangling", ELOOP },
    { "device", ELOOP },   { "way/file", ELOOP },     { "pipe", EINVAL }, { "sub", EINVAL },
    { "nothing", ENOENT }, { "file/below", ENOTDIR },
};

static void touch (const char *name)
{
    int fd = open (in_dir (name), O_WRONLY | O_CREAT, 0666);

    assert_true (fd >= 0);
    assert_int_equal (write (fd, "text", 4), 4);
    close (fd);
}

static int plant (void **state)
{
    if (make_dir (state) < 0)
        return -1;
    mkdir (in_dir ("sub"), 0777);
    touch ("file");
    touch ("sub/file");
    touch (HIDDEN);
    return symlink (HIDDEN, in_dir ("own")) || symlink ("file", in_dir ("link"))
           || symlink ("../" HIDDEN, in_dir ("up")) || symlink ("cycle", in_dir ("cycle"))
           || symlink ("/none", in_dir ("dangling")) || symlink ("/dev/zero", in_dir ("device"))
           || symlink ("sub", in_dir ("way")) || mkfifo (in_dir ("pipe"), 0666);
}

CASE_WITH (kinds, plant, remove_dir)
{
    for (size_t i = 0; i < COUNT (rows); i++) {
        struct stat st;
        int fd = inside_open (in_dir (rows[i].name), O_RDONLY, 0, &st);
        int e = fd < 0 ? errno : 0;
        if (e != rows[i].error)
            fail_msg ("%s: %s", rows[i].name, strerror (e));
        if (fd >= 0)
            assert_true (S_ISREG (st.st_mode));
        assert_non_null (inside_error (e));
        close (fd);
    }
}

/* The fallback for Linux before 5.6 gives the same results. */
CASE_WITH (without_openat2, plant, remove_dir)
{
    for (size_t i = 0; i < COUNT (rows); i++) {
        int fd = walk_path (in_dir (rows[i].name), O_RDONLY | O_NONBLOCK, 0);
        int e = fd < 0 ? errno : 0;
        /* walk_path() checks no file type, and follows not even our own links */
        int want = !strcmp (rows[i].name, "own") ? ELOOP
                   : rows[i].error == EINVAL     ? 0
                                                 : rows[i].error;
        if (e != want)
            fail_msg ("%s: %s", rows[i].name, strerror (e));
        close (fd);
    }
    assert_int_equal (walk_path (in_dir ("way/new"), O_WRONLY | O_CREAT | O_EXCL, 0666), -1);
    assert_int_equal (errno, ELOOP);
}

CASE_WITH (changes, plant, remove_dir)
{
    assert_int_equal (inside_mkdir (in_dir ("way/new"), 0777), -1);
    assert_int_equal (errno, ELOOP);
    assert_int_equal (inside_unlink (in_dir ("way/file"), 0), -1);
    assert_int_equal (errno, ELOOP);
    assert_int_equal (access (in_dir ("sub/file"), F_OK), 0);
    assert_int_equal (inside_open (in_dir ("link"), O_WRONLY | O_CREAT | O_EXCL, 0666, NULL), -1);
    assert_int_equal (errno, EEXIST);
    assert_int_equal (inside_unlink (in_dir ("link"), 0), 0);
    assert_int_equal (access (in_dir ("file"), F_OK), 0);
    assert_int_equal (inside_mkdir (in_dir ("sub/new"), 0777), 0);
}

/* The user's own links are followed, except in a directory that others share. */
CASE_WITH (entered, plant, remove_dir)
{
    char tmp[256];
    char to[128];
    int fd;

    fd = inside_open_any (in_dir ("way/file"), O_RDONLY, 0, NULL);
    assert_true (fd >= 0);
    close (fd);
    assert_int_equal (inside_enter (dir), 0);
    assert_int_equal (inside_enter (dir), 0);
    inside_leave (dir);
    assert_true (inside_has (in_dir ("way/file")));
    assert_int_equal (inside_open_any (in_dir ("way/file"), O_RDONLY, 0, NULL), -1);
    assert_int_equal (errno, ELOOP);
    link_tmp_name (tmp, sizeof (tmp), in_dir ("way/new"));
    touch (HIDDEN);
    snprintf (to, sizeof (to), "%s", in_dir ("way/new"));
    assert_int_equal (link_if_absent (tmp, to), -1);
    assert_int_equal (errno, ELOOP);
    inside_leave (dir);
    assert_false (inside_has (in_dir ("way/file")));
}

RUN_CASES ()
