/* SPDX-License-Identifier: Apache-2.0 */
/* Check which processes belong to a rank, and which have ended, in made-up /proc trees. */
#include <sys/syscall.h>

#include "launcher/debug/live_ranks.h"
#include "launcher/sys/step_processes.h"
#include "tests/folder.h"

/* ---- a tree ---- */

static FILE *open_file (int pid, const char *name)
{
    char path[64];
    FILE *f;

    snprintf (path, sizeof (path), "%d", pid);
    mkdir (in_dir (path), 0777);
    snprintf (path, sizeof (path), "%d/%s", pid, name);
    f = fopen (in_dir (path), "w");
    assert_non_null (f);
    return f;
}

static void make_stat (int pid, int parent, const char *name, char state, int start)
{
    FILE *f = open_file (pid, "stat");

    fprintf (f,
             "%d (%s) %c %d 1 1 0 -1 4194560 9 0 0 0 11 12 13 14 20 0 3 0 %d "
             "1000 77 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0\n",
             pid, name, state, parent, start);
    fclose (f);
}

/* 'text' is "A=1 B=2"; values cannot contain a space. */
static void make_environ (int pid, const char *text)
{
    FILE *f = open_file (pid, "environ");

    for (; *text; text++)
        fputc (*text == ' ' ? 0 : *text, f);
    fputc (0, f);
    fclose (f);
}

static void make_task (int pid, const char *job, const char *step, int rank)
{
    char text[256];

    make_stat (pid, 5, "python3", 'S', 100);
    snprintf (text, sizeof (text),
              "HOME=/ SLURM_JOB_ID=%s SLURM_STEP_ID=%s SLURM_PROCID=%d "
              "SLURM_LOCALID=%d SLURM_TASK_PID=%d XSLURM_PROCID=99",
              job, step, rank, rank % 4, pid);
    make_environ (pid, text);
}

static void set_program (int pid, const char *program)
{
    char path[64];

    snprintf (path, sizeof (path), "%d", pid);
    mkdir (in_dir (path), 0777);
    snprintf (path, sizeof (path), "%d/exe", pid);
    assert_int_equal (symlink (program, in_dir (path)), 0);
}

static void remove_process (int pid)
{
    char cmd[192];

    snprintf (cmd, sizeof (cmd), "rm -r %s/%d", dir, pid);
    assert_int_equal (system (cmd), 0);
}

static struct ranks *open_tree (void)
{
    struct slurmdl_error err;
    struct ranks *r = ranks_create (dir, "7", "0", &err);

    assert_non_null (r);
    return r;
}

static void expect (const struct ranks *r, long rank, const char *pids)
{
    char text[256] = "";
    size_t n;
    const struct rank_process *p = ranks_of (r, rank, &n);

    for (size_t i = 0; i < n; i++) {
        assert_int_equal (p[i].rank, rank);
        snprintf (text + strlen (text), sizeof (text) - strlen (text), "%s%d", i ? " " : "",
                  (int)p[i].pid);
    }
    assert_string_equal (text, pids);
    assert_int_equal (p == NULL, n == 0);
}

/* ---- tests ---- */

FOLDER_CASE (roots_and_below)
{
    struct ranks *r;
    const struct rank_process *p;
    size_t n;

    make_stat (1, 0, "init", 'S', 1);
    make_stat (5, 1, "slurmstepd", 'S', 90);
    make_task (40, "7", "0", 1);
    make_task (41, "7", "0", 0);
    make_task (42, "7", "1", 0); /* another step */
    make_task (43, "8", "0", 0); /* another job */
    make_stat (50, 40, "a) R (b", 'D', 101);
    make_stat (30, 50, "deep", 'R', 102); /* pids wrap around: a child may have a lower one */
    make_stat (51, 41, "dead", 'Z', 102);
    make_stat (60, 1, "other", 'S', 5);
    r = open_tree ();
    assert_int_equal (ranks_look (r), 2);
    p = ranks_roots (r, &n);
    assert_int_equal (n, 2);
    assert_int_equal (p[0].pid, 41);
    assert_int_equal (p[0].rank, 0);
    assert_int_equal (p[1].pid, 40);
    assert_int_equal (p[1].local_rank, 1);
    expect (r, 0, "41");
    expect (r, 1, "30 40 50");
    expect (r, 2, "");
    p = ranks_of (r, 1, &n);
    assert_string_equal (p[2].name, "a) R (b");
    assert_int_equal (p[2].state, 'D');
    assert_int_equal (p[2].parent, 40);
    assert_int_equal (p[2].start, 101);
    assert_int_equal (p[2].user, 11);
    assert_int_equal (p[2].system, 12);
    assert_int_equal (p[2].user_ended, 13);
    assert_int_equal (p[2].system_ended, 14);
    assert_int_equal (p[2].threads, 3);
    assert_int_equal (p[2].resident, 77);
    ranks_all (r, &n);
    assert_int_equal (n, 4);
    ranks_destroy (r);
}

