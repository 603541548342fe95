/* SPDX-License-Identifier: Apache-2.0 */
/* The newest values of the metrics that are logged, but not optimised. */
#pragma once

#include "launcher/sweep/sweep.h"

enum { LOGGED_NAME_SIZE = 64 };

struct logged_metric {
    char name[LOGGED_NAME_SIZE];
    double *values; /* of trial N at N - 1; NaN: none, or not a number ... */
    bool *has;      /* ... which it has logged */
};

struct logged_metrics {
    struct logged_metric *list; /* in the order in which they were met */
    size_t n;
};

/* Read the metrics of some trials (NULL: of trial 1 to n), each in the newest
 * attempt that has any, up to 'most' rows and 1024 names.  logged_free() in any
 * case.
 *
 * Returns 1 if there are more, -1 if out of memory.
 */
int logged_read (struct logged_metrics *l, const struct sweep *s, const long *trials, long n,
                 long most);
/* All of them.  Of more than 10,000 trials it reads nothing if 256 of them,
 * evenly spread, log nothing but what is optimised.
 */
int logged_read_all (struct logged_metrics *l, const struct sweep *s, const long *trials, long n);
void logged_free (struct logged_metrics *l);
