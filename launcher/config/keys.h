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
    KEY_TEXT,   /* a shell command, or a list of arguments */
    KEY_GROUPS, /* a list of groups, read by a function of its own */
};

#define KEY_WHOLE SIZE_MAX

struct key {
    const char *path; /* "searcher.metric" */
    enum key_type type;
    size_t part;        /* offset of the pointer to the part that holds the value;
                           KEY_WHOLE: the object itself holds it */
    size_t offset;      /* in that part */
    double min, max;    /* range of a number */
    const char *byname; /* the default; NULL: none; "!": the key is required */
    const char *help;
};

/* All keys, except for hyperparameters and environment variables, which the user names.  The path
 * of the last row is NULL.
 */
extern const struct key experiment_keys[];

/* The keys of an element of job.roles, a struct job_role. */
extern const struct key role_keys[];

/* ---- values of keys ---- */

/* Find the row of a path.  Returns NULL if there is none. */
const struct key *key_find (const struct key *table, const char *path);

/* Address of a key's value in an object. */
void *key_at (const void *object, const struct key *k);

/* Store the value of a setting, or the default, in 'object', the struct that the table describes
 * (for KEY_TEXT always a struct experiment).  A wrong type or a value out of range is a problem.
 * key_free() frees the value.
 */
void key_set (void *object, const struct key *k, const config_setting_t *s, struct problems *p);
void key_default (void *object, const struct key *k);
void key_free (void *object, const struct key *k);

/* Add the problem that 'path' must be 'wanted'.  Returns -1. */
int key_wrong_type (struct problems *p, const config_setting_t *s, const char *path,
                    const char *wanted);
