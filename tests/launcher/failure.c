/* SPDX-License-Identifier: Apache-2.0 */
/* Check how exit statuses of a training script, and lines of its log, are classified. */
#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/log_policy.h"
#include "launcher/config/metric_settings.h"
#include "launcher/job/job.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/worker.h"
#include "runtime/slurmdl.h"
#include "tests/folder.h"

#define EXIT(n) ((n) << 8)

static char *metrics[] = { "loss", NULL };

/* ---- exit statuses ---- */

/* clang-format off */
static const struct {
    int status; /* as waitpid() returns it */
    bool oom, free, last;
    const char *why;
} ends[] = {
    { EXIT (0),   false, false, true,  "ended without logging the metric \"loss\"; nothing was logged; there is no metrics.pattern" },
    { EXIT (1),   false, false, false, "exit status 1" },
    { EXIT (1),   true,  false, false, "exit status 1" },
    { EXIT (75),  false, true,  false, "exit status 75: the program requests another attempt" },
    { EXIT (78),  false, false, true,  "exit status 78: the program reports that a retry cannot help" },
    { EXIT (79),  false, true,  false, "exit status 79: this machine failed its check" },
    { EXIT (126), false, false, false, "exit status 126: the command cannot be run" },
    { EXIT (127), false, false, false, "exit status 127: there is no such command" },
    { EXIT (138), false, true,  false, "exit status 138 (User defined signal 1): the program requests another attempt" },
    { SIGUSR1,    false, true,  false, "killed by signal 10 (User defined signal 1): the program requests another attempt" },
    { SIGSEGV,    false, false, false, "killed by signal 11 (Segmentation fault)" },
    { SIGKILL,    false, false, false, "killed by signal 9 (Killed)" },
    { SIGKILL,    true,  false, false, "out of memory (killed by the kernel)" },
    { EXIT (137), true,  false, false, "out of memory (killed by the kernel)" },
    { EXIT (137), false, false, false, "exit status 137 (Killed)" },
};
/* clang-format on */

static const struct first_failure *first; /* that judge() passes on */

static void judge (const struct log_policy *list, size_t n, int status, enum oom_kill killed,
                   struct failure_class *v)
{
    struct metric_settings metric = { .names = metrics, .name = metrics[0], .n = 1 };
    struct failure_settings failures = { .policies = (struct log_policy *)list, .npolicies = n };
    struct experiment *parts = experiment_create (), exp = *parts;
    struct sweep sweep = { .exp = &exp };
    struct trial_attempt a = { .sweep = &sweep };

    exp.metric = &metric;
    exp.failures = &failures;
    snprintf (a.dir, sizeof (a.dir), "%s", dir);
    failure_classify (&a, status, killed, first, v);
    experiment_destroy (parts);
}

FOLDER_CASE (table_of_ends)
{
    struct failure_class v;

    for (size_t i = 0; i < COUNT (ends); i++) {
        judge (NULL, 0, ends[i].status, ends[i].oom ? KILLED_SOMETHING : KILLED_NOTHING, &v);
        assert_string_equal (v.why, ends[i].why);
        assert_int_equal (v.free, ends[i].free);
        assert_int_equal (v.last, ends[i].last);
        assert_int_equal (v.exclude, ends[i].status == EXIT (79));
        assert_int_equal (v.error, 0);
    }
}

static void put (const char *name, const char *text, size_t n)
{
    int fd = open (in_dir (name), O_WRONLY | O_CREAT | O_TRUNC, 0666);

    assert_true (fd >= 0);
    assert_int_equal (write (fd, text, n), (ssize_t)n);
    close (fd);
}

/* If the node check found bad nodes, they are to blame, whatever the exit status of the step. */
FOLDER_CASE (bad_nodes)
{
    static const int statuses[] = { EXIT (79), EXIT (75), EXIT (143), SIGKILL };
    struct failure_class v;

    put ("bad-nodes", "n2\nn7\n", 6);
    for (size_t i = 0; i < COUNT (statuses); i++) {
        judge (NULL, 0, statuses[i], KILLED_NOTHING, &v);
        assert_string_equal (v.why, "not started: dl check found bad nodes: n2,n7");
        assert_true (v.free);
        assert_false (v.exclude || v.last);
    }
}

