/* SPDX-License-Identifier: Apache-2.0 */
/* Which process a rank is, and whether it has ended. */
#include "runtime/base/process_id.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define UNKNOWN UINT64_MAX

/* When it began; 0: it is not there, or has ended and was not waited for;
 * UNKNOWN: that cannot be told now.
 */
static uint64_t start_of (int64_t pid)
{
    char path[64];
    char text[1024] = "";
    unsigned long long start = 0;
    char state = 'Z';
    char *c;
    FILE *f;

    snprintf (path, sizeof (path), "/proc/%lld/stat", (long long)pid);
    if (!(f = fopen (path, "re")))
        return errno == ENOENT || errno == ESRCH ? 0 : UNKNOWN;
    if (fgets (text, sizeof (text), f) && (c = strrchr (text, ')')))
        sscanf (c + 1,
                " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d"
                " %*d %*d %*d %*d %llu",
                &state,
                &start);
    fclose (f);
    return state == 'Z' ? 0 : start;
}

void member_describe (struct member *m)
{
    FILE *f = fopen ("/proc/sys/kernel/random/boot_id", "re");
    struct stat st;

    memset (m, 0, sizeof (*m));
    if (getrandom (&m->nonce, sizeof (m->nonce), 0) != sizeof (m->nonce))
        m->nonce = (uint64_t)getpid () << 32 | (uint64_t)time (NULL);
    m->pid = getpid ();
    m->start = start_of (m->pid);
    if (stat ("/proc/self/ns/pid", &st) == 0)
        m->pidns = st.st_ino;
    if (f && !fgets (m->boot, sizeof (m->boot), f))
        m->boot[0] = '\0';
    if (f)
        fclose (f);
}

bool member_has_ended (const struct member *m, const struct member *self)
{
    uint64_t start;

    if (m->pid == 0 || m->pidns != self->pidns || !*m->boot
        || strcmp (m->boot, self->boot))
        return false;
    if (kill ((pid_t)m->pid, 0) < 0 && errno == ESRCH)
        return true;
    start = start_of (m->pid);
    return start != m->start && start != UNKNOWN && m->start != UNKNOWN;
}
