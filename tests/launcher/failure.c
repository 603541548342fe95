/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from each end of a trainer, from lines of its log, and from
 * the kernel's counters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/config/log_policy.h"
#include "launcher/sys/oom.h"
#include "launcher/sys/slurm_memory.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/failure.h"
#include "launcher/worker/lost_worker.h"
#include "tests/folder.h"

#define COUNT(a) (sizeof (a) / sizeof (*(a)))
#define EXIT(n)  ((n) << 8)

static char *metrics[] = { "loss", NULL };

/* ---- the table of ends ---- */

/* clang-format off */
static const struct {
    int status; /* of waitpid() */
    bool oom, free, last;
    const char *why;
} ends[] = {
    { EXIT (0),   false, false, true,  "ended without logging the metric \"loss\"; nothing was logged; there is no metrics.pattern" },
    { EXIT (1),   false, false, false, "exit status 1" },
    { EXIT (1),   true,  false, false, "exit status 1" },
    { EXIT (75),  false, true,  false, "exit status 75: the trainer asks for another try" },
    { EXIT (78),  false, false, true,  "exit status 78: the trainer says that another try makes no sense" },
    { EXIT (79),  false, true,  false, "exit status 79: this machine failed its check" },
    { EXIT (126), false, false, false, "exit status 126: the command cannot be run" },
    { EXIT (127), false, false, false, "exit status 127: there is no such command" },
    { EXIT (138), false, true,  false, "exit status 138 (User defined signal 1): the trainer asks for another try" },
    { SIGUSR1,    false, true,  false, "killed by signal 10 (User defined signal 1): the trainer asks for another try" },
    { SIGSEGV,    false, false, false, "killed by signal 11 (Segmentation fault)" },
    { SIGKILL,    false, false, false, "killed by signal 9 (Killed)" },
    { SIGKILL,    true,  false, false, "out of memory (killed by the kernel)" },
    { EXIT (137), true,  false, false, "out of memory (killed by the kernel)" },
    { EXIT (137), false, false, false, "exit status 137 (Killed)" },
};
/* clang-format on */

static void judge (const struct log_policy *list,
                   size_t n,
                   int status,
                   enum oom_kill killed,
                   struct failure_class *v)
{
    struct experiment exp = { .metrics = metrics,
                              .metric = metrics[0],
                              .nmetrics = 1,
                              .policies = (struct log_policy *)list,
                              .npolicies = n };
    struct sweep sweep = { .exp = &exp };
    struct trial_attempt a = { .sweep = &sweep };

    snprintf (a.dir, sizeof (a.dir), "%s", dir);
    failure_classify (&a, status, killed, v);
}

static void table_of_ends (void **state)
{
    struct failure_class v;

    (void)state;
    for (size_t i = 0; i < COUNT (ends); i++) {
        judge (NULL,
               0,
               ends[i].status,
               ends[i].oom ? KILLED_SOMETHING : KILLED_NOTHING,
               &v);
        assert_string_equal (v.why, ends[i].why);
        assert_int_equal (v.free, ends[i].free);
        assert_int_equal (v.last, ends[i].last);
        assert_int_equal (v.exclude, ends[i].status == EXIT (79));
        assert_int_equal (v.error, 0);
    }
}

static void put (const char *name, const char *text, size_t n);

/* Whatever the step ended with, those that its check named are to blame. */
static void bad_nodes (void **state)
{
    static const int statuses[] = { EXIT (79), EXIT (75), EXIT (143), SIGKILL };
    struct failure_class v;

    (void)state;
    put ("bad-nodes", "n2\nn7\n", 6);
    for (size_t i = 0; i < COUNT (statuses); i++) {
        judge (NULL, 0, statuses[i], KILLED_NOTHING, &v);
        assert_string_equal (v.why,
                             "not started: dl check found bad nodes: n2,n7");
        assert_true (v.free);
        assert_false (v.exclude || v.last);
    }
}

