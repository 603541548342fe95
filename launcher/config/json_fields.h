/* SPDX-License-Identifier: Apache-2.0 */
/* Read a JSON object by a table of what it may hold. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

enum field_type {
    FIELD_NUMBER,  /* double */
    FIELD_INTEGER, /* int64_t; 3.0 is one, too */
    FIELD_BOOL,    /* bool */
    FIELD_TEXT,    /* const char *, as long as the object lives; ... */
    FIELD_LIST,    /* ... so are json_t *: a list, */
    FIELD_OBJECT,
    FIELD_ANY,
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset;
    bool needed;
    double min, max; /* of a number; both 0: any */
};

/* Fill the struct 'at' by a table that ends with a row without a name.  What
 * is not there is left as it was.
 *
 * Returns -1 with errno EINVAL if a key is unknown, missing or has a value of
 * another type or out of its range; the error begins with 'who' if not NULL.
 */
int fields_read (const struct field *fields, const json_t *o, const char *who, void *at,
                 struct slurmdl_error *err);

/* "; did you mean 'WORD'?" into 'buf', or "" if no word is near. */
void hint_text (char *buf, size_t size, const char *word, const char *const *words);
