/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: check the kernel's counters and limits, amounts, and why a worker was lost. */
#include "launcher/sys/oom.h"
#include "launcher/slurm/slurm.h"
#include "launcher/worker/worker.h"
#include "tests/folder.h"

/* ---- kernel counters ---- */

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
    { "0::/system.slice/n1_slurmstepd.scope/sFENM84R3HWX00/step_batch/user/task_0\n", /* Slurm 26.05 and later */
      "sys/fs/cgroup/system.slice/n1_slurmstepd.scope/sFENM84R3HWX00/memory.events",
      "low 0\noom_kill 4\n", -1, 4 },
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

static void put_program (const char *name, const char *text)
{
    put_in_tree (name, text);
    chmod (in_dir (name), 0755);
}

static void make_tree (size_t i)
{
    char command[128];

    snprintf (command, sizeof (command), "rm -rf %s/proc %s/sys", dir, dir);
    assert_int_equal (system (command), 0);
    put_in_tree ("proc/self/cgroup", trees[i].cgroup);
    put_in_tree (trees[i].file, trees[i].text);
}

FOLDER_CASE (recorded_trees)
{
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
    const char *restarts, *status, *sacct; /* output of sacct; NULL: sacct fails */
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

/* Install a sacct that records its arguments and prints 'says'; NULL: it fails. */
static void fake_sacct (const char *says)
{
    char text[512];

    remove (in_dir ("sacct"));
    remove (in_dir ("called"));
    if (!says)
        says = "' >&2; exit 1; '";
    snprintf (text, sizeof (text), "#!/bin/sh\necho \"$*\" >>%s/called\nprintf '%s'\n", dir, says);
    put_program ("sacct", text);
}

/* Put the test's directory first in PATH.  Returns the old PATH. */
static char *begin_path (void)
{
    char *path = strdup (getenv ("PATH")), *longer;

    assert_true (asprintf (&longer, "%s:%s", dir, path) > 0);
    setenv ("PATH", longer, 1);
    free (longer);
    return path;
}

static void end_path (char *path)
{
    setenv ("PATH", path, 1);
    free (path);
}

FOLDER_CASE (lost_workers)
{
    char *path = begin_path ();
    char called[128];

    setenv ("SLURM_JOB_ID", "7", 1);
    setenv ("SLURM_STEP_ID", "3", 1);
    for (size_t i = 0; i < COUNT (losses); i++) {
        bool asks = losses[i].status
                    && (!strcmp (losses[i].status, "137") || !strcmp (losses[i].status, "1"));
        struct worker_exit l;
        FILE *f;
        fake_sacct (losses[i].sacct);
        make_tree (losses[i].tree == NO_TREE ? COUNT (trees) - 1 : (size_t)losses[i].tree);
        set ("SLURM_RESTART_COUNT", losses[i].restarts);
        set ("DL_LAST_STATUS", losses[i].status);
        worker_exit_read (dir, &l);
        assert_string_equal (l.why, losses[i].why);
        assert_int_equal (l.cause == REASON_OUT_OF_MEMORY, losses[i].counted);
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
    end_path (path);
    unsetenv ("SLURM_JOB_ID");
    unsetenv ("SLURM_STEP_ID");
    unsetenv ("SLURM_RESTART_COUNT");
}

/* ---- the state of a worker's job ---- */

/* clang-format off */
static const struct {
    const char *slot, *sacct; /* output of sacct; NULL: sacct fails */
    const char *scontrol;
    const char *why; /* how it starts */
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
    { "7",       "TIMEOUT\\n",                 "", "TIMEOUT: ", false }, /* a job without an array */
    { "7_",      "TIMEOUT\\n",                 "", "?", false },
};
/* clang-format on */

FOLDER_CASE (states_of_jobs)
{
    char *path = begin_path ();
    char text[512];

    for (size_t i = 0; i < COUNT (jobs); i++) {
        struct worker_exit l = { .why = "?" };
        fake_sacct (jobs[i].sacct);
        remove (in_dir ("scontrol"));
        snprintf (text, sizeof (text), "#!/bin/sh\necho '%s'\n", jobs[i].scontrol);
        put_program ("scontrol", text);
        worker_exit_ask (jobs[i].slot, &l);
        assert_true (!strncmp (l.why, jobs[i].why, strlen (jobs[i].why)));
        assert_int_equal (l.cause == REASON_OUT_OF_MEMORY, jobs[i].counted);
    }
    end_path (path);
}

/* ---- amounts ---- */

CASE (amounts)
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

    for (size_t i = 0; i < COUNT (list); i++) {
        assert_int_equal (slurm_bytes (list[i].text), list[i].bytes);
        if (!list[i].back)
            continue;
        slurm_bytes_text (back, sizeof (back), list[i].bytes);
        assert_string_equal (back, list[i].back);
    }
}

/* The limit is the lowest one among the process's cgroups and the machine's memory. */
FOLDER_CASE (limits)
{
    make_tree (COUNT (trees) - 1);
    put_in_tree ("proc/meminfo", "MemTotal:  2048 kB\nMemFree: 1 kB\n");
    put_in_tree ("proc/self/cgroup", "0::/a/b\n");
    assert_int_equal (oom_memory_limit (dir), 2048 * 1024);
    put_in_tree ("sys/fs/cgroup/a/b/memory.max", "max\n");
    put_in_tree ("sys/fs/cgroup/a/memory.max", "1048576\n");
    assert_int_equal (oom_memory_limit (dir), 1048576);
    put_in_tree ("proc/self/cgroup", "4:memory:/c\n0::/\n");
    put_in_tree ("sys/fs/cgroup/memory/c/memory.stat", "cache 1\nhierarchical_memory_limit 4096\n");
    assert_int_equal (oom_memory_limit (dir), 4096);
}

RUN_CASES ()