/* An orphan is matched to its rank by its environment, unless it is a helper of dl. */
FOLDER_CASE (orphans)
{
    static const char text[] = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_TASK_PID=40";
    struct ranks *r;

    mkdir (in_dir ("self"), 0777);
    assert_int_equal (symlink ("/usr/bin/dl", in_dir ("self/exe")), 0);
    make_task (40, "7", "0", 3);
    make_stat (41, 1, "worker", 'S', 101);
    make_environ (41, text);
    set_program (41, "/usr/bin/python3");
    make_stat (42, 1, "dl", 'S', 101);
    make_environ (42, text);
    set_program (42, "/usr/bin/dl");
    make_stat (44, 42, "gdb", 'S', 101); /* below a helper */
    make_environ (44, text);
    set_program (44, "/usr/bin/gdb");
    make_stat (43, 40, "dl", 'S', 101); /* started by the rank itself */
    set_program (43, "/usr/bin/dl");
    r = open_tree ();
    assert_int_equal (ranks_look (r), 1);
    expect (r, 3, "40 41 43");
    remove_process (40); /* its other processes live on */
    assert_int_equal (ranks_look (r), 0);
    expect (r, 3, "41 43");
    ranks_destroy (r);
}

/* An environment is read once, and again if the process's name or start time changes. */
FOLDER_CASE (looks_again)
{
    struct ranks *r;

    make_task (40, "7", "0", 0);
    make_stat (41, 5, "slurmstepd", 'S', 100); /* between fork and exec */
    make_environ (41, "HOME=/ SLURM_CONF=/x");
    make_stat (42, 5, "slurmstepd", 'S', 100);
    make_environ (42, "");
    r = open_tree ();
    assert_int_equal (ranks_look (r), 1);
    make_task (41, "7", "0", 1); /* it has called exec() since */
    assert_int_equal (ranks_look (r), 2);
    make_environ (40, "GONE=1"); /* a program may overwrite its environment */
    assert_int_equal (ranks_look (r), 2);
    expect (r, 0, "40");
    make_environ (41, "SLURM_JOB_ID=9"); /* another process reuses the pid */
    make_stat (41, 5, "python3", 'S', 101);
    assert_int_equal (ranks_look (r), 1);
    expect (r, 1, "");
    make_stat (40, 5, "python3", 'X', 100);
    assert_int_equal (ranks_look (r), 0);
    ranks_destroy (r);
}

FOLDER_CASE (several_slurmd)
{
    char text[256];
    struct ranks *r;

    for (int i = 1; i <= 2; i++) {
        make_stat (40 + i, 5, "sh", 'S', 1);
        snprintf (text, sizeof (text),
                  "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=%d "
                  "SLURM_TASK_PID=%d SLURMD_NODENAME=n%d",
                  i, 40 + i, i);
        make_environ (40 + i, text);
    }
    setenv ("SLURMD_NODENAME", "n2", 1);
    r = open_tree ();
    unsetenv ("SLURMD_NODENAME");
    assert_int_equal (ranks_look (r), 1);
    expect (r, 1, "");
    expect (r, 2, "42");
    ranks_destroy (r);
    setenv ("SLURM_CLUSTER_NAME", "c1", 1);
    r = open_tree ();
    unsetenv ("SLURM_CLUSTER_NAME");
    assert_int_equal (ranks_look (r), 0);
    make_stat (41, 5, "exec", 'S', 1);
    make_environ (41, "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=4 "
                      "SLURM_TASK_PID=41 SLURM_CLUSTER_NAME=c1");
    assert_int_equal (ranks_look (r), 1);
    ranks_destroy (r);
}

