/* SPDX-License-Identifier: Apache-2.0 */
/* Read the GPUs of a step on this node, in a child process. */
#include "launcher/monitor/gpus.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/monitor/amd.h"
#include "launcher/monitor/nvidia.h"
#include "launcher/sys/subprocess.h"

const struct gpu_name gpu_names[GPU_FIELDS] = {
    [GPU_BUSY] = { "busy", SERIES_GAUGE },
    [GPU_MEMORY] = { "memory", SERIES_GAUGE },
    [GPU_MEMORY_SIZE] = { "memory_size", SERIES_GAUGE },
    [GPU_MEMORY_BUSY] = { "memory_busy", SERIES_GAUGE },
    [GPU_POWER] = { "power", SERIES_GAUGE },
    [GPU_ENERGY] = { "energy", SERIES_COUNTER },
    [GPU_TEMPERATURE] = { "temperature", SERIES_GAUGE },
    [GPU_CLOCK] = { "clock", SERIES_GAUGE },
    [GPU_MEMORY_CLOCK] = { "memory_clock", SERIES_GAUGE },
    [GPU_HOT] = { "hot", SERIES_GAUGE },
    [GPU_CAPPED] = { "capped", SERIES_GAUGE },
    [GPU_PCIE_RECEIVE] = { "pcie_rx", SERIES_GAUGE },
    [GPU_PCIE_SEND] = { "pcie_tx", SERIES_GAUGE },
    [GPU_SM] = { "sm", SERIES_GAUGE },
    [GPU_TENSOR] = { "tensor", SERIES_GAUGE },
};

struct gpus {
    pid_t pid;
    int fd;
    bool asked;
    bool none;
};

enum { NUMBERS = 1024 };

/* "0,2-3" */
static int parse_list (const char *text, bool *in)
{
    int n = 0;

    while (*text) {
        char *end;
        long first = strtol (text, &end, 10);
        long last = first;
        if (end == text || first < 0)
            return -1;
        if (*end == '-')
            last = strtol (end + 1, &end, 10);
        for (long i = first; i <= last && i < NUMBERS; i++, n++)
            in[i] = true;
        text = *end ? end + 1 : end;
    }
    return n;
}

/* Keep those of this step: of a list as SLURM_STEP_GPUS "0,2-3", unless the
 * system shows as many as the list has, which are then the step's.
 */
static void select_of_step (struct gpu_readings *r, const char *list)
{
    bool in[NUMBERS] = { false };
    int wanted = list ? parse_list (list, in) : 0;
    int n = 0, processes = 0;

    if (wanted <= 0 || wanted >= r->n)
        return;
    for (int i = 0; i < r->n; i++)
        if (in[r->gpu[i].index])
            r->gpu[n++] = r->gpu[i];
    for (int i = 0; i < r->nprocesses; i++)
        if (in[r->process[i].gpu])
            r->process[processes++] = r->process[i];
    r->n = n;
    r->nprocesses = processes;
}

static void answer (int fd, struct nvidia *nvidia, int sysfs)
{
    struct gpu_readings *r = calloc (1, sizeof (*r));

    if (!r)
        _exit (1);
    if (nvidia)
        nvidia_read (nvidia, r);
    else
        amd_read (sysfs, r);
    select_of_step (r, getenv ("SLURM_STEP_GPUS"));
    if (send (fd, r, sizeof (*r), MSG_NOSIGNAL) != (ssize_t)sizeof (*r)
        || r->n == 0)
        _exit (0);
    free (r);
}

static void read_gpus (int fd, const char *sysfs)
{
    int root = open (sysfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct nvidia *nvidia = nvidia_open ();
    char byte;

    while (recv (fd, &byte, 1, 0) == 1)
        answer (fd, nvidia, root);
    nvidia_close (nvidia);
    _exit (0);
}

struct gpus *gpus_start (const char *sysfs)
{
    struct gpus *g = calloc (1, sizeof (*g));
    int pair[2];

    if (!g || socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        free (g);
        return NULL;
    }
    if ((g->pid = subprocess_fork (SIGKILL)) == 0) {
        close (pair[0]);
        read_gpus (pair[1], sysfs);
    }
    close (pair[1]);
    g->fd = pair[0];
    if (g->pid > 0)
        return g;
    close (g->fd);
    free (g);
    return NULL;
}

int gpus_fd (const struct gpus *g)
{
    return g && !g->none ? g->fd : -1;
}

void gpus_ask (struct gpus *g)
{
    char byte = 0;

    if (g && !g->none && !g->asked)
        g->asked = send (g->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

int gpus_take (struct gpus *g, struct gpu_readings *r)
{
    ssize_t n;

    if (!g || g->none)
        return -1;
    n = recv (g->fd, r, sizeof (*r), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    g->asked = false;
    g->none = n != (ssize_t)sizeof (*r) || r->n == 0;
    return g->none ? -1 : 1;
}

/* One that hangs in the driver cannot be killed: init inherits it. */
void gpus_end (struct gpus *g)
{
    static const struct timespec while_it_ends = { .tv_nsec = 1000000 };

    if (!g)
        return;
    close (g->fd);
    kill (g->pid, SIGKILL);
    for (int i = 0; i < 50 && waitpid (g->pid, NULL, WNOHANG) == 0; i++)
        nanosleep (&while_it_ends, NULL);
    free (g);
}