/* dl-trainer(7) has each row, and no status that the program does not know. */
static void manual_has_it (void **state)
{
    char line[4096], path[4096];
    bool inside = false, seen[256] = { false };
    FILE *f;

    (void)state;
    snprintf (
        path, sizeof (path), "%s/doc/dl-trainer.7", getenv ("srcdir") ?: ".");
    assert_non_null (f = fopen (path, "r"));
    while (fgets (line, sizeof (line), f)) {
        if (!strncmp (line, ".SH ", 4))
            inside = !strcmp (line, ".SH EXIT STATUS\n");
        if (inside && !strncmp (line, ".B ", 3) && atoi (line + 3) < 256)
            seen[atoi (line + 3)] = true;
    }
    fclose (f);
    for (const struct end_row *r = end_table; r->status >= 0; r++) {
        assert_true (seen[r->status]);
        seen[r->status] = false;
    }
    assert_true (seen[0] && seen[SLURMDL_EXIT_REJECT] && seen[128 + SIGKILL]);
    seen[0] = seen[SLURMDL_EXIT_REJECT] = seen[128 + SIGKILL] = false;
    for (int i = 0; i < 256; i++)
        assert_false (seen[i]);
}

/* ---- policies ---- */

static void put (const char *name, const char *text, size_t n)
{
    int fd = open (in_dir (name), O_WRONLY | O_CREAT | O_TRUNC, 0666);

    assert_true (fd >= 0);
    assert_int_equal (write (fd, text, n), (ssize_t)n);
    close (fd);
}

/* clang-format off */
static const struct {
    const char *pattern;
    enum log_policy_action action;
    const char *log;
    bool exclude, last;
    const char *why;
} logs[] = {
    { "bus",        POLICY_EXCLUDE_NODE,   "a\nGPU fell off the bus\nbus\n", true, false, "policy p: GPU fell off the bus; exit status 1" },
    { ".*bus.*",    POLICY_EXCLUDE_NODE,   "a\nGPU fell off the bus\n",      true, false, "policy p: GPU fell off the bus; exit status 1" },
    { "bus",        POLICY_CANCEL_RETRIES, "no end of line: bus",            false, true, "policy p: no end of line: bus; exit status 1" },
    { "bus",        POLICY_LABEL,          "10%\r\t bus\x01\rb",             false, false, "p: bus ; exit status 1" },
    { "bus",        POLICY_CANCEL_RETRIES, "b\nus\n",                        false, false, "exit status 1: us" },
    { "",           POLICY_CANCEL_RETRIES, "bus\n",                          false, false, "exit status 1: bus" },
    { "^b.s$",      POLICY_CANCEL_RETRIES, "abus\nbss\nbxs\n",            false, true, "policy p: bss; exit status 1" },
    { "^(a|b)+$",   POLICY_CANCEL_RETRIES, "abc\n\nabba\n",                  false, true, "policy p: abba; exit status 1" },
    { "x\\.*",      POLICY_CANCEL_RETRIES, "y\nx\n",                         false, true, "policy p: x; exit status 1" },
    { "bad",        POLICY_CANCEL_RETRIES, "bad \xff byte\n",                false, true, "policy p: bad ? byte; exit status 1" },
    { "schlecht",   POLICY_CANCEL_RETRIES, "schlecht f\xc3\xbcr\n",          false, true, "policy p: schlecht f\xc3\xbcr; exit status 1" },
};
/* clang-format on */

static void lines_of_logs (void **state)
{
    struct failure_class v;

    (void)state;
    for (size_t i = 0; i < COUNT (logs); i++) {
        struct log_policy p = { "p", (char *)logs[i].pattern, logs[i].action };
        put ("log", logs[i].log, strlen (logs[i].log));
        judge (&p, 1, EXIT (1), KILLED_NOTHING, &v);
        assert_string_equal (v.why, logs[i].why);
        assert_int_equal (v.exclude, logs[i].exclude);
        assert_int_equal (v.last, logs[i].last);
        assert_false (v.free);
    }
}

static void several_policies (void **state)
{
    static const struct log_policy list[] = {
        { "one", "alpha", POLICY_EXCLUDE_NODE },
        { "two", "beta", POLICY_CANCEL_RETRIES },
        { "none", "gamma", POLICY_LABEL },
    };
    struct failure_class v;
    json_t *json;

    (void)state;
    put ("log", "beta\nalpha\n", 11);
    judge (list, COUNT (list), EXIT (75), KILLED_NOTHING, &v);
    assert_true (v.exclude && v.last && v.free);
    assert_string_equal (v.why,
                         "policy two: beta; policy one: alpha; exit "
                         "status 75: the trainer asks for another try");
    /* the whole has no room, and is cut within a character */
    {
        struct log_policy wide[8];
        char line[121] = "xx";
        for (size_t i = 2; i < 120; i += 2)
            memcpy (line + i, "\xc3\xbc", 2);
        put ("log", line, 120);
        for (int shift = 0; shift < 4; shift++) {
            for (size_t i = 0; i < COUNT (wide); i++)
                wide[i] = (struct log_policy){ "names" + shift, "xx", 0 };
            judge (wide, COUNT (wide), EXIT (1), KILLED_NOTHING, &v);
            assert_int_equal (strlen (v.why), sizeof (v.why) - 1);
            assert_non_null (json = json_string (v.why));
            json_decref (json);
        }
    }
    assert_int_equal (remove (in_dir ("log")), 0);
    judge (list, COUNT (list), EXIT (1), KILLED_NOTHING, &v);
    assert_string_equal (v.why, "exit status 1");
}

