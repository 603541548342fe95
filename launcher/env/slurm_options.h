/* SPDX-License-Identifier: Apache-2.0 */
/* What a step asks of Slurm, as its options say; for `dl env`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

/* clang-format off */
enum ask_key {
    ASK_OTHER, /* an option of Slurm's that changes no variable of ours */
    ASK_NODES, ASK_NTASKS, ASK_PER_NODE, ASK_NODELIST, ASK_DISTRIBUTION,
    ASK_CPUS, ASK_GPUS, ASK_GPUS_PER_NODE, ASK_GPUS_PER_TASK, ASK_GRES,
    ASK_GPU_BIND, ASK_MPI, ASK_HET_GROUP, ASK_DL, ASK_ROLES, ASK_BIND, ASK_NCCL,
    /* not Slurm's: facts that are known only when the job runs */
    ASK_JOB, ASK_RESV_PORTS, ASK_TOPOLOGY, ASK_CPU_LIST, ASK_NCCL_DIR,
    ASK_ONE_MACHINE,
    ASK_HET, /* nodes of each component */
    ASK_HET_GPUS, ASK_HET_TASKS,
    ASK_KEYS
};
/* clang-format on */

struct ask {
    char *value[ASK_KEYS]; /* NULL: not given */
    char *where[ASK_KEYS]; /* "job.sh:3", "--nodes" */
};

/* Take the option in words[0] (its value may be words[1], which can be NULL).
 * 'where' is "FILE:LINE"; NULL: the command line, whose options may be ours,
 * too.  Returns how many words it took, 0 if words[0] is no option, -1 with
 * errno EINVAL and what is wrong.  The last one of several counts.
 */
int ask_take (struct ask *a,
              char *const *words,
              const char *where,
              struct slurmdl_error *err);

/* Read the #SBATCH lines of a batch script, and each line that begins with
 * srun: 'step' is called for them with a copy of what sbatch asks and srun's
 * options in it, and what could not be read (NULL: nothing), until it does not
 * return 0.  A script without srun is one step of what sbatch asks.
 *
 * Lines are joined at a backslash and cut into words as the shell does; a word
 * with a $ or ` is known only to the shell.  A step on components of a
 * heterogeneous job is that of components_join().  Returns what 'step'
 * returned, or -1 with errno and what is wrong.
 */
struct ask_step {
    const struct ask *ask;
    const char *where;
    const char *unread;
    bool no_srun; /* the file has none */
};
typedef int ask_step_f (void *arg, const struct ask_step *s);
int ask_script (const char *path,
                ask_step_f *step,
                void *arg,
                struct slurmdl_error *err);

/* A copy, to be released by ask_free() also after -1: no memory. */
int ask_copy (struct ask *to, const struct ask *from);
/* What 'from' has, over that. */
int ask_merge (struct ask *to, const struct ask *from);
void ask_free (struct ask *a);
