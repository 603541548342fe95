/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a step: helpers beside the tasks learn of it and end in time. */
#include "spank/step_end.h"

#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/process_id.h"

/* They need 2 ms, and a CPU: on a busy node that takes longer, which is still
 * less than the second of proctrack/cgroup.
 */
enum { HELPERS = 8, WITHIN_MS = 200, EXIT_MS = 2 };

/* Of slurmstepd; tasks inherit it. */
static struct ending {
    int own, helper;
    uint32_t tasks; /* that have not ended; 0: no pair */
} ending = { -1, -1, 0 };

void ending_open (spank_t sp)
{
    static const int on = 1;
    int pair[2];
    uint32_t tasks = 0;

    if (ending.tasks || spank_get_item (sp, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS
        || tasks == 0 || socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return;
    setsockopt (pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof (on));
    ending = (struct ending){ pair[0], pair[1], tasks };
}

int ending_of_helper (void)
{
    return ending.helper;
}

void ending_join (void)
{
    if (ending.helper >= 0)
        send (ending.helper, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The next process that has joined, by the kernel's word; -1: no more. */
static pid_t next_helper (void)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE (sizeof (struct ucred))];
    } control;
    char byte;
    struct iovec io = { &byte, 1 };
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof (control)
    };
    struct cmsghdr *c;
    struct ucred who = { .pid = -1 };

    if (recvmsg (ending.own, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1 && (c = CMSG_FIRSTHDR (&m))
        && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
        memcpy (&who, CMSG_DATA (c), sizeof (who));
    return who.pid;
}

/* Without pidfds (Linux 5.3): until they have closed their end, and a little
 * longer, as they die after that.
 */
static void await_close (void)
{
    struct pollfd p = { .fd = ending.own, .events = POLLIN };

    if (poll (&p, 1, WITHIN_MS - EXIT_MS) == 1)
        poll (NULL, 0, EXIT_MS);
}

static void await_ends (const int *fds, int n)
{
    struct pollfd p = { .events = POLLIN };

    for (int i = 0; i < n; i++) {
        p.fd = fds[i];
        poll (&p, 1, WITHIN_MS / n);
        close (fds[i]);
    }
}

/* Nothing else is taken from a user's process. */
void ending_task (void)
{
    int fds[HELPERS];
    int n = 0, none = 0;
    pid_t pid;

    if (ending.tasks == 0 || --ending.tasks > 0)
        return;
    for (int i = 0; i < HELPERS && (pid = next_helper ()) > 0; i++)
        if ((fds[n] = process_open (pid)) >= 0)
            n++;
        else
            none++;
    close (ending.helper);
    shutdown (ending.own, SHUT_WR);
    if (n > 0)
        await_ends (fds, n);
    else if (none > 0)
        await_close ();
    close (ending.own);
}
