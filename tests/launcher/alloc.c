/* SPDX-License-Identifier: Apache-2.0 */
/* Check the allocation functions of dl, and how it exits when memory runs out. */
#include "launcher/sys/alloc.h"

#include <sys/resource.h>

#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "tests/unit.h"

/* More than any machine has. */
static const size_t too_much = PTRDIFF_MAX - 4096;

static void lack_malloc (void)
{
    xmalloc (too_much);
}

static void lack_calloc (void)
{
    xcalloc (too_much, 4);
}

static void lack_realloc (void)
{
    xrealloc (xmalloc (1), too_much);
}

static void lack_reallocarray (void)
{
    xreallocarray (xmalloc (1), SIZE_MAX / 2, 4);
}

static void lack_memdup (void)
{
    xmemdup ("x", too_much);
}

static void lack_grow (void)
{
    xgrow (NULL, (size_t)1 << 62, 8);
}

/* Writes to a stream until memory runs out; run_child() limits it to 64 MiB. */
static void lack_memstream (void)
{
    static const char some[65536];
    char *text;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    for (int i = 0; i < 2048 && !ferror (f); i++)
        fwrite (some, 1, sizeof (some), f);
    xclose_memstream (f);
}

/* Runs 'lack' in a child.  Returns its standard error in 'said', and its wait status. */
static void run_child (void (*lack) (void), char *said, size_t size, int *status)
{
    const struct rlimit limit = { 64 << 20, 64 << 20 };
    ssize_t n;
    int p[2];
    pid_t pid;

    assert_int_equal (pipe (p), 0);
    assert_true ((pid = fork ()) >= 0);
    if (pid == 0) {
        dup2 (p[1], STDERR_FILENO);
        if (lack == lack_memstream)
            setrlimit (RLIMIT_AS, &limit);
        lack ();
        _exit (0);
    }
    close (p[1]);
    assert_true ((n = read (p[0], said, size - 1)) >= 0);
    said[n] = '\0';
    close (p[0]);
    assert_int_equal (waitpid (pid, status, 0), pid);
}

/* dl prints one line and exits with the status in dl(1) for system errors. */
CASE (no_memory)
{
    void (*const lacks[]) (void) = {
        lack_malloc, lack_calloc, lack_realloc,   lack_reallocarray,
        lack_memdup, lack_grow,   lack_memstream,
    };

#ifdef __SANITIZE_ADDRESS__
    SKIP_CASE ("the sanitizer's allocator ends the program itself");
#endif
    for (size_t i = 0; i < COUNT (lacks); i++) {
        char said[256];
        int status;
        run_child (lacks[i], said, sizeof (said), &status);
        assert_string_equal (said, "dl: out of memory\n");
        assert_true (WIFEXITED (status));
        assert_int_equal (WEXITSTATUS (status), EXIT_IO);
    }
}

CASE (some_memory)
{
    char *none = xmalloc (0), *text = xasprintf ("%s-%d", "trial", 7);
    char *copy = xstrdup (text), *part = xstrndup (text, 5);
    char **list = NULL;
    int *numbers = NULL;

    assert_non_null (none);
    assert_null (xstrdup (NULL));
    assert_string_equal (copy, "trial-7");
    assert_string_equal (part, "trial");
    for (int i = 0; i < 1000; i++) {
        XGROW (numbers, (size_t)i);
        numbers[i] = i;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal (numbers[i], i);
    strings_add (&list, text);
    strings_addf (&list, "%03d", 8);
    strings_add_all (&list, (char *[]){ part, NULL });
    assert_string_equal (list[0], "trial-7");
    assert_string_equal (list[1], "008");
    assert_string_equal (list[2], "trial");
    assert_null (list[3]);
    strings_free (list);
    free (none);
    free (text);
    free (copy);
    free (part);
    free (numbers);
}

/* The stream grows as needed, and ftell() includes buffered bytes. */
CASE (a_stream)
{
    char *text;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    for (int i = 0; i < 10000; i++) {
        assert_int_equal (ftell (f), 4 * i);
        fprintf (f, "%04d", i);
    }
    xclose_memstream (f);
    assert_int_equal (size, 40000);
    assert_memory_equal (text + 39996, "9999", 5);
    free (text);
}

RUN_CASES ()
