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
enum { VALUE_MAX = 64, LIST_MAX = 255, PATH_LENGTH = 256, WHY_SIZE = 320 };

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
    OPTION_MONITOR,
    OPTION_DEBUG,
    OPTIONS
};

/* What the site decides (policy.c). */
struct policy {
    char options[LIST_MAX + 1];            /* "": all of them */
    char fallback[OPTIONS][VALUE_MAX + 1]; /* of jobs that give none */
    char allow[OPTIONS][LIST_MAX + 1];     /* "": all values */
    char deny[OPTIONS][LIST_MAX + 1];
    long min[OPTIONS], max[OPTIONS]; /* 0: none */
    char nccl_dir[PATH_LENGTH];      /* of site profiles */
    char command[PATH_LENGTH];       /* dl */
};

struct context {
    char value[OPTIONS][VALUE_MAX + 1]; /* "": not given */
    struct policy policy;
};

/* Register the options of all rows that the site has (options.c). */
int options_register (spank_t sp);

/* Read the site's policy, and begin with its defaults. */
void options_begin (int ac, char **av);

/* -1 and why if the option does not take this value at any site. */
int option_check (int row, const char *value, char *why, size_t size);

/* Say one line, whatever bytes of the user's are in it. */
void complain (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* Read the arguments in plugstack.conf.  A wrong one is told, unless on a
 * node, and ignored.
 */
void policy_read (struct policy *p, int ac, char **av);

bool policy_has (const struct policy *p, int row);

/* -1 and why if this site does not take a value that the option has. */
int policy_check (
    const struct policy *p, int row, const char *value, char *why, size_t size);

const char *option_value (int row);

/* Folder of the site's profiles. */
const char *option_nccl_dir (void);

/* The command dl of this plugin, from /. */
const char *option_command (void);

/* Set the environment of one task (task.c). */
void task_environment (spank_t sp, const char *framework, const char *roles);

/* Bind one task to GPUs, cores and memory (bind.c). */
void bind_task (spank_t sp);

/* Set the network variables of one task and say what is wrong with those that
 * its user exported (nccl.c).
 */
void nccl_task (spank_t sp);

/* Start the monitor of this node, if this is its first task; in srun, say which
 * step is to be summarized, and do it at the end (monitor.c).
 */
int monitor_check (const char *value, char *why, size_t size);
void monitor_task (spank_t sp);
void monitor_begin (spank_t sp);
void monitor_end (spank_t sp);
/* Set the variables that tell why a step hangs, and start the watcher of this
 * node (debug.c); after nccl_task().
 */
void debug_task (spank_t sp);
int debug_check (const char *value, char *why, size_t size);

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
