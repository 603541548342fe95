/* SPDX-License-Identifier: Apache-2.0 */
/* Read a JSON object into a struct, as described by a table of fields. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

enum field_type {
    FIELD_NUMBER,  /* double */
    FIELD_INTEGER, /* int64_t; accepts 3.0 */
    FIELD_BOOL,    /* bool */
    FIELD_TEXT,    /* const char *, valid as long as the object */
    FIELD_LIST,    /* this and the rest: json_t *, a borrowed reference */
    FIELD_OBJECT,
    FIELD_ANY,
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset;
    bool needed;
    double min, max; /* range of a number; both 0: no limits */
};

/* Fill in the struct 'at'.  The table ends with a row without a name.  Members whose keys are
 * absent keep their values.
 *
 * Returns -1 with errno EINVAL if a key is unknown or missing, or if its value has the wrong type
 * or is out of range.  The message begins with 'who' unless that is NULL.
 */
int fields_read (const struct field *fields, const json_t *o, const char *who, void *at,
                 struct slurmdl_error *err);

/* Write "; did you mean 'WORD'?" to 'buf', or "" if no word is similar. */
void hint_text (char *buf, size_t size, const char *word, const char *const *words);
