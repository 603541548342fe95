/* SPDX-License-Identifier: Apache-2.0 */
/* Check which signs in a made-up /proc count as progress of a rank, and how much taking a stack
 * disturbs the process.
 */
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>

#include "launcher/debug/debug.h"
#include "tests/folder.h"

/* Create a thread in the made-up /proc. */
static void put_thread (int pid, int tid, long faults, long cpu, long written)
{
    char path[256];
    FILE *f;

    snprintf (path, sizeof (path), "mkdir -p %s/%d/task/%d", dir, pid, tid);
    assert_int_equal (system (path), 0);
    snprintf (path, sizeof (path), "%s/%d/task/%d/stat", dir, pid, tid);
    f = fopen (path, "w");
    fprintf (f,
             "%d (a b) c) S 1 1 1 0 -1 4194560 %ld 0 0 0 %ld 0 0 0 20 0 1 0 "
             "777 1000 10 0\n",
             tid, faults, cpu);
    fclose (f);
    snprintf (path, sizeof (path), "%s/%d/task/%d/io", dir, pid, tid);
    f = fopen (path, "w");
    fprintf (f, "rchar: 5\nwchar: %ld\nsyscr: 1\nsyscw: 1\nread_bytes: 0\n", written);
    fclose (f);
}

static void put_command (int pid, const char *text, size_t size)
{
    char path[256];
    FILE *f;

    snprintf (path, sizeof (path), "%s/%d/cmdline", dir, pid);
    f = fopen (path, "w");
    fwrite (text, 1, size, f);
    fclose (f);
}

static struct rank_process process (long rank, int pid, int parent, const char *name)
{
    struct rank_process p = { .rank = rank, .pid = pid, .parent = parent };

    snprintf (p.name, sizeof (p.name), "%s", name);
    return p;
}

FOLDER_CASE (main_thread)
{
    struct rank_process p = process (0, 10, 1, "train");
    struct rank_progress *r = progress_create (dir);

    put_thread (10, 10, 1, 1, 0);
    progress_look (r, &p, 1, 1, 0);
    assert_true (progress_last (r, 0, 9) == 1);
    put_thread (10, 10, 1, 900, 0); /* burns a core */
    progress_look (r, &p, 1, 2, 0);
    assert_true (progress_last (r, 0, 9) == 1);
    put_thread (10, 10, 1, 900, 1);
    progress_look (r, &p, 1, 3, 0);
    assert_true (progress_last (r, 0, 9) == 3);
    put_thread (10, 10, 2, 900, 1);
    progress_look (r, &p, 1, 4, 0);
    assert_true (progress_last (r, 0, 9) == 4);
    put_thread (10, 10, 2, 900, 2); /* dl itself caused this */
    progress_look (r, &p, 1, 5, INFINITY);
    progress_look (r, &p, 1, 6, 0);
    assert_true (progress_last (r, 0, 9) == 4);
    assert_true (progress_last (r, 7, 9) == 9);
    progress_mark (r, 0, 8);
    assert_true (progress_last (r, 0, 9) == 8);
    progress_destroy (r);
}

/* While dl takes the stack of one rank, only the others' progress counts. */
FOLDER_CASE (asked)
{
    struct rank_process p[] = { process (0, 10, 1, "train"), process (1, 20, 1, "train") };
    struct rank_progress *r = progress_create (dir);

    put_thread (10, 10, 1, 1, 0);
    put_thread (20, 20, 1, 1, 0);
    progress_look (r, p, 2, 1, 0);
    put_thread (20, 20, 2, 1, 0);
    progress_look (r, p, 2, 3, 0);
    put_thread (10, 10, 2, 1, 0);
    put_thread (20, 20, 3, 1, 0);
    progress_look (r, p, 2, 4, 2);
    assert_true (progress_last (r, 0, 9) == 1);
    assert_true (progress_last (r, 1, 9) == 4);
    progress_destroy (r);
}

FOLDER_CASE (other_threads)
{
    struct rank_process p = process (3, 10, 1, "train");
    struct rank_progress *r = progress_create (dir);

    put_thread (10, 10, 1, 1, 0);
    put_thread (10, 11, 1, 1, 0);
    progress_look (r, &p, 1, 1, 0);
    put_thread (10, 11, 1, 2, 500); /* prints a heartbeat */
    progress_look (r, &p, 1, 2, 0);
    put_thread (10, 11, 2, 3, 600); /* and touches a page */
    progress_look (r, &p, 1, 3, 0);
    put_thread (10, 12, 1, 1, 0); /* a new thread */
    progress_look (r, &p, 1, 4, 0);
    assert_true (progress_last (r, 3, 9) == 1);
    put_thread (10, 11, 3, 60, 600); /* does real work */
    progress_look (r, &p, 1, 5, 0);
    assert_true (progress_last (r, 3, 9) == 5);
    progress_destroy (r);
}

