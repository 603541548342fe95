/* SPDX-License-Identifier: Apache-2.0 */
/* Parse recorded stacks of faulthandler, gdb, eu-stack and the kernel. */
#include <sys/prctl.h>

#include "launcher/debug/debug.h"
#include "launcher/debug/stacks.h"
#include "tests/unit.h"

enum { MAX = 64 };

/* Recorded with Python 3.11 and torch 1.13; the main thread comes last. */
#define PYTHON_WAITS                                                                               \
    "== python\n"                                                                                  \
    "Thread 0x00007f27aabf5040 (most recent call first):\n"                                        \
    "  File \"/usr/lib/python3.11/selectors.py\", line 415 in select\n"                            \
    "  File \"/home/u/train.py\", line 7 in pin_memory\n"                                          \
    "\n"                                                                                           \
    "Current thread 0x00007f27aabf5041 (most recent call first):\n"                                \
    "  File "                                                                                      \
    "\"/usr/lib/python3/dist-packages/torch/distributed/"                                          \
    "distributed_c10d.py\", line 1320 in all_reduce\n"                                             \
    "  File \"/home/u/train.py\", line 41 in step\n"                                               \
    "  File \"/home/u/train.py\", line 60 in <module>\n"
#define PYTHON_LOADS                                                                               \
    "== python\n"                                                                                  \
    "Current thread 0x00007f27aabf5041 (most recent call first):\n"                                \
    "  File \"/home/u/data.py\", line 12 in load\n"                                                \
    "  File \"/home/u/train.py\", line 38 in step\n"
#define KERNEL "== kernel\n4711 python3 S futex_do_wait 202\n"

#define GDB                                                                                        \
    "== native\n"                                                                                  \
    "Thread 2 (Thread 0x7f910750a6c0 (LWP 16229) \"a.out\"):\n"                                    \
    "#0  futex_wait (private=0, expected=2, futex_word=0x5619ba034040 <m>) "                       \
    "at ../sysdeps/nptl/futex-internal.h:146\n"                                                    \
    "#4  0x00005619ba031164 in other (a=0x0) at /tmp/x.c:3\n"                                      \
    "\n"                                                                                           \
    "Thread 1 (Thread 0x7f910750b740 (LWP 16227) \"a.out\"):\n"                                    \
    "#0  futex_wait (private=0, expected=2, futex_word=0x5619ba034040 <m>) "                       \
    "at ../sysdeps/nptl/futex-internal.h:146\n"                                                    \
    "#1  __GI___lll_lock_wait (futex=futex@entry=0x5619ba034040 <m>, "                             \
    "private=0) at ./nptl/lowlevellock.c:49\n"                                                     \
    "#2  0x00007f910759a482 in lll_mutex_lock_optimized "                                          \
    "(mutex=0x5619ba034040 <m>) at ./nptl/pthread_mutex_lock.c:48\n"                               \
    "#3  ___pthread_mutex_lock (mutex=0x5619ba034040 <m>) at "                                     \
    "./nptl/pthread_mutex_lock.c:93\n"                                                             \
    "#4  0x00005619ba03117d in wait_for_lock () at /tmp/x.c:4\n"                                   \
    "#5  0x00005619ba0311b9 in main () at /tmp/x.c:5\n"                                            \
    "[Inferior 1 (process 16227) detached]\n"
#define EU_STACK                                                                                   \
    "== native\n"                                                                                  \
    "PID 5 - process\n"                                                                            \
    "TID 5:\n"                                                                                     \
    "#0  0x00007f85a1b9e0b7 pthread_cond_wait\n"                                                   \
    "#1  0x00005619ba03117d ncclCommFinalize\n"                                                    \
    "#2  0x00005619ba0311b9 main\n"                                                                \
    "TID 6:\n"                                                                                     \
    "#0  0x00007f85a1b9e0b7 poll\n"

static size_t parse (struct stack *s, const char *text)
{
    return stacks_parse (text, s, 0, MAX);
}

