/* SPDX-License-Identifier: Apache-2.0 */
/* What rank 0 knows of named tensors. */
#ifndef RUNTIME_COMM_ENGINE_TENSOR_TABLE_H
#define RUNTIME_COMM_ENGINE_TENSOR_TABLE_H

#include "runtime/comm/engine/coordinator.h"
#include "runtime/comm/engine/map.h"

struct fact {
    char *name;
    struct tensor *t; /* of the first rank that asked, or agreed on */
    uint32_t id;      /* 0: ranks have to describe it */
    bool complete;    /* waits for its group or for its batch */
    long asked;       /* ranks that have described it */
    long first, other;
    struct tensor *differs; /* of rank 'other' */
    size_t *counts;
    struct fact *same;          /* of names that have the same hash */
    struct fact *next;          /* in the list of those ready, or of a group */
    struct fact *older, *newer; /* of those that have a number */
};

struct gang {
    size_t complete;
    struct fact *members;
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
    struct fact *oldest, *newest;
    struct fact *ready, **tail;
};

/* facts.c */
struct fact *fact_find (struct coordinator *c, const char *name);
struct fact *fact_make (struct coordinator *c, const char *name);
void fact_free (struct fact *f);

/* Nothing is known of it any more. */
void fact_forget (struct coordinator *c, struct fact *f);

/* Its number means nothing any more. */
void fact_drop (struct coordinator *c, struct fact *f);

/* It has a number; or it was the last one that was used. */
void fact_number (struct coordinator *c, struct fact *f);
void fact_used (struct coordinator *c, struct fact *f);

/* The ranks have asked; from now on they may ask for it again. */
void fact_reset (struct fact *f);

#endif