/* Other directories and damaged stat files are ignored. */
FOLDER_CASE (broken_trees)
{
    static const char *const stats[] = {
        "", "40", "40 (x", "40 (x)", "40 (x) S", ") 40 (", "40 (x) S 1 1 1",
    };
    struct ranks *r;
    FILE *f;

    mkdir (in_dir ("40x"), 0777);
    mkdir (in_dir ("sys"), 0777);
    make_task (7, "7", "0", 0);
    r = open_tree ();
    for (size_t i = 0; i < COUNT (stats); i++) {
        f = open_file (40, "stat");
        fputs (stats[i], f);
        fclose (f);
        assert_int_equal (ranks_look (r), 1);
    }
    make_task (40, "7", "0", 1);
    make_environ (40, "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=x");
    make_stat (41, 42, "loop", 'S', 1);
    make_stat (42, 41, "loop", 'S', 1);
    assert_int_equal (ranks_look (r), 1);
    f = open_file (43, "environ"); /* longer than the initial read buffer */
    for (int i = 0; i < 20000; i++)
        fprintf (f, "X%d=%d%c", i, i, 0);
    fprintf (f, "SLURM_JOB_ID=7%cSLURM_STEP_ID=0%cSLURM_PROCID=5%c", 0, 0, 0);
    fprintf (f, "SLURM_TASK_PID=43%c", 0);
    fclose (f);
    make_stat (43, 5, "sh", 'S', 1);
    assert_int_equal (ranks_look (r), 2);
    expect (r, 5, "43");
    ranks_destroy (r);
    assert_null (ranks_create ("/nonexistent", "7", "0", NULL));
    assert_int_equal (errno, ENOENT);
}

/* The first rank that ends is remembered, while the others still run. */
FOLDER_CASE (ends_are_seen)
{
    struct roots *r = calloc (1, sizeof (*r));
    char text[512];

    make_stat (5, 1, "slurmstepd", 'S', 90);
    for (int i = 0; i < 3; i++)
        make_task (40 + i, "7", "0", i);
    *r = (struct roots){ .ranks = open_tree (), .step_end = -1 };
    for (size_t left = 3; left > 0; left--) {
        roots_find (r);
        assert_int_equal (r->n, left);
        assert_true (left == 3 ? r->ended_at <= 0 : r->ended.rank == 1);
        remove_process (left == 3 ? 41 : left == 2 ? 40 : 42);
    }
    assert_int_equal (r->list[0].rank, 2);
    assert_string_equal (roots_end (r, dir, text, sizeof (text)), "rank 1 has ended");
    ranks_destroy (r->ranks);
    free (r);
}

FOLDER_CASE (a_status_is_seen)
{
    struct roots *r = calloc (1, sizeof (*r));
    pid_t pid[2];
    char text[512];

    *r = (struct roots){ .n = 2, .step_end = -1 };
    for (int i = 0; i < 2; i++) {
        if ((pid[i] = fork ()) == 0) {
            while (i == 0)
                pause ();
            _exit (3);
        }
        r->list[i] = (struct root){
            .rank = i, .pid = pid[i], .fd = (int)syscall (SYS_pidfd_open, pid[i], 0), .status = -1
        };
    }
    roots_wait (r, 300);
    assert_int_equal (r->n, 1);
    assert_int_equal (r->list[0].pid, pid[0]);
    assert_string_equal (roots_end (r, dir, text, sizeof (text)), "rank 1 has ended with status 3");
    kill (pid[0], SIGKILL);
    roots_wait (r, 300);
    assert_int_equal (r->n, 0);
    assert_int_equal (r->ended.rank, 1);
    assert_true (r->last_end >= r->ended_at);
    for (int i = 0; i < 2; i++)
        waitpid (pid[i], NULL, 0);
    free (r);
}

int main (void)
{
    unsetenv ("SLURMD_NODENAME");
    unsetenv ("SLURM_CLUSTER_NAME");
    return run_cases (NULL, NULL);
}
