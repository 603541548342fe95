/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the environment of a task. */
#pragma once

#include <stdbool.h>

enum variable_state { VARIABLE_UNSET = -1, VARIABLE_COPIED, VARIABLE_TOO_LONG };

/* The plugin accesses slurmstepd's environment, `dl env` a list. */
struct variables {
    enum variable_state (*get) (void *arg, const char *name, char *buf, int size);
    void (*set) (void *arg, const char *name, const char *value);
    void (*unset) (void *arg, const char *name);
    void *arg;
};

/* Copy a value to 'buf'; returns -1, with "" in 'buf', if it is not set or does not fit. */
int variables_text (const struct variables *v, const char *name, char *buf, int size);

/* The value as a number; -1 if it is not set or not a number. */
long variables_number (const struct variables *v, const char *name);

/* Variables that the plugin sets for a task.  Their names are listed in a separate variable
 * ("DL_ENV_SET"), so that a job submitted from within a step knows which of them its user did not
 * set.
 */
enum { GIVEN_TEXT = 4096 };

struct given {
    const struct variables *vars;
    char stale[GIVEN_TEXT];
    char ours[GIVEN_TEXT];
};

void given_begin (struct given *g, const struct variables *v, const char *mark);

/* Set a variable; returns false without a change if the user has set it. */
bool given_set (struct given *g, const char *name, const char *value);

/* Write the list of names that were set. */
void given_end (struct given *g, const char *mark);