/* A part of it is enough, but the part that says it. */
static void long_lines (void **state)
{
    static const struct log_policy p = { "p", "needle", POLICY_LABEL };
    char found[1][POLICY_LINE];
    char *text = malloc (20001);

    (void)state;
    memset (text, 'x', 20000);
    text[20000] = '\n';
    memcpy (text + 8000, "needle", 6);
    put ("log", text, 20001);
    assert_int_equal (policies_search (&p, 1, in_dir ("log"), found), 1);
    assert_non_null (strstr (found[0], "needle"));
    assert_int_equal (strlen (found[0]), POLICY_LINE - 1);
    /* what stands behind the first 8 KiB of a line is not looked at */
    memset (text, 'x', 20000);
    memcpy (text + 9000, "needle", 6);
    put ("log", text, 20001);
    assert_int_equal (policies_search (&p, 1, in_dir ("log"), found), 0);
    /* a line that two blocks share */
    memset (text, 'x', 20000);
    put ("log", text, 20000);
    for (int i = 0; i < 3; i++) {
        int fd = open (in_dir ("log"), O_WRONLY | O_APPEND);
        text[19999] = '\n';
        assert_int_equal (write (fd, text, 20000), 20000);
        close (fd);
    }
    free (text);
    {
        int fd = open (in_dir ("log"), O_WRONLY | O_CREAT, 0666);
        assert_int_equal (pwrite (fd, "\na needle here\n", 15, 65530), 15);
        close (fd);
    }
    assert_int_equal (policies_search (&p, 1, in_dir ("log"), found), 1);
    assert_string_equal (found[0], "a needle here");
}

/* Of a log beyond 64 MiB the end counts.  The file has a hole. */
static void long_logs (void **state)
{
    static const struct log_policy list[] = {
        { "first", "early", POLICY_LABEL },
        { "last", "late", POLICY_LABEL },
    };
    char found[2][POLICY_LINE];
    off_t size = (off_t)70 << 20;
    int fd;

    (void)state;
    put ("log", "early\n", 6);
    fd = open (in_dir ("log"), O_WRONLY);
    assert_int_equal (pwrite (fd, "\nlate\n", 6, size), 6);
    close (fd);
    assert_int_equal (policies_search (list, 2, in_dir ("log"), found), 1);
    assert_string_equal (found[0], "");
    assert_string_equal (found[1], "late");
    assert_int_equal (policies_search (list, 2, in_dir ("none"), found), -1);
}

static void bad_patterns (void **state)
{
    struct slurmdl_error err = { "" };

    (void)state;
    assert_int_equal (policy_check ("(a", &err), -1);
    assert_true (*err.text);
    assert_int_equal (policy_check (".*a.*", NULL), 0);
    assert_int_equal (policy_check (".*", NULL), 0);
    assert_int_equal (policy_check ("", NULL), 0);
}

/* ---- memory ---- */

