/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen code: check patterns, and intact and damaged archives. */
#include "launcher/code/code.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "tests/unit.h"

/* ---- patterns ---- */

CASE (test_patterns)
{
    static const struct row {
        const char *pattern, *path;
        bool is_folder, wanted;
    } rows[] = {
        { "*.pt", "a.pt", false, true },
        { "*.pt", "models/a.pt", false, true },
        { "*.pt", "a.ptx", false, false },
        { "data", "src/data", true, true },
        { "data/", "data", true, true },
        { "data/", "data", false, false },
        { "/data", "data", false, true },
        { "/data", "src/data", false, false },
        { "src/*.c", "src/a.c", false, true },
        { "src/*.c", "src/b/a.c", false, false },
        { "src/**", "src/b/a.c", false, true },
        { "run[0-9]", "run7", true, true },
        { "", "a", false, false },
        { "/", "a", true, false },
    };

    for (size_t i = 0; i < COUNT (rows); i++) {
        char *list[] = { (char *)rows[i].pattern, NULL };
        bool got = pattern_list_has (list, rows[i].path, rows[i].is_folder);
        if (got != rows[i].wanted)
            fail_msg ("'%s' and '%s'", rows[i].pattern, rows[i].path);
    }
    assert_false (pattern_list_has (NULL, "a", false));
}

CASE (test_ignore_file)
{
    char **list = NULL;

    pattern_list_read (&list, "# data\n\ndata/ \r\n*.pt");
    assert_string_equal (list[0], "data/");
    assert_string_equal (list[1], "*.pt");
    assert_null (list[2]);
    strings_free (list);
}

/* ---- archives ---- */

static char root[] = "/tmp/dl-frozen.XXXXXX";

static void make_archive (struct code_archive *a)
{
    struct slurmdl_error err = { "" };
    struct code_file list[] = {
        { .path = (char *)"a/b.txt", .mode = 0755 },
        { .path = (char *)"link", .target = (char *)"/nowhere" },
    };
    const struct code_files c = { .root = root, .list = list, .n = 2 };
    char path[100];
    FILE *f;

    snprintf (path, sizeof (path), "%s/a", root);
    mkdir (path, 0700);
    snprintf (path, sizeof (path), "%s/a/b.txt", root);
    f = fopen (path, "w");
    for (int i = 0; i < 1000; i++)
        fprintf (f, "%d\n", i * i);
    fclose (f);
    assert_int_equal (code_archive_pack (&c, a, &err), 0);
}

CASE (test_same)
{
    struct slurmdl_error err = { "" };
    struct code_archive a, b;
    char path[100];
    char target[20] = "";
    size_t size;
    char *text;

    make_archive (&a);
    make_archive (&b);
    assert_string_equal (a.digest, b.digest);
    snprintf (path, sizeof (path), "%s/to", root);
    mkdir (path, 0700);
    assert_int_equal (code_archive_unpack (a.data, a.size, path, &err), 0);
    snprintf (path, sizeof (path), "%s/to/a/b.txt", root);
    text = file_read_now (path, 1 << 20, &size, NULL, &err);
    assert_non_null (text);
    assert_memory_equal (text, "0\n1\n4\n9\n", 8);
    assert_int_equal (access (path, X_OK), 0);
    free (text);
    snprintf (path, sizeof (path), "%s/to/link", root);
    assert_int_equal (readlink (path, target, sizeof (target)), 8);
    assert_string_equal (target, "/nowhere");
    code_archive_free (&a);
    code_archive_free (&b);
}

static void ignore (const char *path, const void *text, size_t size, void *arg)
{
}

/* Reading a truncated or changed archive succeeds or fails, but never crashes. */
CASE (test_damage)
{
    struct code_archive a;

    make_archive (&a);
    for (size_t i = 0; i + 1 < a.size; i += 7) {
        struct slurmdl_error err = { "" };
        char *copy = malloc (a.size);
        memcpy (copy, a.data, a.size);
        if (code_archive_each (copy, i, ignore, NULL, &err) < 0)
            assert_true (*err.text);
        copy[i] ^= 0x55;
        code_archive_each (copy, a.size, ignore, NULL, NULL);
        free (copy);
    }
    code_archive_free (&a);
}

static int set_up (void **state)
{
    return mkdtemp (root) ? 0 : -1;
}

static int tear_down (void **state)
{
    return remove_tree (root);
}

int main (void)
{
    return run_cases (set_up, tear_down);
}
