/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-nccl: set the network variables of a task, and check the exported ones.
 */
#include "spank/hooks.h"

#include <net/if.h>
#include <string.h>

#include "runtime/network/fabric.h"
#include "runtime/network/nccl.h"
#include "spank/context.h"

enum { TEXT = 4096 };

#define SYSFS     "/sys"
#define NCCL_CONF "/etc/nccl.conf"

static void print_finding (void *arg, const char *line)
{
    (void)arg;
    slurm_error ("dl: %s", line);
}

/* In a network namespace with the host's /sys, the interfaces listed there are not
 * the task's.  Report none rather than those.
 */
static void read_fabric (struct fabric *f)
{
    fabric_read (SYSFS, f);
    for (int i = 0; i < f->ninterfaces; i++)
        if (if_nametoindex (f->interfaces[i].name) != (unsigned)f->interfaces[i].index) {
            f->ninterfaces = 0;
            return;
        }
}

static bool is_rank_0 (spank_t sp)
{
    char rank[16];

    return spank_getenv (sp, "SLURM_PROCID", rank, sizeof (rank)) == ESPANK_SUCCESS
           && !strcmp (rank, "0");
}

static void lint (spank_t sp, const char *ours, const struct fabric *f)
{
    char lines[NCCL_LINES][NCCL_LINE];
    char **env = NULL;
    int n = 0;

    if (spank_get_item (sp, S_JOB_ENV, &env) == ESPANK_SUCCESS && env)
        n = nccl_lint (env, ours, f, lines);
    for (int i = 0; i < n; i++)
        slurm_error ("dl: %s", lines[i]);
}

void nccl_task (spank_t sp)
{
    const struct variables v = variables_of (sp);
    const char *name = option_value (PLUGIN_NCCL);
    struct nccl_profile profile = { .n = 0 };
    char text[NCCL_VALUE];
    char stale[TEXT];
    bool loud = is_rank_0 (sp);
    struct fabric f;

    if (!strcmp (name, "none"))
        return;
    variables_text (&v, "DL_NCCL_SET", stale, sizeof (stale));
    read_fabric (&f);
    nccl_choose (option_nccl_dir (), NCCL_CONF, name, &f, &profile, loud ? print_finding : NULL,
                 NULL);
    if (loud)
        lint (sp, stale, &f);
    nccl_set (&v, &profile);
    fabric_text (&f, text, sizeof (text));
    spank_setenv (sp, "DL_NCCL_FABRIC", text, 1);
}
