/* SPDX-License-Identifier: Apache-2.0 */
/* Classify the processes of a rank: training, helper, launcher, background. */
#include "launcher/debug/debug.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/proc.h"

enum { DEPTH = 64 };

/* Programs whose kind follows from the name of the process, or from a part of its command line. */
static const struct {
    enum process_kind kind;
    const char *name;
    const char *argument;
} known[] = {
    { PROCESS_LAUNCHER, "sh", NULL },
    { PROCESS_LAUNCHER, "bash", NULL },
    { PROCESS_LAUNCHER, "dash", NULL },
    { PROCESS_LAUNCHER, "zsh", NULL },
    { PROCESS_LAUNCHER, "csh", NULL },
    { PROCESS_LAUNCHER, "tcsh", NULL },
    { PROCESS_LAUNCHER, "time", NULL },
    { PROCESS_LAUNCHER, "timeout", NULL },
    { PROCESS_LAUNCHER, "numactl", NULL },
    { PROCESS_LAUNCHER, "dl", NULL },
    { PROCESS_LAUNCHER, "torchrun", NULL },
    { PROCESS_LAUNCHER, "accelerate", NULL },
    { PROCESS_LAUNCHER, "deepspeed", NULL },
    { PROCESS_LAUNCHER, "mpirun", NULL },
    { PROCESS_LAUNCHER, "mpiexec", NULL },
    { PROCESS_LAUNCHER, "apptainer", NULL },
    { PROCESS_LAUNCHER, "singularity", NULL },
    { PROCESS_LAUNCHER, NULL, "/torchrun" },
    { PROCESS_LAUNCHER, NULL, "torch.distributed.run" },
    { PROCESS_LAUNCHER, NULL, "torch.distributed.launch" },
    { PROCESS_LAUNCHER, NULL, "accelerate.commands" },
    { PROCESS_LAUNCHER, NULL, "/accelerate" },
    { PROCESS_LAUNCHER, NULL, "deepspeed.launcher" },
    { PROCESS_BACKGROUND, "wandb-core", NULL },
    { PROCESS_BACKGROUND, "wandb-service", NULL },
    { PROCESS_BACKGROUND, "gpu_stats", NULL },
    { PROCESS_BACKGROUND, "nvidia-smi", NULL },
    { PROCESS_BACKGROUND, "rocm-smi", NULL },
    { PROCESS_BACKGROUND, "amd-smi", NULL },
    { PROCESS_BACKGROUND, "dcgmi", NULL },
    { PROCESS_BACKGROUND, "tensorboard", NULL },
    { PROCESS_BACKGROUND, NULL, "multiprocessing.resource_tracker" },
};

/* Read the beginning of the command line, with blanks between the words. */
static void read_command_line (const char *proc, pid_t pid, char *buf, size_t size)
{
    char path[PATH_MAX];
    ssize_t n;

    snprintf (path, sizeof (path), "%s/%d/cmdline", proc, (int)pid);
    n = proc_read (AT_FDCWD, path, buf, size);
    for (ssize_t i = 0; i < n; i++)
        if (!buf[i])
            buf[i] = ' ';
}

static enum process_kind own_kind (const char *proc, const struct rank_process *p)
{
    char command[256] = "";

    for (size_t i = 0; i < sizeof (known) / sizeof (*known); i++)
        if (known[i].name && !strcmp (known[i].name, p->name))
            return known[i].kind;
    if (strncmp (p->name, "python", 6) && strncmp (p->name, "pt_main", 7))
        return PROCESS_MAIN;
    read_command_line (proc, p->pid, command, sizeof (command));
    for (size_t i = 0; i < sizeof (known) / sizeof (*known); i++)
        if (known[i].argument && strstr (command, known[i].argument))
            return known[i].kind;
    return PROCESS_MAIN;
}

static ssize_t parent_index (const struct rank_process *p, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (p[k].pid == p[i].parent)
            return (ssize_t)k;
    return -1;
}

/* Descendants of a user's program are its helpers; descendants of a background process
 * are background processes.
 */
static enum process_kind inherited (const struct rank_process *p, size_t n,
                                    const enum process_kind *own, size_t i)
{
    enum process_kind kind = own[i];
    ssize_t at = (ssize_t)i;

    for (int depth = 0; depth < DEPTH; depth++) {
        at = parent_index (p, n, (size_t)at);
        if (at < 0)
            break;
        if (own[at] == PROCESS_BACKGROUND)
            return PROCESS_BACKGROUND;
        if (own[at] == PROCESS_MAIN && kind == PROCESS_MAIN)
            kind = PROCESS_HELPER;
    }
    return kind;
}

void family_kinds (const char *proc, const struct rank_process *p, size_t n,
                   enum process_kind *kinds)
{
    size_t root = 0;
    bool found = false;

    for (size_t i = 0; i < n; i++)
        kinds[i] = own_kind (proc, &p[i]);
    for (size_t i = 0; i < n; i++) {
        if (kinds[i] == PROCESS_MAIN)
            found = true;
        /* the root started first; its PID may be larger than others, because PIDs wrap */
        if (parent_index (p, n, i) < 0 && p[i].start <= p[root].start)
            root = i;
    }
    if (!found && n > 0) {
        kinds[root] = PROCESS_MAIN;
        return;
    }
    /* changing kinds in place is safe: above each new helper, a main process stays one */
    for (size_t i = n; i-- > 0;) {
        enum process_kind k = inherited (p, n, kinds, i);
        kinds[i] = k;
    }
}
