/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a task, wherever it is kept. */
#pragma once

#include <stdbool.h>

enum variable_state { VARIABLE_UNSET = -1, VARIABLE_COPIED, VARIABLE_TOO_LONG };

/* slurmstepd's for the plugin, a list for `dl env`. */
struct variables {
    enum variable_state (*get) (void *arg, const char *name, char *buf, int size);
    void (*set) (void *arg, const char *name, const char *value);
    void (*unset) (void *arg, const char *name);
    void *arg;
};

/* Copy a value; "" and -1 if it is not set, or does not fit. */
int variables_text (const struct variables *v, const char *name, char *buf, int size);

/* Its value; -1 if it is not set or no number. */
long variables_number (const struct variables *v, const char *name);

/* What the plugin gives a task.  A list of names, kept in a variable of its own
 * ("DL_ENV_SET"), tells a job that was submitted from within a step which of
 * them are not its user's.
 */
enum { GIVEN_TEXT = 4096 };

struct given {
    const struct variables *vars;
    char stale[GIVEN_TEXT];
    char ours[GIVEN_TEXT];
};

void given_begin (struct given *g, const struct variables *v, const char *mark);

/* Set it, unless the user has: then false. */
bool given_set (struct given *g, const char *name, const char *value);

/* Write the list of what was set. */
void given_end (struct given *g, const char *mark);