CASE (python_main_thread)
{
    struct stack s[MAX];
    char text[256];

    assert_int_equal (parse (s, "== rank 3 on n2\n== process 4711 python3 S\n" PYTHON_WAITS KERNEL
                                "== process 4712 python3 S helper\n" PYTHON_LOADS KERNEL),
                      1);
    assert_int_equal (s[0].rank, 3);
    assert_int_equal (s[0].pid, 4711);
    assert_string_equal (s[0].host, "n2");
    assert_string_equal (s[0].top.function, "all_reduce");
    assert_int_equal (s[0].top.line, 1320);
    assert_string_equal (s[0].user.file, "/home/u/train.py");
    assert_string_equal (stack_place (&s[0], text, sizeof (text)),
                         "all_reduce (distributed_c10d.py:1320) from step (train.py:41)");
}

CASE (native_main_thread)
{
    struct stack s[MAX];
    char text[256];

    assert_int_equal (parse (s, "== rank 0 on n1\n== process 16227 a.out S\n" GDB KERNEL), 1);
    assert_string_equal (stack_place (&s[0], text, sizeof (text)),
                         "___pthread_mutex_lock (pthread_mutex_lock.c:93) from "
                         "wait_for_lock (x.c:4)");
    assert_int_equal (parse (s, "== rank 0 on n1\n== process 5 a.out R\n" EU_STACK KERNEL), 1);
    assert_string_equal (stack_place (&s[0], text, sizeof (text)), "ncclCommFinalize");
}

CASE (kernel_only)
{
    struct stack s[MAX];
    char text[256];

    parse (s, "== rank 0 on n1\n== process 5 a.out S\n== native\n== kernel\n"
              "5 a.out S futex_do_wait 202\n6 a.out R 0 running\n");
    assert_string_equal (stack_place (&s[0], text, sizeof (text)), "the kernel's futex_do_wait");
    parse (s, "== rank 0 on n1\n== process 5 a.out R\n== kernel\n"
              "5 a.out R 0 running\n");
    assert_string_equal (stack_place (&s[0], text, sizeof (text)), "its own code");
}

CASE (states_are_printed)
{
    static const struct {
        const char *process, *place;
    } rows[] = {
        { "T", "stopped (SIGSTOP) in the kernel's do_signal_stop" },
        { "Z", "ended but not collected (zombie) in the kernel's "
               "do_signal_stop" },
        { "D", "waiting for a disk or file system (state D) in the kernel's "
               "do_signal_stop" },
        { "t", "stopped by a debugger in the kernel's do_signal_stop" },
    };
    struct stack s[MAX];
    char text[256];
    char file[256];

    for (size_t i = 0; i < COUNT (rows); i++) {
        snprintf (file, sizeof (file),
                  "== rank 1 on n1\n== process 9 python3 %s\n== kernel\n"
                  "9 python3 T do_signal_stop 0\n",
                  rows[i].process);
        assert_int_equal (parse (s, file), 1);
        assert_string_equal (stack_place (&s[0], text, sizeof (text)), rows[i].place);
    }
    parse (s, "== rank 1 on n1\n== process 9 python3 Z\n");
    assert_string_equal (stack_place (&s[0], text, sizeof (text)),
                         "ended but not collected (zombie)");
    parse (s, "== rank 1 on n1\n== process 9 train S\n");
    assert_string_equal (stack_place (&s[0], text, sizeof (text)), "train: no stack");
}

/* Ranks 0, 2, 3, 4 and 7 wait, rank 1 loads data, and rank 5 was stopped where the others wait. */
static size_t eight (struct stack *s)
{
    size_t n = 0;

    for (int i = 7; i >= 0; i--) {
        char text[4096];
        if (i == 6)
            continue;
        snprintf (text, sizeof (text), "== rank %d on n%d\n== process %d python3 %c\n%s", i, i / 4,
                  100 + i, i == 5 ? 'T' : 'S', i == 1 ? PYTHON_LOADS : PYTHON_WAITS);
        n = stacks_parse (text, s, n, MAX);
    }
    return n;
}

