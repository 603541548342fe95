/* SPDX-License-Identifier: Apache-2.0 */
/* What rank 0 knows of named tensors. */
#pragma once

#include "runtime/comm/engine/coordinator.h"
#include "runtime/comm/engine/hash_map.h"

struct tensor_entry {
    char *name;
    struct tensor *t; /* of the first rank that asked, or agreed on */
    uint32_t id;      /* 0: ranks have to describe it */
    bool complete;    /* waits for its group or for its batch */
    long asked;       /* ranks that have described it */
    long first, other;
    struct tensor *differs; /* of rank 'other' */
    size_t *counts;
    struct tensor_entry *same;          /* of names that have the same hash */
    struct tensor_entry *next;          /* in the list of those ready, or of a group */
    struct tensor_entry *older, *newer; /* of those that have a number */
};

struct tensor_group {
    size_t complete;
    struct tensor_entry *members;
    char *why; /* it cannot be */
};

struct coordinator {
    long size, joined;
    bool *has_joined;
    bool left;
    host_f host;
    const void *arg;
    struct packet *down;
    struct map names, ids, gangs;
    uint32_t last_id;
    size_t cached;
    struct tensor_entry *oldest, *newest;
    struct tensor_entry *ready, **tail;
};

/* tensor_table.c */
struct tensor_entry *tensor_entry_find (struct coordinator *c, const char *name);
struct tensor_entry *tensor_entry_make (struct coordinator *c, const char *name);
void tensor_entry_free (struct tensor_entry *f);

/* Nothing is known of it any more. */
void tensor_entry_forget (struct coordinator *c, struct tensor_entry *f);

/* Its number means nothing any more. */
void tensor_entry_drop (struct coordinator *c, struct tensor_entry *f);

/* It has a number; or it was the last one that was used. */
void tensor_entry_number (struct coordinator *c, struct tensor_entry *f);
void tensor_entry_used (struct coordinator *c, struct tensor_entry *f);

/* The ranks have asked; from now on they may ask for it again. */
void tensor_entry_reset (struct tensor_entry *f);
