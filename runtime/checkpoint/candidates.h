/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints that a run could go on from. */
#pragma once

#include "runtime/run/run.h"

struct candidate {
    int64_t step;
    long attempt;
    bool other;  /* another trial's */
    bool prefer; /* of equal steps */
    bool bad;    /* it was tried, and is damaged, or no file */
    char *path;
};

struct candidates {
    struct candidate *list;
    size_t n;
    int error;   /* an errno: a folder could not be listed */
    char *where; /* that one, or NULL: out of memory */
};

/* By their names, the newest first; nothing was read yet.  Returns -1 where a
 * folder that is there cannot be listed: there may be some.
 */
int candidates_find (struct candidates *c, const struct slurmdl *run, struct slurmdl_error *err);
void candidates_free (struct candidates *c);
