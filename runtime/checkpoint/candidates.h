/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints that a run could go on from. */
#pragma once

#include "runtime/run/run.h"

struct candidate {
    int64_t step;
    long attempt;
    bool other;  /* another trial's */
    bool prefer; /* of equal steps */
    char *path;
};

struct candidates {
    struct candidate *list;
    size_t n;
};

/* By their names, the newest first; nothing was read yet. */
void candidates_find (struct candidates *c, const struct slurmdl *run);
void candidates_free (struct candidates *c);
