/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a new generation have of the commits of the one before. */
#pragma once

#include "runtime/comm/elastic/elastic.h"

/* What a rank says that it has, or wants (id 0).  Without data. */
struct directory_entry {
    uint64_t id;
    int64_t step;
    int64_t rank;
    bool summary; /* that it has the commit; else a slab of it */
    struct elastic_piece piece;
};

struct directory {
    struct directory_entry *list; /* the newest commit first: summaries, then the boxes of
                           each tensor; at the end what is wanted */
    size_t n;
    uint64_t id; /* of the commit that all restore; 0: none */
    int64_t step;
    long *have, *lack; /* ranks that have it, and that do not */
    long nhave, nlack;
};

/* All ranks say what they have.  -1 if one was lost. */
int directory_gather (struct slurmdl_elastic *e, struct directory *d, struct slurmdl_error *err);
/* Choose the newest commit that is there as a whole, the same on all ranks.  1;
 * 0 if there is none, and 'err' says if there was one; -1: out of memory.
 */
int directory_choose (const struct slurmdl_elastic *e, struct directory *d,
                      struct slurmdl_error *err);
/* Whether the slabs that are wanted cover each tensor once. */
int directory_check (const struct directory *d, struct slurmdl_error *err);
void directory_free (struct directory *d);

/* After the last entry from 'i' on for which 'same' is true. */
typedef bool (*same_f) (const struct directory_entry *a, const struct directory_entry *b);
size_t run_end (const struct directory *d, size_t i, same_f same);
bool same_name (const struct directory_entry *a, const struct directory_entry *b);
bool same_box (const struct directory_entry *a, const struct directory_entry *b);

struct slot *elastic_slot (struct slurmdl_elastic *e, uint64_t id);

/* Move the slabs of the chosen commit to those who want them. */
int restore_slabs (struct slurmdl_elastic *e, const struct directory *d, struct slurmdl_error *err);