/* clang-format off */
static const struct {
    const char *cgroup, *file, *text;
    long kills, job;
} trees[] = {
    { "0::/system.slice/slurmstepd.scope/job_7/step_1/user/task_0\n",
      "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_1/user/task_0/memory.events",
      "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n", 2, -1 },
    { "0::/system.slice/slurmstepd.scope/job_7/step_1/user/task_0\n",
      "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.events",
      "low 0\noom_kill 4\n", -1, 4 },
    { "9:name=systemd:/\n5:cpu,memory:/slurm/uid_1/job_7/step_0/task_0\n0::/\n",
      "sys/fs/cgroup/memory/slurm/uid_1/job_7/step_0/task_0/memory.oom_control",
      "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", 1, -1 },
    { "9:name=systemd:/\n5:cpu,memory:/slurm/uid_1/job_7/step_1/task_0\n0::/\n",
      "sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.failcnt", "48\n", -1, 1 },
    { "9:name=systemd:/\n5:cpu,memory:/slurm/uid_1/job_7/step_1/task_0\n0::/\n",
      "sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.failcnt", "0\n", -1, 0 },
    { "5:memory:/slurm/uid_1/job_7/step_1/task_0\n",
      "sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.oom_control",
      "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", -1, 2 },
    { "5:memory:/slurm/uid_1/job_7/step_1/task_0\n",
      "sys/fs/cgroup/memory/slurm/uid_1/job_70/memory.failcnt", "3\n", -1, -1 },
    { "4:memory:/docker/abc\n", /* without a cgroup namespace */
      "sys/fs/cgroup/memory/memory.oom_control",
      "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n", 6, -1 },
    { "0::/\n", "sys/fs/cgroup/memory.events", "oom_kill 0\n", 0, -1 },
    { "4:memory:/x\n", "sys/fs/cgroup/memory/x/memory.oom_control", "under_oom 0\n", -1, -1 },
    { "nonsense\n5:cpu:/a\n", "sys/fs/cgroup/memory.events", "oom_kill 3\n", -1, -1 },
    { "0::/a\n", "sys/fs/cgroup/b/memory.events", "oom_kill 3\n", -1, -1 },
};
/* clang-format on */

static void put_in_tree (const char *name, const char *text)
{
    char path[512];

    snprintf (path, sizeof (path), "%s", name);
    for (char *c = strchr (path, '/'); c; c = strchr (c + 1, '/')) {
        *c = '\0';
        mkdir (in_dir (path), 0777);
        *c = '/';
    }
    {
        char full[600];
        FILE *f;
        snprintf (full, sizeof (full), "%s/%s", dir, name);
        assert_non_null (f = fopen (full, "w"));
        fputs (text, f);
        fclose (f);
    }
}

static void make_tree (size_t i)
{
    char command[128];

    snprintf (command, sizeof (command), "rm -rf %s/proc %s/sys", dir, dir);
    assert_int_equal (system (command), 0);
    put_in_tree ("proc/self/cgroup", trees[i].cgroup);
    put_in_tree (trees[i].file, trees[i].text);
}

static void recorded_trees (void **state)
{
    (void)state;
    assert_int_equal (oom_kills (dir), -1);
    for (size_t i = 0; i < COUNT (trees); i++) {
        make_tree (i);
        assert_int_equal (oom_kills (dir), trees[i].kills);
        assert_int_equal (oom_kills_of_job (dir), trees[i].job);
    }
}

/* ---- lost workers ---- */

enum { NO_TREE = -1, JOB_KILLED = 1, JOB_FULL = 3 };

/* clang-format off */
static const struct {
    const char *restarts, *status, *sacct; /* what it prints; NULL: none */
    int tree;
    bool counted;
    const char *why;
} losses[] = {
    { NULL, NULL,  "OUT_OF_MEMORY", JOB_KILLED, false, "" },
    { "0",  NULL,  "OUT_OF_MEMORY", JOB_KILLED, false, "" },
    { "2",  NULL,  "OUT_OF_MEMORY", JOB_KILLED, false, "preempted or requeued by Slurm" },
    { NULL, "137", "OUT_OF_MEMORY", NO_TREE,    true,  "out of memory" },
    { "1",  "137", "OUT_OF_MEMORY", NO_TREE,    true,  "out of memory" },
    { NULL, "1",   "OUT_OF_MEMORY", NO_TREE,    true,  "out of memory" },
    { NULL, "137", "FAILED",        JOB_KILLED, false, "" },
    { NULL, "137", "",              JOB_KILLED, true,  "out of memory" },
    { NULL, "137", NULL,            JOB_KILLED, true,  "out of memory" },
    { NULL, "137", NULL,            JOB_FULL,   true,  "out of memory" },
    { NULL, "139", NULL,            JOB_FULL,   false, "" },
    { NULL, "137", NULL,            NO_TREE,    false, "" },
    { NULL, "139", "OUT_OF_MEMORY", JOB_KILLED, false, "" },
    { NULL, "x",   "OUT_OF_MEMORY", JOB_KILLED, false, "" },
};
/* clang-format on */

static void set (const char *name, const char *value)
{
    if (value)
        setenv (name, value, 1);
    else
        unsetenv (name);
}