/* dl-trainer(7) documents exactly the statuses in the table. */
CASE (manual_has_it)
{
    char line[4096], path[4096];
    bool inside = false, seen[256] = { false };
    FILE *f;

    snprintf (path, sizeof (path), "%s/doc/dl-trainer.7", getenv ("srcdir") ?: ".");
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

FOLDER_CASE (lines_of_logs)
{
    struct failure_class v;

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

#define TRACE "Traceback (most recent call last):\n  File \"a.py\", line 9\n    step()\n"
#define LOST  TRACE "RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.2]:4711\n"

/* clang-format off */
static const struct {
    int status;
    const char *before, *after; /* what the log had when rank 1 failed, and what came after that */
    const char *why;
} firsts[] = {
    { 1, "step=4\n" TRACE "ValueError: bad data\n", LOST,           "exit status 1: ValueError: bad data" },
    { 1, "step=4\n" TRACE "ValueError: bad data\n" LOST, "",        "exit status 1: ValueError: bad data" },
    { 1, LOST TRACE "ValueError: bad data\nstep=5\n", "step=6\n",   "exit status 1: ValueError: bad data" },
    { 1, TRACE "KeyError: 'x'\n\nDuring handling of the above exception:\n\n" TRACE "ValueError: bad data\n", LOST,
                                                                    "exit status 1: ValueError: bad data" },
    { 1, "step=4\n" LOST, "step=5\n",                               "exit status 1: RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.2]:4711" },
    { 1, "[rank1]: " TRACE "[rank1]: ValueError: bad data\n[rank0]: KeyError: 0\n", "",
                                                                    "exit status 1: ValueError: bad data" },
    { 1, "step=4\n", TRACE "ValueError: bad data\n" LOST TRACE "KeyError: 3\n", "exit status 1: ValueError: bad data" },
    { 1, "step=4\n", "step=5\n" LOST "step=6\n", "exit status 1: RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.2]:4711" },
    { 1, "no data\n", "step=5\n", "exit status 1: no data" },
    { 7, TRACE "ValueError: handled\nno data\n", "step=5\n",        "exit status 7: no data" },
    { 7, "no data\nsrun: error: n2: task 1: Exited\n  \n", "step=5\n", "exit status 7: no data" },
    { 7, "", "step=5\n",                                            "exit status 7: step=5" },
    { 7, "srun: error: n2: task 1: Exited\n", "dl: rank 0 waits\nlast", "exit status 7: last" },
};
/* clang-format on */

/* The reason is what the rank that failed first has printed, not what the others print then. */
FOLDER_CASE (lines_of_the_first_rank)
{
    struct failure_class v;
    char log[1024];

    for (size_t i = 0; i < COUNT (firsts); i++) {
        struct first_failure f = { 1, (long long)strlen (firsts[i].before) };
        snprintf (log, sizeof (log), "%s%s", firsts[i].before, firsts[i].after);
        put ("log", log, strlen (log));
        first = &f;
        judge (NULL, 0, EXIT (firsts[i].status), KILLED_NOTHING, &v);
        first = NULL;
        assert_string_equal (v.why, firsts[i].why);
    }
    assert_int_equal (remove (in_dir ("log")), 0);
}

/* It is among the last 16 KiB of what was there, however much the others print. */
FOLDER_CASE (much_is_printed)
{
    static char log[100001];
    struct first_failure f = { 1, 40000 };
    struct failure_class v;

    memset (log, '\n', sizeof (log) - 1);
    memcpy (log + 39000, TRACE "ValueError: x", strlen (TRACE "ValueError: x"));
    memcpy (log + 90000, TRACE "KeyError: y", strlen (TRACE "KeyError: y"));
    put ("log", log, sizeof (log) - 1);
    first = &f;
    judge (NULL, 0, EXIT (1), KILLED_NOTHING, &v);
    assert_string_equal (v.why, "exit status 1: ValueError: x");
    f.rank = -1;
    judge (NULL, 0, EXIT (1), KILLED_NOTHING, &v);
    assert_string_equal (v.why, "exit status 1: KeyError: y");
    first = NULL;
    assert_int_equal (remove (in_dir ("log")), 0);
}

FOLDER_CASE (several_policies)
{
    static const struct log_policy list[] = {
        { "one", "alpha", POLICY_EXCLUDE_NODE },
        { "two", "beta", POLICY_CANCEL_RETRIES },
        { "none", "gamma", POLICY_LABEL },
    };
    struct failure_class v;
    json_t *json;

    put ("log", "beta\nalpha\n", 11);
    judge (list, COUNT (list), EXIT (75), KILLED_NOTHING, &v);
    assert_true (v.exclude && v.last && v.free);
    assert_string_equal (v.why, "policy two: beta; policy one: alpha; exit "
                                "status 75: the program requests another attempt");
    /* the reason is too long, and may be cut only between characters */
    {
        struct log_policy wide[8];
        char line[121] = "xx";
        for (size_t i = 2; i < 120; i += 2)
            memcpy (line + i, "\xc3\xbc", 2);
        put ("log", line, 120);
        for (int shift = 0; shift < 4; shift++) {
            for (size_t i = 0; i < COUNT (wide); i++)
                wide[i] = (struct log_policy){ &"names"[shift], "xx", 0 };
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

/* A long line is shortened to the part that matches. */
FOLDER_CASE (long_lines)
{
    static const struct log_policy p = { "p", "needle", POLICY_LABEL };
    char found[1][POLICY_LINE];
    char *text = malloc (20001);

    memset (text, 'x', 20000);
    text[20000] = '\n';
    memcpy (text + 8000, "needle", 6);
    put ("log", text, 20001);
    assert_int_equal (policies_search (&p, 1, in_dir ("log"), found), 1);
    assert_non_null (strstr (found[0], "needle"));
    assert_int_equal (strlen (found[0]), POLICY_LINE - 1);
    /* only the first 8 KiB of a line are searched */
    memset (text, 'x', 20000);
    memcpy (text + 9000, "needle", 6);
    put ("log", text, 20001);
    assert_int_equal (policies_search (&p, 1, in_dir ("log"), found), 0);
    /* a line that crosses the boundary of two blocks */
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

/* Only the end of a log of more than 64 MiB is searched.  The file is sparse. */
FOLDER_CASE (long_logs)
{
    static const struct log_policy list[] = {
        { "first", "early", POLICY_LABEL },
        { "last", "late", POLICY_LABEL },
    };
    char found[2][POLICY_LINE];
    off_t size = (off_t)70 << 20;
    int fd;

    put ("log", "early\n", 6);
    fd = open (in_dir ("log"), O_WRONLY);
    assert_int_equal (pwrite (fd, "\nlate\n", 6, size), 6);
    close (fd);
    assert_int_equal (policies_search (list, 2, in_dir ("log"), found), 1);
    assert_string_equal (found[0], "");
    assert_string_equal (found[1], "late");
    assert_int_equal (policies_search (list, 2, in_dir ("none"), found), -1);
}

CASE (bad_patterns)
{
    struct slurmdl_error err = { "" };

    assert_int_equal (log_policy_check ("(a", &err), -1);
    assert_true (*err.text);
    assert_int_equal (log_policy_check (".*a.*", NULL), 0);
    assert_int_equal (log_policy_check (".*", NULL), 0);
    assert_int_equal (log_policy_check ("", NULL), 0);
}

FOLDER_CASE (runs_out)
{
    static const char *const gpu =
        "x\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried 2 GiB\n";
    struct failure_class v;

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

/* ---- how the members of a job ended ---- */

/* clang-format off */
static const struct {
    const char *ends[3]; /* what each member recorded; NULL: nothing, "?": unreadable */
    enum life_event_kind kind;
    long rank;
    const char *node;
} members[] = {
    { { "0 n1\n", "0 n2\n", "0 n3\n" }, LIFE_SUCCEEDED, -1, "" },
    { { "0 n1\n", "0 n2\n", NULL },     LIFE_STARTED,   -1, "" },
    { { "0 n1\n", "3 n2\n", NULL },     LIFE_FAILED,     1, "n2" },
    { { "?",      "?",      "?" },      LIFE_STARTED,   -1, "" },
    { { "",       "x n2\n", "3\n" },    LIFE_STARTED,   -1, "" },
};
/* clang-format on */

/* A member whose record cannot be read counts as running. */
FOLDER_CASE (ends_of_members)
{
    struct job_role role = { .name = (char *)"worker", .count = 3, .restart = RESTART_NEVER };
    struct job_settings job = { .success = SUCCESS_ALL_WORKERS, .roles = &role, .nroles = 1 };
    struct experiment exp = { .job = &job };
    struct sweep sweep = { .exp = &exp };
    struct trial_attempt a = { .sweep = &sweep };
    char name[16];

    snprintf (a.dir, sizeof (a.dir), "%s", dir);
    assert_int_equal (mkdir (in_dir ("ends"), 0777), 0);
    for (size_t i = 0; i < COUNT (members); i++) {
        struct members m;

        for (int r = 0; r < 3; r++) {
            const char *end = members[i].ends[r];
            snprintf (name, sizeof (name), "ends/%d", r);
            unlink (in_dir (name));
            if (end && *end == '?')
                assert_int_equal (symlink ("nowhere", in_dir (name)), 0);
            else if (end)
                put (name, end, strlen (end));
        }
        members_look (&a, geteuid (), &m);
        assert_int_equal (m.verdict.kind, members[i].kind);
        assert_int_equal (m.rank, members[i].rank);
        assert_string_equal (m.node, members[i].node);
    }
}

/* Another member of a group can create files there, too. */
FOLDER_CASE (ends_of_others)
{
    struct job_role role = { .name = (char *)"worker", .count = 3, .restart = RESTART_NEVER };
    struct job_settings job = { .success = SUCCESS_ALL_WORKERS, .roles = &role, .nroles = 1 };
    struct experiment exp = { .job = &job };
    struct sweep sweep = { .exp = &exp };
    struct trial_attempt a = { .sweep = &sweep };
    struct members m;

    snprintf (a.dir, sizeof (a.dir), "%s", dir);
    assert_int_equal (mkdir (in_dir ("ends"), 0777), 0);
    put ("elsewhere", "3 n1\n", 5);
    assert_int_equal (symlink ("../elsewhere", in_dir ("ends/0")), 0);
    assert_int_equal (mkfifo (in_dir ("ends/1"), 0666), 0);
    put ("ends/none", "3 n1\n", 5);
    put ("ends/-1", "3 n1\n", 5);
    members_look (&a, geteuid (), &m);
    assert_int_equal (m.verdict.kind, LIFE_STARTED);
    put ("ends/2", "3 n1\n", 5);
    members_look (&a, geteuid () + 1, &m);
    assert_int_equal (m.verdict.kind, LIFE_STARTED);
    members_look (&a, geteuid (), &m);
    assert_int_equal (m.verdict.kind, LIFE_FAILED);
}

RUN_CASES ()
