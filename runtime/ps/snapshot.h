/* SPDX-License-Identifier: Apache-2.0 */
/* A table as it was at one moment, copied while it goes on changing. */
#pragma once

#include "runtime/ps/table.h"

/* It is copied in parts of some rows: by ps_copy_some(), or by
 * ps_copy_row() before a row changes, which is all that a change costs.  Rows
 * that are made later are not of it.  One thread uses a table and its copy
 * until all was copied; then the copy is on its own.
 */
struct ps_copy {
    struct ps_spec spec;
    unsigned slots;
    bool missing;     /* its initial values had not come: nothing is copied */
    uint64_t n, rows; /* as of the table */
    uint32_t width;
    float *value[1 + PS_SLOTS];
    uint32_t *times;
    uint64_t *ids; /* of a sparse one */
    unsigned char *has;
    uint64_t each;        /* rows of a part */
    uint64_t parts, left; /* to be copied */
    uint64_t next;
};

/* Begin; t->copy is it from now on, until all was copied.  NULL: out of
 * memory. */
struct ps_copy *ps_copy_create (struct ps_table *t);
void ps_copy_destroy (struct ps_copy *c); /* NULL is accepted */

/* Row 't', 'r' is about to change; t->copy is not NULL. */
void ps_copy_row (struct ps_table *t, uint64_t r);

/* Copy a part.  Returns false when all was copied. */
bool ps_copy_some (struct ps_table *t);
