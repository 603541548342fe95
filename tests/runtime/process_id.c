/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a process has exited: zombies, reused pids, and no /proc. */
#include "runtime/base/process_id.h"
#include "tests/unit.h"

CASE (living)
{
    uint64_t start = process_start ("/proc", getpid ());

    assert_true (start > 0 && start != PROCESS_UNKNOWN);
    assert_false (process_has_ended ("/proc", getpid (), start));
    assert_true (process_has_ended ("/proc", getpid (), start - 1));
}

CASE (zombie)
{
    siginfo_t info;
    uint64_t start;
    pid_t pid = fork ();

    if (pid == 0) {
        pause ();
        _exit (0);
    }
    start = process_start ("/proc", pid);
    assert_false (process_has_ended ("/proc", pid, start));
    kill (pid, SIGKILL);
    assert_int_equal (waitid (P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal (process_start ("/proc", pid), 0);
    assert_true (process_has_ended ("/proc", pid, start));
    waitpid (pid, NULL, 0);
    assert_true (process_has_ended ("/proc", pid, start));
}

/* An unreadable /proc does not prove that a process has exited; an unused pid does. */
CASE (unreadable)
{
    pid_t pid = fork ();

    assert_true (process_start ("/nonexistent", getpid ()) == PROCESS_UNKNOWN);
    assert_false (process_has_ended ("/nonexistent", getpid (), 1));
    assert_false (process_has_ended ("/proc", getpid (), PROCESS_UNKNOWN));
    assert_false (process_has_ended ("/proc", 0, 1));
    if (pid == 0)
        _exit (0);
    waitpid (pid, NULL, 0);
    assert_true (process_has_ended ("/nonexistent", pid, 1));
}

CASE (member)
{
    struct process_id self, other;

    process_id_describe (&self);
    other = self;
    assert_false (process_id_has_ended (&other, &self));
    other.start--;
    assert_true (process_id_has_ended (&other, &self));
    other.boot[0] = 'x'; /* 'self' cannot see processes of another boot */
    assert_false (process_id_has_ended (&other, &self));
}

RUN_CASES ()
