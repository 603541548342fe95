/* SPDX-License-Identifier: Apache-2.0 */
/* Searches in a plane whose best point is (0.7, 0.2). */
#pragma once

#include "tests/searcher/params.h"
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

static const struct param plane[] = { FLOAT ("x", 0, 1, 5), FLOAT ("y", 0, 1, 5) };

static inline double bowl (const struct sweep *w, long trial, int64_t length)
{
    const double *x = w->x[trial];

    return hypot (x[0] - 0.7, x[1] - 0.2) + 1.0 / length;
}

static inline struct sweep start (const char *name, uint64_t seed)
{
    struct sweep w = { .config = SEARCH (name, .seed = seed, LADDER (30, 9, 3, 3),
                                         .mode = SEARCH_STANDARD),
                       .params = plane,
                       .n = 2,
                       .metric = bowl,
                       .workers = 4,
                       .shuffle = seed };

    return w;
}

/* Check that the configuration is rejected, with the message 'why' unless that is NULL, at a column
 * of its constraint (0: elsewhere).
 */
static inline void refused (const struct search_config *config, const char *why, int column)
{
    struct search_mistake at;
    const char *said = searcher_check (config, plane, 2, &at);

    assert_non_null (said);
    if (why)
        assert_string_equal (said, why);
    assert_int_equal (at.param, -1);
    assert_int_equal (at.column, column);
    errno = 0;
    assert_null (searcher_create (config, plane, 2));
    assert_int_equal (errno, EINVAL);
}
