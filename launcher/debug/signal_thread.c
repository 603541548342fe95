/* SPDX-License-Identifier: Apache-2.0 */
/* Choose the thread of a process that a signal disturbs least. */
#include "launcher/debug/signal_thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/proc.h"

enum { PATH_SIZE = 512 };

bool signal_is_in (pid_t pid, pid_t tid, const char *set, int number)
{
    char path[PATH_SIZE];
    char line[256];
    unsigned long long bits = 0;
    FILE *f;

    snprintf (
        path, sizeof (path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    if (!(f = fopen (path, "re")))
        return false;
    while (fgets (line, sizeof (line), f))
        if (!strncmp (line, set, strlen (set))) {
            bits = strtoull (line + strlen (set), NULL, 16);
            break;
        }
    fclose (f);
    return bits >> (number - 1) & 1;
}

/* Whether the name of what a thread waits in begins with one of these. */
static bool waits_in (pid_t pid, pid_t tid, const char *const *names, size_t n)
{
    char path[PATH_SIZE];
    char wchan[128];

    snprintf (
        path, sizeof (path), "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
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
    static const char *const calls[] = { "poll_",        "do_poll",
                                         "do_sys_poll",  "do_select",
                                         "core_sys_sel", "ep_poll",
                                         "do_epoll",     "hrtimer_nanosleep",
                                         "do_nanosleep" };

    return waits_in (pid, tid, calls, sizeof (calls) / sizeof (*calls));
}

/* A wait for a lock goes on after a signal. */
static bool waits_for_lock (pid_t pid, pid_t tid)
{
    static const char *const calls[] = { "futex_" };

    return waits_in (pid, tid, calls, 1);
}

pid_t signal_thread (pid_t pid, int number)
{
    char folder[PATH_SIZE];
    pid_t found = 0;
    struct dirent *e;
    DIR *d;

    if (!would_break (pid, pid))
        return pid;
    snprintf (folder, sizeof (folder), "/proc/%d/task", (int)pid);
    if (!(d = opendir (folder)))
        return 0;
    while (found == 0 && (e = readdir (d))) {
        pid_t tid = atoi (e->d_name);
        if (tid > 0 && waits_for_lock (pid, tid)
            && !signal_is_in (pid, tid, "SigBlk:", number))
            found = tid;
    }
    closedir (d);
    return found;
}