FOLDER_CASE (other_processes)
{
    struct rank_process p[] = {
        process (0, 10, 1, "bash"),          process (0, 11, 10, "python3"),
        process (0, 12, 11, "wandb-core"),   process (0, 13, 12, "git"),
        process (0, 14, 11, "python3"),      process (1, 20, 1, "python3"),
        process (1, 21, 20, "pt_main_thre"),
    };
    const size_t n = COUNT (p);
    struct rank_progress *r = progress_create (dir);

    for (size_t i = 0; i < n; i++)
        put_thread (p[i].pid, p[i].pid, 1, 1, 0);
    put_command (20, "/usr/bin/python3", 17);
    put_command (11, "python", 7);
    progress_look (r, p, n, 1, 0);
    put_thread (10, 10, 9, 1, 0); /* the shell */
    put_thread (12, 12, 9, 1, 0); /* a background process, and its child */
    put_thread (13, 13, 9, 1, 0);
    progress_look (r, p, n, 2, 0);
    assert_true (progress_last (r, 0, 9) == 1);
    put_thread (14, 14, 9, 1, 0); /* a data loader */
    progress_look (r, p, n, 3, 0);
    assert_true (progress_last (r, 0, 9) == 3);
    assert_true (progress_last (r, 1, 9) == 1);
    progress_destroy (r);
}

FOLDER_CASE (kinds_of_processes)
{
    struct rank_process p[] = {
        process (0, 10, 1, "bash"),
        process (0, 11, 10, "python3"), /* -m torch.distributed.run */
        process (0, 12, 11, "python3"),
        process (0, 13, 12, "python3"),
        process (0, 14, 11, "python3"),
        process (0, 15, 12, "nvidia-smi"),
    };
    static const char command[] = "python3\0-m\0torch.distributed.run\0train.py";
    enum process_kind k[6];

    for (int i = 10; i < 16; i++)
        put_thread (i, i, 1, 1, 0);
    put_command (11, command, sizeof (command));
    family_kinds (dir, p, 6, k);
    assert_int_equal (k[0], PROCESS_LAUNCHER);
    assert_int_equal (k[1], PROCESS_LAUNCHER);
    assert_int_equal (k[2], PROCESS_MAIN);
    assert_int_equal (k[3], PROCESS_HELPER);
    assert_int_equal (k[4], PROCESS_MAIN);
    assert_int_equal (k[5], PROCESS_BACKGROUND);
    family_kinds (dir, p, 1, k); /* a shell alone counts as the program */
    assert_int_equal (k[0], PROCESS_MAIN);
    family_kinds (dir, p, 0, k);
}

/* ---- stacks of a process that has to wait for a CPU after each poll() ---- */

static int target;

static void answer (int number)
{
    if (write (target, "x", 1) < 0)
        abort ();
}

static void spin (long steps)
{
    for (volatile long i = 0; i < steps; i++)
        ;
}

static pid_t start (void (*body) (int *), int *count)
{
    pid_t pid = fork ();

    if (pid == 0) {
        body (count);
        _exit (0);
    }
    return pid;
}

static void compute (int *count)
{
    for (;;)
        spin (1000);
}

static void wait_often (int *broken)
{
    signal (SIGRTMIN + 18, answer);
    for (;;) {
        spin (rand () % 8000000);
        *broken += poll (NULL, 0, 2) != 0;
    }
}

CASE (looks)
{
    int *broken =
        mmap (NULL, sizeof (*broken), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child[3];
    cpu_set_t all, one;
    int cpu = 0, answers = 0;
    char *text;

    assert_true (broken != MAP_FAILED);
    assert_int_equal (sched_getaffinity (0, sizeof (all), &all), 0);
    while (!CPU_ISSET (cpu, &all))
        cpu++;
    CPU_ZERO (&one);
    CPU_SET (cpu, &one);
    assert_true ((target = memfd_create ("dl-debug", 0)) >= 0);
    assert_int_equal (sched_setaffinity (0, sizeof (one), &one), 0);
    child[0] = start (wait_often, broken);
    child[1] = start (compute, NULL);
    child[2] = start (compute, NULL);
    assert_int_equal (sched_setaffinity (0, sizeof (all), &all), 0);
    for (int i = 0; i < 60; i++) {
        answers += (text = dump_python (child[0], 'S', false)) != NULL;
        free (text);
        poll (NULL, 0, 10);
    }
    for (int i = 0; i < 3; i++) {
        kill (child[i], SIGKILL);
        waitpid (child[i], NULL, 0);
    }
    print_message ("# %d answers, %d broken\n", answers, *broken);
    assert_true (*broken <= 3 + answers / 5);
    munmap (broken, sizeof (*broken));
    close (target);
}

RUN_CASES ()