CASE (odd_ones_are_named)
{
    struct stack s[MAX];
    size_t group[MAX];
    char line[1024];
    size_t n = eight (s);

    assert_int_equal (n, 7);
    assert_int_equal (stacks_group (s, n, group), 3);
    assert_int_equal (group[0], 0);
    assert_int_equal (group[4], 0);
    assert_int_equal (group[5], 1);
    assert_int_equal (s[5].rank, 1);
    assert_int_equal (s[6].rank, 5);
    assert_string_equal (stacks_line (s, group, n, line, sizeof (line)),
                         "5 ranks (0,2-4,7) are in all_reduce (distributed_c10d.py:1320) from "
                         "step (train.py:41); rank 1 is in load (data.py:12); rank 5 is "
                         "stopped (SIGSTOP) in all_reduce (distributed_c10d.py:1320) from step "
                         "(train.py:41)");
    assert_int_equal (stacks_group (s, 0, group), 0);
    assert_string_equal (stacks_line (s, group, 0, line, sizeof (line)), "");
}

/* One task that starts several worker processes. */
CASE (several_processes_of_a_rank)
{
    struct stack s[MAX];
    size_t group[MAX];
    char line[512];
    size_t n;

    n = parse (s, "== rank 0 on n1\n== process 8 python3 S\n" PYTHON_WAITS
                  "== process 9 python3 S\n" PYTHON_LOADS "== process 10 python3 S\n" PYTHON_WAITS);
    assert_int_equal (n, 3);
    assert_int_equal (stacks_group (s, n, group), 2);
    assert_int_equal (s[2].pid, 9);
    assert_string_equal (stacks_ranks (s, 2, line, sizeof (line)), "0");
}

/* A damaged file never causes a write beyond the arrays. */
CASE (damaged_text)
{
    static const char whole[] = "== rank 3 on n2\n== process 4711 python3 S\n" PYTHON_WAITS KERNEL
                                "== process 16227 a.out S\n" GDB KERNEL;
    struct stack s[2];
    size_t group[2];
    char text[sizeof (whole)];
    char line[64];
    uint32_t seed = 1;

    for (int round = 0; round < 3000; round++) {
        size_t n;
        memcpy (text, whole, sizeof (whole));
        for (int k = 0; k < 6; k++) {
            seed = seed * 1664525u + 1013904223u;
            text[(seed >> 8) % (sizeof (text) - 1)] = (char)(seed >> 24);
        }
        text[round % (int)sizeof (text)] = '\0';
        n = stacks_parse (text, s, 0, 2);
        assert_true (n <= 2);
        stacks_group (s, n, group);
        stacks_line (s, group, n, line, sizeof (line));
    }
    memset (text, '#', sizeof (text) - 1);
    text[sizeof (text) - 1] = '\0';
    assert_int_equal (stacks_parse (text, s, 0, 2), 0);
}

/* Spaces in a process name, which any program can set, are replaced so that it stays one word. */
CASE (a_process_is_dumped)
{
    struct rank_process p = { .rank = 3, .state = 'S', .name = "x y z" };
    char want[128];
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);
    int ready[2];

    assert_int_equal (pipe (ready), 0);
    if ((p.pid = fork ()) == 0) {
        prctl (PR_SET_NAME, "x y z");
        close (ready[1]);
        pause ();
        _exit (0);
    }
    close (ready[1]);
    assert_int_equal (read (ready[0], want, 1), 0);
    dump_rank (f, "n1", &p, 1, 0);
    fclose (f);
    kill (p.pid, SIGKILL);
    waitpid (p.pid, NULL, 0);
    snprintf (want, sizeof (want), "== rank 3 on n1\n== process %d x_y_z S\n", (int)p.pid);
    assert_memory_equal (text, want, strlen (want));
    snprintf (want, sizeof (want), "== kernel\n%d x_y_z ", (int)p.pid);
    assert_non_null (strstr (text, want));
    free (text);
}

RUN_CASES ()
