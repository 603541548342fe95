/* SPDX-License-Identifier: Apache-2.0 */
/* The site's defaults: what is known of a step, and one decision a step, which
 * srun makes and all tasks follow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <slurm/spank.h>

#include "runtime/rank/condition.h"

enum { WORD_TEXT = 8192, WORDS = 256 };

/* What srun told the tasks of its step. */
struct defaults_word {
    bool known;    /* srun told something */
    bool may_bind; /* the user has not chosen the cores */
    bool starts;   /* srun was told to start programs of MPI, or several ones */
    int ac;        /* the arguments in plugstack.conf that hold here */
    char **av;
    char text[WORD_TEXT];
    char *words[WORDS];
};

/* Whether the user wants no default: --dl=off, or DL_DEFAULTS=off. */
bool defaults_are_off (void);

/* In srun: tell the tasks the arguments of its own plugstack.conf.  Nodes with
 * others would split the step.
 */
void defaults_tell (bool any, int ac, char **av);

/* In a task: what srun told, taken out of its environment.  Its own arguments
 * are those of this node: paths are its own in any case.  Without a word of
 * srun's no default holds.
 */
void defaults_hear (spank_t sp, struct defaults_word *w, int ac, char **av);

/* In a task where nothing is on: take out what srun has prepared. */
void defaults_clear (spank_t sp);

/* Rank 0 tells which defaults act, and how to switch them off. */
void defaults_report (bool binds);

/* In a task: GPUs, partition, account and QOS, from Slurm's variables. */
void facts_of_task (spank_t sp, struct step_facts *f);

/* In srun, before the step is there: it has no GPUs where neither the command
 * nor the environment says a word of them.
 */
void facts_of_command (struct step_facts *f);

/* In srun: the value of its option -C or --NAME into 'buf'.  Returns -1 if the
 * command line has none that fits.
 */
int facts_option (char c, const char *name, char *buf, size_t size);

/* Whether default=auto is meant for the program of a step.  'named': the site
 * gave the default to a partition, so that all but programs of MPI and
 * independent tasks are meant.  Else the program or its script, which are read
 * as the user, has to show it.
 */
bool meant_for (spank_t sp, bool named);