/* A program that says how it was called, and what it is told to say. */
static void fake_sacct (const char *says)
{
    char text[512];

    remove (in_dir ("sacct"));
    remove (in_dir ("called"));
    if (!says)
        says = "' >&2; exit 1; '";
    snprintf (text,
              sizeof (text),
              "#!/bin/sh\necho \"$*\" >>%s/called\nprintf '%s'\n",
              dir,
              says);
    put ("sacct", text, strlen (text));
    chmod (in_dir ("sacct"), 0755);
}

static void lost_workers (void **state)
{
    char *path = strdup (getenv ("PATH")), *longer;
    char called[128];

    (void)state;
    assert_true (asprintf (&longer, "%s:%s", dir, path) > 0);
    setenv ("PATH", longer, 1);
    setenv ("SLURM_JOB_ID", "7", 1);
    setenv ("SLURM_STEP_ID", "3", 1);
    for (size_t i = 0; i < COUNT (losses); i++) {
        bool asks = losses[i].status
                    && (!strcmp (losses[i].status, "137")
                        || !strcmp (losses[i].status, "1"));
        struct worker_exit l;
        FILE *f;
        fake_sacct (losses[i].sacct);
        make_tree (losses[i].tree == NO_TREE ? COUNT (trees) - 1
                                             : (size_t)losses[i].tree);
        set ("SLURM_RESTART_COUNT", losses[i].restarts);
        set ("DL_LAST_STATUS", losses[i].status);
        worker_exit_read (dir, &l);
        assert_string_equal (l.why, losses[i].why);
        assert_int_equal (l.counted, losses[i].counted);
        assert_null (getenv ("DL_LAST_STATUS"));
        f = fopen (in_dir ("called"), "r");
        assert_int_equal (f != NULL, asks);
        if (f) {
            assert_non_null (fgets (called, sizeof (called), f));
            assert_string_equal (called, "-j 7.2 -o State -n -P\n");
            assert_null (fgets (called, sizeof (called), f));
            fclose (f);
        }
    }
    setenv ("PATH", path, 1);
    unsetenv ("SLURM_JOB_ID");
    unsetenv ("SLURM_STEP_ID");
    unsetenv ("SLURM_RESTART_COUNT");
    free (path);
    free (longer);
}

/* ---- the state of a worker's job ---- */

/* clang-format off */
static const struct {
    const char *slot, *sacct; /* what it prints; NULL: none */
    const char *scontrol;
    const char *why; /* its beginning */
    bool counted;
} jobs[] = {
    { "7_1",     "PREEMPTED\\nRUNNING\\n",   "", "PREEMPTED: ", false },
    { "7_1.3",   "NODE_FAIL\\n",               "", "NODE_FAIL: ", false },
    { "7_1",     "TIMEOUT\\n",                 "", "TIMEOUT: ", false },
    { "7_1",     "CANCELLED by 100\\n",        "", "CANCELLED: ", false },
    { "7_1",     "OUT_OF_MEMORY\\n",           "", "OUT_OF_MEMORY: ", true },
    { "7_1",     "RUNNING\\n",                 "JobId=7 JobState=RUNNING Reason=None", "?", false },
    { "7_1",     "",                           "JobId=7 JobState=NODE_FAIL Reason=NodeDown", "NODE_FAIL: ", false },
    { "7_1",     NULL,                         "JobId=7 JobState=TIMEOUT Reason=TimeLimit", "TIMEOUT: ", false },
    { "7_1",     "",                           "slurm_load_jobs error: Invalid job id specified", "?", false },
    { "7_1",     "TIMEOUTS\\n",                "", "?", false },
    { "local-1-2", "TIMEOUT\\n",               "", "?", false },
    { "7_1;id",  "TIMEOUT\\n",                 "", "?", false },
    { "7",       "TIMEOUT\\n",                 "", "?", false },
    { "7_",      "TIMEOUT\\n",                 "", "?", false },
};
/* clang-format on */

