/* SPDX-License-Identifier: Apache-2.0 */
/* What the hooks of the plugin share. */
#ifndef SPANK_CONTEXT_H
#define SPANK_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slurm/spank.h>

/* A value comes from the user, byte for byte, into a process of root's: it is
 * one of a list of words, and short.
 */
enum { VALUE_MAX = 64, PATH_LENGTH = 256 };

/* One option; the only list of them (dl-spank(8) is compared with it). */
struct option_row {
    const char *name;
    const char *arginfo;
    const char *usage;
    const char *const *words; /* the values that it takes, ended by NULL */
    /* or, if words is NULL: -1 and why if it does not take the value */
    int (*check) (const char *value, char *why, size_t size);
    bool list;        /* several words, with commas */
    const char *bare; /* the value if none is given; NULL: one must be */
};
extern const struct option_row option_rows[];

enum {
    OPTION_FRAMEWORK,
    OPTION_ROLES,
    OPTION_BIND,
    OPTION_NCCL,
    OPTION_CHECK,
    OPTIONS
};

struct context {
    char value[OPTIONS][VALUE_MAX + 1]; /* "": not given */
    char nccl_dir[PATH_LENGTH];         /* of site profiles */
    char command[PATH_LENGTH];          /* dl */
};

/* Register the options of all rows (options.c). */
int options_register (spank_t sp);

/* Take "default=torch", "nccl=auto", "nccl_dir=DIR" and "dl=PATH" from
 * plugstack.conf.
 */
void options_defaults (int ac, char **av);

const char *option_value (int row);

/* Folder of the site's profiles. */
const char *option_nccl_dir (void);

/* The command dl of this plugin, from /. */
const char *option_command (void);

/* Set the environment of one task (task.c). */
void task_environment (spank_t sp, const char *framework, const char *roles);

/* Bind one task to GPUs, cores and memory (bind.c). */
extern const char *const bind_words[];
void bind_task (spank_t sp);

/* Set the network variables of one task and say what is wrong with those that
 * its user exported (nccl.c).
 */
void nccl_task (spank_t sp);

/* -1 and why if there can be no such profile; looks for its file too, unless
 * on a node, where this runs as root.
 */
int nccl_check (const char *value, char *why, size_t size);

/* The gathering of a step's ranks (gather.c): what --dl-check decides, and the
 * table of who is where.  'level' is a word of check_words, or "".
 *
 * In srun: start the collector that the ranks will find.
 */
extern const char *const check_words[];
void gather_start (spank_t sp, const char *level, bool table);

/* In a task: take part, and wait for the verdict.  Ends the task if that says
 * so.
 */
void gather_task (spank_t sp, const char *level, bool table);

#endif
