/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an experiment file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum key_type {
    KEY_STRING,
    KEY_INT,
    KEY_FLOAT,
    KEY_BOOL,
    KEY_BOOLS,  /* a boolean or a list of them */
    KEY_LIST,   /* a string or a list of strings */
    KEY_TEXT,   /* a string that is kept as a shell command, or a list of
                   arguments */
    KEY_GROUPS, /* a list of groups, which a function of its own reads */
};

#define KEY_WHOLE SIZE_MAX

struct key {
    const char *path; /* "searcher.metric" */
    enum key_type type;
    size_t part;        /* offset of the pointer to the part that has the value,
                           KEY_WHOLE: the struct of the table itself has it */
    size_t offset;      /* in that part */
    double min, max;    /* of a number */
    const char *byname; /* the default, NULL: none, "!": must be given */
    const char *help;
};

/* All keys but those under "hyperparameters" and the variables under
 * "environment", which the user names; ended by a row whose path is NULL.
 */
extern const struct key experiment_keys[];

/* Those of one of job.roles, a struct job_role each. */
extern const struct key role_keys[];
