/* SPDX-License-Identifier: Apache-2.0 */
/* The site's defaults: the known facts of a step, and one decision per step, which
 * srun makes and all tasks follow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <slurm/spank.h>

#include "runtime/rank/condition.h"

enum { WORD_TEXT = 8192, WORDS = 256 };

/* What srun passed to the tasks of its step. */
struct defaults_word {
    bool known;    /* srun passed something */
    bool may_bind; /* the user has not chosen the cores */
    bool starts;   /* the user asked srun to start MPI programs or several programs */
    int ac;        /* arguments in plugstack.conf that apply */
    char **av;
    char text[WORD_TEXT];
    char *words[WORDS];
};

/* Whether the user wants no default: --dl=off, or DL_DEFAULTS=off. */
bool defaults_are_off (void);

/* In srun: pass the arguments of its plugstack.conf to the tasks.  If each node
 * used its own, nodes that differ would split the step.
 */
void defaults_tell (bool any, int ac, char **av);

/* In a task: read what srun passed, and remove it from the environment.  Paths
 * always come from this node's own arguments.  If srun passed nothing, no
 * default applies.
 */
void defaults_hear (spank_t sp, struct defaults_word *w, int ac, char **av);

/* In a task where no option is on: remove what srun prepared. */
void defaults_clear (spank_t sp);

/* Rank 0 reports which defaults are active, and how to switch them off. */
void defaults_report (bool binds);

/* In a task: GPUs, partition, account and QOS, from Slurm's variables. */
void facts_of_task (spank_t sp, struct step_facts *f);

/* In srun, before the step exists: it has no GPUs if neither the command line
 * nor the environment mentions any.
 */
void facts_of_command (struct step_facts *f);

/* In srun: copy the value of its option -C or --NAME to 'buf'.  Returns -1 if
 * the command line has none, or it does not fit.
 */
int facts_option (char c, const char *name, char *buf, size_t size);

/* Whether default=auto applies to the program of a step.  If 'named', the site set
 * the default for a partition, so that it applies to everything except MPI programs
 * and independent tasks.  Otherwise the program or its script, read as the user,
 * must show that it needs the default.
 */
bool meant_for (spank_t sp, bool named);
