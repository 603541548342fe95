/* SPDX-License-Identifier: Apache-2.0 */
/* A proc(5) tree with the ranks of a step, and cgroups. */
#include <fcntl.h>

#include "launcher/debug/debug.h"
#include "launcher/sys/oom.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/step_processes.h"
#include "tests/fuzz/fuzz.h"

static void look (const char *proc)
{
    struct slurmdl_error err = { "" };
    struct ranks *r = ranks_create (proc, "7", "0", &err);
    struct rank_progress *p = progress_create (proc);
    const struct rank_process *all;
    size_t n;

    for (int i = 0; r && p && i < 2; i++) {
        ranks_look (r);
        ranks_roots (r, &n);
        all = ranks_all (r, &n);
        progress_look (p, all, n, i, 0);
        ranks_of (r, 0, &n);
    }
    progress_destroy (p);
    ranks_destroy (r);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const char *root = fuzz_files ("root", data, size, NULL);
    struct proc_stat s;
    char proc[4096];

    oom_kills (root);
    oom_kills_of_job (root);
    snprintf (proc, sizeof (proc), "%s/proc", root);
    look (proc);
    snprintf (proc, sizeof (proc), "%s/proc/11/stat", root);
    proc_stat (AT_FDCWD, proc, &s);
    return 0;
}
