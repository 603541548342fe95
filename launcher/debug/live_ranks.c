/* SPDX-License-Identifier: Apache-2.0 */
/* Track which ranks of this node are alive and which one ended first. */
#include "launcher/debug/live_ranks.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/debug/debug.h"
#include "launcher/sys/proc.h"
#include "runtime/base/clock.h"

/* Time that Slurm gets to report the end of a node's last task. */
enum { STEP_END_MS = 100 };

/* Return the exit status of a zombie; see proc(5). */
static int zombie_status (pid_t pid)
{
    char path[64];
    struct proc_stat s;

    snprintf (path, sizeof (path), "/proc/%d/stat", (int)pid);
    return proc_stat (AT_FDCWD, path, &s) == 0 && s.state == 'Z' ? s.exit_status : -1;
}

static void add_root (struct roots *r, const struct rank_process *p)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->list[i].pid == p->pid)
            return;
    if (r->n == ROOTS_MAX || p->state == 'Z')
        return;
    r->list[r->n++] = (struct root){
        .rank = p->rank,
        .pid = p->pid,
        .fd = (int)syscall (SYS_pidfd_open, p->pid, 0),
        .status = -1,
    };
}

static bool root_is_listed (const struct rank_process *p, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].pid == pid)
            return true;
    return false;
}

static void drop_root (struct roots *r, size_t i)
{
    r->last_end = monotonic ();
    if (r->ended_at <= 0) {
        r->ended = r->list[i];
        r->ended_at = r->last_end;
    }
    if (r->list[i].fd >= 0)
        close (r->list[i].fd);
    r->list[i] = r->list[--r->n];
}

void roots_find (struct roots *r)
{
    const struct rank_process *p;
    size_t n;

    if (r->step_ended)
        ranks_forget (r->ranks);
    else
        ranks_look (r->ranks);
    p = ranks_roots (r->ranks, &n);
    for (size_t i = 0; i < n; i++)
        add_root (r, &p[i]);
    for (size_t i = r->n; i-- > 0;)
        if (!root_is_listed (p, n, r->list[i].pid))
            drop_root (r, i);
}

void roots_wait (struct roots *r, double seconds)
{
    struct pollfd fds[ROOTS_MAX + 1];

    for (size_t i = 0; i < r->n; i++)
        fds[i] = (struct pollfd){ .fd = r->list[i].fd, .events = POLLIN };
    fds[r->n] = (struct pollfd){ .fd = r->step_end, .events = POLLIN };
    if (poll (fds, r->n + 1, (int)(seconds * 1000)) <= 0)
        return;
    r->step_ended = fds[r->n].revents != 0;
    for (size_t i = r->n; i-- > 0;)
        if (fds[i].revents) {
            r->list[i].status = zombie_status (r->list[i].pid);
            drop_root (r, i);
        }
    if (r->n == 0 && !r->step_ended && r->step_end >= 0)
        r->step_ended = poll (&(struct pollfd){ r->step_end, POLLIN, 0 }, 1, STEP_END_MS) == 1;
}

/* Read the last line of an error file that Python wrote in this rank. */
static void find_error (const char *dir, const char *name, void *arg)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    debug_last_line (path, "", arg, 256);
}

static void status_text (int status, char *buf, size_t size)
{
    if (status < 0)
        *buf = '\0';
    else if (status & 127)
        snprintf (buf, size, " by signal %d", status & 127);
    else
        snprintf (buf, size, " with status %d", status >> 8 & 255);
}

char *roots_end (const struct roots *r, const char *dir, char *buf, size_t size)
{
    char error[256] = "";
    char status[32];
    char prefix[32];

    snprintf (prefix, sizeof (prefix), "error.%ld.", r->ended.rank);
    debug_each (dir, prefix, find_error, error);
    status_text (r->ended.status, status, sizeof (status));
    snprintf (buf, size, "rank %ld has ended%s%s%s%s", r->ended.rank, status, *error ? " (" : "",
              error, *error ? ")" : "");
    return buf;
}