static void states_of_jobs (void **state)
{
    char *path = strdup (getenv ("PATH")), *longer;
    char text[512];

    (void)state;
    assert_true (asprintf (&longer, "%s:%s", dir, path) > 0);
    setenv ("PATH", longer, 1);
    for (size_t i = 0; i < COUNT (jobs); i++) {
        struct worker_exit l = { .why = "?" };
        fake_sacct (jobs[i].sacct);
        remove (in_dir ("scontrol"));
        snprintf (
            text, sizeof (text), "#!/bin/sh\necho '%s'\n", jobs[i].scontrol);
        put ("scontrol", text, strlen (text));
        chmod (in_dir ("scontrol"), 0755);
        worker_exit_ask (jobs[i].slot, &l);
        assert_true (!strncmp (l.why, jobs[i].why, strlen (jobs[i].why)));
        assert_int_equal (l.counted, jobs[i].counted);
    }
    setenv ("PATH", path, 1);
    free (path);
    free (longer);
}

/* ---- memory ---- */

static void runs_out (void **state)
{
    static const char *const gpu =
        "x\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried 2 GiB\n";
    struct failure_class v;

    (void)state;
    put ("log", gpu, strlen (gpu));
    judge (NULL, 0, EXIT (1), KILLED_NOTHING, &v);
    assert_int_equal (v.oom, OOM_GPU);
    judge (NULL, 0, EXIT (1), KILLED_SOMETHING, &v);
    assert_int_equal (v.oom, OOM_GPU);
    judge (NULL, 0, EXIT (1), KILLED_OWN, &v);
    assert_int_equal (v.oom, OOM_HOST);
    judge (NULL, 0, SIGKILL, KILLED_SOMETHING, &v);
    assert_int_equal (v.oom, OOM_HOST);
    judge (NULL, 0, SIGTERM, KILLED_NOTHING, &v);
    assert_int_equal (v.oom, OOM_NONE);
    put ("log", "fine\n", 5);
    judge (NULL, 0, EXIT (1), KILLED_NOTHING, &v);
    assert_int_equal (v.oom, OOM_NONE);
}

static void amounts (void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
        const char *back;
    } list[] = {
        { "16G", INT64_C (16) << 30, "16G" },
        { "1536M", INT64_C (1536) << 20, "1536M" },
        { "500", INT64_C (500) << 20, "500M" },
        { "2048mb", INT64_C (2) << 30, "2G" },
        { "1T", INT64_C (1) << 40, "1T" },
        { "1K", 1024, "1M" },
        { "0", 0, "0M" },
        { "", -1, NULL },
        { "G", -1, NULL },
        { "1.5G", -1, NULL },
        { "16GiB", -1, NULL },
        { "-1", -1, NULL },
        { "99999999999", -1, NULL },
    };
    char back[32];

    (void)state;
    for (size_t i = 0; i < COUNT (list); i++) {
        assert_int_equal (slurm_bytes (list[i].text), list[i].bytes);
        if (!list[i].back)
            continue;
        slurm_bytes_text (back, sizeof (back), list[i].bytes);
        assert_string_equal (back, list[i].back);
    }
}

/* The least limit of the groups that a process is in, and of the machine. */
static void limits (void **state)
{
    (void)state;
    make_tree (COUNT (trees) - 1);
    put_in_tree ("proc/meminfo", "MemTotal:  2048 kB\nMemFree: 1 kB\n");
    put_in_tree ("proc/self/cgroup", "0::/a/b\n");
    assert_int_equal (oom_memory_limit (dir), 2048 * 1024);
    put_in_tree ("sys/fs/cgroup/a/b/memory.max", "max\n");
    put_in_tree ("sys/fs/cgroup/a/memory.max", "1048576\n");
    assert_int_equal (oom_memory_limit (dir), 1048576);
    put_in_tree ("proc/self/cgroup", "4:memory:/c\n0::/\n");
    put_in_tree ("sys/fs/cgroup/memory/c/memory.stat",
                 "cache 1\nhierarchical_memory_limit 4096\n");
    assert_int_equal (oom_memory_limit (dir), 4096);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER (table_of_ends),    cmocka_unit_test (manual_has_it),
        IN_FOLDER (bad_nodes),        IN_FOLDER (lines_of_logs),
        IN_FOLDER (several_policies), IN_FOLDER (long_lines),
        IN_FOLDER (long_logs),        cmocka_unit_test (bad_patterns),
        IN_FOLDER (recorded_trees),   IN_FOLDER (lost_workers),
        IN_FOLDER (states_of_jobs),   IN_FOLDER (runs_out),
        cmocka_unit_test (amounts),   IN_FOLDER (limits),
    };
    return cmocka_run_group_tests_name ("verdict", tests, NULL, NULL);
}
