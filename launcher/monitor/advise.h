/* SPDX-License-Identifier: Apache-2.0 */
/* Advice from the resource usage of a step. */
#pragma once

#include "launcher/monitor/usage.h"

/* What the patterns look at, of the whole step.  NaN: not known, and then no
 * pattern that asks for it fits.
 */
enum quantity {
    Q_GPUS,         /* number */
    Q_GPU_BUSY,     /* mean, per cent */
    Q_GPU_LOWEST,   /* of the rank that has least, share of the mean */
    Q_GPU_MEMORY,   /* the most of any GPU, share of its size */
    Q_GPU_UNUSED,   /* number of GPUs on which nothing ran */
    Q_HOT,          /* share of the time, of the worst GPU */
    Q_CAPPED,       /* the same */
    Q_RANKS,        /* number */
    Q_CORES,        /* busy ones, share of those given */
    Q_CORES_GIVEN,  /* to a rank */
    Q_CORES_LOWEST, /* of the rank that has least, share of the mean */
    Q_BUSIEST,      /* cores that the busiest process of a rank kept busy, mean */
    Q_BLOCKED,      /* share of the time that ranks waited for storage, mean */
    Q_LINK,         /* share of the fullest network link */
    Q_MEMORY,       /* the most of any node, share of the job's limit */
    Q_SWITCHES,     /* a second, mean of the ranks */
    QUANTITIES
};

enum { CONDITIONS = 4 };

/* A quantity in [from, below). */
struct condition {
    enum quantity what;
    double from, below;
};

enum advice_of { OF_ALL, OF_LOWEST_GPU, OF_LOWEST_CORES };

/* Only the first pattern of a group that fits is reported. */
struct pattern_row {
    const char *name;
    int group;
    struct condition when[CONDITIONS]; /* below == 0: no condition */
    enum advice_of of;                 /* the text begins with that rank */
    const char *text;
};
extern const struct pattern_row advice_table[]; /* ended by name NULL */

/* Calculate the quantities of the table; NaN: not known. */
void advise_measure (const struct usage *u, double q[QUANTITIES]);

/* The rows that fit, at most 'max', in the order of the table; returns how
 * many.  A step of less than 5 seconds has none.
 */
int advise (const struct usage *u, const struct pattern_row **rows, int max);

/* "rank 3 on n2: ..."  */
void advice_text (const struct usage *u, const struct pattern_row *row, char *buf, size_t size);

/* The rank that has least of it (OF_LOWEST_...); NULL: there are no two. */
const struct usage_rank *advise_lowest (const struct usage *u, enum advice_of of);
