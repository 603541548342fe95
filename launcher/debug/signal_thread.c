/* SPDX-License-Identifier: Apache-2.0 */
/* Choose the thread of a process that a signal disturbs least. */
#include "launcher/debug/signal_thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/proc.h"
#include "runtime/base/clock.h"

enum { PATH_SIZE = 512, LOOKS = 20, STEP_MS = 5 };

static unsigned long long status_number (pid_t pid, pid_t tid, const char *name, int base)
{
    char path[PATH_SIZE];
    char line[256];
    unsigned long long number = 0;
    FILE *f;

    snprintf (path, sizeof (path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    if (!(f = fopen (path, "re")))
        return 0;
    while (fgets (line, sizeof (line), f))
        if (!strncmp (line, name, strlen (name))) {
            number = strtoull (line + strlen (name), NULL, base);
            break;
        }
    fclose (f);
    return number;
}

bool signal_is_in (pid_t pid, pid_t tid, const char *set, int number)
{
    return status_number (pid, tid, set, 16) >> (number - 1) & 1;
}

/* Whether the name of what a thread waits in begins with one of these. */
static bool waits_in (pid_t pid, pid_t tid, const char *const *names, size_t n)
{
    char path[PATH_SIZE];
    char wchan[128];

    snprintf (path, sizeof (path), "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
    proc_read (AT_FDCWD, path, wchan, sizeof (wchan));
    for (size_t i = 0; i < n; i++)
        if (!strncmp (wchan, names[i], strlen (names[i])))
            return true;
    return false;
}

/* A signal breaks off these calls, whatever its flags: PyTorch takes that as
 * an error when it waits for the first rank's store.
 */
static bool would_break (pid_t pid, pid_t tid)
{
    static const char *const calls[] = { "poll_",     "do_poll",           "do_sys_poll",
                                         "do_select", "core_sys_sel",      "ep_poll",
                                         "do_epoll",  "hrtimer_nanosleep", "do_nanosleep" };

    return waits_in (pid, tid, calls, sizeof (calls) / sizeof (*calls));
}

/* A wait for a lock goes on after a signal. */
static bool waits_for_lock (pid_t pid, pid_t tid)
{
    static const char *const calls[] = { "futex_" };

    return waits_in (pid, tid, calls, 1);
}

/* What a thread that was not seen to sleep has done so far. */
struct activity {
    unsigned long long sleeps, ran; /* ns; 0: not known */
};

static struct activity activity_of (pid_t pid, pid_t tid)
{
    struct activity a;
    char path[PATH_SIZE];
    char text[128];

    a.sleeps = status_number (pid, tid, "voluntary_ctxt_switches:", 10);
    snprintf (path, sizeof (path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    proc_read (AT_FDCWD, path, text, sizeof (text));
    a.ran = strtoull (text, NULL, 10);
    return a;
}

/* Whether the main thread sleeps in a call that goes on, or has run since the
 * last look and not slept.  Else -1: proc names no call of a thread that was
 * woken and waits for a CPU, and its poll() would be broken off, too.
 */
static int is_safe (pid_t pid, double *when)
{
    static const char *const none[] = { "0" };
    struct activity last = { 0, 0 }, now;

    for (int i = 0; i < LOOKS; i++, last = now) {
        if (i > 0)
            poll (NULL, 0, STEP_MS);
        *when = monotonic ();
        if (would_break (pid, pid))
            return 0;
        now = activity_of (pid, pid);
        if (!waits_in (pid, pid, none, 1) || now.ran == 0
            || (i > 0 && now.ran > last.ran && now.sleeps == last.sleeps))
            return 1;
    }
    return -1;
}

pid_t signal_thread (pid_t pid, int number, double *when)
{
    char folder[PATH_SIZE];
    pid_t found = 0;
    struct dirent *e;
    int safe;
    DIR *d;

    if ((safe = is_safe (pid, when)) != 0)
        return safe > 0 ? pid : 0;
    *when = monotonic ();
    snprintf (folder, sizeof (folder), "/proc/%d/task", (int)pid);
    if (!(d = opendir (folder)))
        return 0;
    while (found == 0 && (e = readdir (d))) {
        pid_t tid = atoi (e->d_name);
        if (tid > 0 && waits_for_lock (pid, tid) && !signal_is_in (pid, tid, "SigBlk:", number))
            found = tid;
    }
    closedir (d);
    return found;
}
