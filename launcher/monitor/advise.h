/* SPDX-License-Identifier: Apache-2.0 */
/* Turn the measured resource usage of a step into advice for the user. */
#pragma once

#include "launcher/monitor/usage.h"

/* Quantities that the patterns test, each for the step as a whole.  An unknown
 * quantity is NaN, and a pattern that tests it does not match.
 */
enum quantity {
    Q_GPUS,         /* number */
    Q_GPU_BUSY,     /* mean, per cent */
    Q_GPU_LOWEST,   /* GPU use of the rank with the least, as a share of the mean */
    Q_GPU_MEMORY,   /* peak memory of the fullest GPU, as a share of its size */
    Q_GPU_UNUSED,   /* number of idle GPUs */
    Q_HOT,          /* share of the time that the worst GPU was throttled for heat */
    Q_CAPPED,       /* share of the time that the worst GPU was throttled for power */
    Q_RANKS,        /* number */
    Q_CORES,        /* busy cores, as a share of the allocated ones */
    Q_CORES_GIVEN,  /* cores allocated to each rank */
    Q_CORES_LOWEST, /* CPU use of the rank with the least, as a share of the mean */
    Q_BUSIEST,      /* cores that a rank's busiest process used, mean of the ranks */
    Q_BLOCKED,      /* share of the time that ranks waited for storage, mean */
    Q_LINK,         /* utilization of the busiest network link, 0..1 */
    Q_MEMORY,       /* peak memory of the fullest node, as a share of the job's limit */
    Q_SWITCHES,     /* involuntary context switches per second, mean of the ranks */
    QUANTITIES
};

enum { CONDITIONS = 4 };

/* Matches a quantity in [from, below). */
struct condition {
    enum quantity what;
    double from, below;
};

enum advice_of { OF_ALL, OF_LOWEST_GPU, OF_LOWEST_CORES };

/* Only the first matching pattern of each group is reported. */
struct pattern_row {
    const char *name;
    int group;
    struct condition when[CONDITIONS]; /* below == 0: no condition */
    enum advice_of of;                 /* the rank that the text names first */
    const char *text;
};
extern const struct pattern_row advice_table[]; /* ended by name NULL */

/* Calculate all quantities; set unknown ones to NaN. */
void advise_measure (const struct usage *u, double q[QUANTITIES]);

/* Store up to 'max' matching rows in table order and return their number.
 * Steps shorter than 5 seconds match nothing.
 */
int advise (const struct usage *u, const struct pattern_row **rows, int max);

/* Format a row as text, such as "rank 3 on n2: ...". */
void advice_text (const struct usage *u, const struct pattern_row *row, char *buf, size_t size);

/* Return the rank with the lowest value of 'of' (OF_LOWEST_...), or NULL unless
 * two ranks can be compared.
 */
const struct usage_rank *advise_lowest (const struct usage *u, enum advice_of of);
