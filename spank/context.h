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
enum { VALUE_MAX = 64 };

/* One option; the only list of them (dl-spank(8) is compared with it). */
struct option_row {
    const char *name;
    const char *arginfo;
    const char *usage;
    const char *const *words; /* the values that it takes, ended by NULL */
    /* or, if words is NULL: -1 and why if it does not take the value */
    int (*check) (const char *value, char *why, size_t size);
    bool list; /* several words, with commas */
};
extern const struct option_row option_rows[];

enum { OPTION_FRAMEWORK, OPTION_ROLES, OPTION_BIND, OPTIONS };

struct context {
    char value[OPTIONS][VALUE_MAX + 1]; /* "": not given */
};

/* Register the options of all rows (options.c). */
int options_register (spank_t sp);

/* Take "default=torch" from plugstack.conf. */
void options_defaults (int ac, char **av);

const char *option_value (int row);

/* Set the environment of one task (task.c). */
void task_environment (spank_t sp, const char *framework, const char *roles);

/* Bind one task to GPUs, cores and memory (bind.c). */
extern const char *const bind_words[];
void bind_task (spank_t sp);

#endif
