/* SPDX-License-Identifier: Apache-2.0 */
/* Identify a rank's process, and tell whether it has ended. */
#include "runtime/base/process_id.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

uint64_t process_start (const char *proc, int64_t pid)
{
    char path[4096];
    char text[1024] = "";
    unsigned long long start = PROCESS_UNKNOWN;
    char state = 0;
    char *c;
    FILE *f;

    snprintf (path, sizeof (path), "%s/%lld/stat", proc, (long long)pid);
    if (!(f = fopen (path, "re")))
        return PROCESS_UNKNOWN;
    if (fgets (text, sizeof (text), f) && (c = strrchr (text, ')')))
        sscanf (c + 1,
                " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                &state, &start);
    fclose (f);
    return state == 'Z' ? 0 : start;
}

bool process_has_ended (const char *proc, int64_t pid, uint64_t start)
{
    uint64_t now;

    if (pid <= 0)
        return false;
    if (kill ((pid_t)pid, 0) < 0 && errno == ESRCH)
        return true;
    now = process_start (proc, pid);
    return now != start && now != PROCESS_UNKNOWN && start != PROCESS_UNKNOWN;
}

void process_boot_id (char *buf, size_t size)
{
    FILE *f = fopen ("/proc/sys/kernel/random/boot_id", "re");

    if (!f || !fgets (buf, (int)size, f))
        *buf = '\0';
    buf[strcspn (buf, "\n")] = '\0';
    if (f)
        fclose (f);
}

void process_id_describe (struct process_id *m)
{
    struct stat st;

    memset (m, 0, sizeof (*m));
    if (getrandom (&m->nonce, sizeof (m->nonce), 0) != sizeof (m->nonce))
        m->nonce = (uint64_t)getpid () << 32 | (uint64_t)time (NULL);
    m->pid = getpid ();
    m->start = process_start ("/proc", m->pid);
    if (stat ("/proc/self/ns/pid", &st) == 0)
        m->pidns = st.st_ino;
    process_boot_id (m->boot, sizeof (m->boot));
}

bool process_id_has_ended (const struct process_id *m, const struct process_id *self)
{
    return m->pidns == self->pidns && *m->boot && !strcmp (m->boot, self->boot)
           && process_has_ended ("/proc", m->pid, m->start);
}
