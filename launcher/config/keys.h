/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an experiment file. */
#pragma once

#include <libconfig.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/config/diagnostics.h"

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

/* ---- values of keys ---- */

/* The row of a path, NULL: there is none. */
const struct key *key_find (const struct key *table, const char *path);

/* Where an object has the value of a key. */
void *key_at (const void *object, const struct key *k);

/* Put the value of a setting, or the default, into the struct 'object' that the
 * table is of (that of a KEY_TEXT is a struct experiment); a wrong type or
 * range is a problem.
 */
void key_set (void *object, const struct key *k, const config_setting_t *s, struct problems *p);
void key_default (void *object, const struct key *k);
void key_free (void *object, const struct key *k);

/* Add the problem that 'path' must be 'wanted'; returns -1. */
int key_wrong_type (struct problems *p, const config_setting_t *s, const char *path,
                    const char *wanted);
