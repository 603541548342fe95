/* SPDX-License-Identifier: Apache-2.0 */
/* needs: root in part */
/* Check whose checkpoints a fork may use, and when it copies a registered file. */
#include "launcher/sys/take_file.h"
#include "tests/folder.h"

enum { OTHER = 61001, THIRD = 61002 };

static void put_file (const char *name, uid_t owner, mode_t mode)
{
    int fd = open (in_dir (name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_int_equal (write (fd, "weights", 7), 7);
    assert_int_equal (fchown (fd, owner, (gid_t)-1), 0);
    assert_int_equal (fchmod (fd, mode), 0);
    close (fd);
}

/* Take the file.  Returns its link count, or -1 with errno. */
static long names_after (uid_t wanted)
{
    char from[128], to[128];
    struct stat st;
    strcpy (from, in_dir ("from"));
    strcpy (to, in_dir ("to"));
    unlink (to);
    if (file_take_of (from, to, wanted) < 0)
        return -1;
    assert_int_equal (stat (to, &st), 0);
    assert_int_equal (st.st_size, 7);
    return (long)st.st_nlink;
}

/* A user's own file if only they can write to it, and any file with --trust any. */
FOLDER_CASE (own_files)
{
    put_file ("from", (uid_t)-1, 0644);
    assert_int_equal (names_after (OTHER), 2);
    put_file ("from", (uid_t)-1, 0666);
    assert_int_equal (names_after (geteuid ()), -1);
    assert_int_equal (errno, EPERM);
    assert_int_equal (names_after ((uid_t)ANYBODY), 2);
}

/* A file of the experiment's owner if only the owner can write to it. */
FOLDER_CASE (files_of_others)
{
    static const struct row {
        uid_t owner, wanted;
        mode_t mode;
        long names;
    } rows[] = {
        { OTHER, OTHER, 0644, 2 },          { OTHER, OTHER, 0444, 2 },  { OTHER, OTHER, 0664, -1 },
        { OTHER, OTHER, 0646, -1 },         { THIRD, OTHER, 0644, -1 }, { OTHER, 0, 0644, -1 },
        { THIRD, (uid_t)ANYBODY, 0666, 2 },
    };

    if (geteuid ())
        SKIP_CASE ("files of others need root");
    for (size_t i = 0; i < COUNT (rows); i++) {
        put_file ("from", rows[i].owner, rows[i].mode);
        if (names_after (rows[i].wanted) != rows[i].names)
            fail_msg ("row %zu", i);
        unlink (in_dir ("from"));
    }
}

/* A file that another user could still change is copied, any other is linked. */
FOLDER_CASE (registered)
{
    const uid_t owners[] = { geteuid (), OTHER };
    char from[128];
    struct stat st;

    strcpy (from, in_dir ("from"));
    for (size_t i = 0; i < (geteuid () ? 1 : COUNT (owners)); i++) {
        put_file ("from", owners[i], 0644);
        assert_int_equal (file_take (from, in_dir ("to")), 0);
        assert_int_equal (stat (in_dir ("to"), &st), 0);
        assert_int_equal (st.st_nlink, i ? 1 : 2);
        /* a copy of another user's file ends with a record of the owner */
        assert_int_equal (st.st_size, i ? 7 + 40 : 7);
        unlink (in_dir ("to"));
        unlink (from);
    }
}

RUN_CASES ()
