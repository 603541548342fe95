/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters that are active only for some values of another one. */
#include "tests/searcher/search.h"
#include "tests/searcher/sweep.h"

static const double nets[] = { 0, 2 }, one[] = { 1 }, deep[] = { 3, 4 };
static const double early[] = { 0.3, 1 };

/* Three levels (net, layers, dropout), with children before and after their parents. */
/* clang-format off */
static const struct param space[] = {
    { .name = "dropout", .type = PARAM_FLOAT, .max = 0.5, .count = 2,
      .when = "layers", .when_values = deep, .when_count = 2 },
    { .name = "net", .type = PARAM_CATEGORICAL, .choices = 3 },
    { .name = "layers", .type = PARAM_INT, .min = 1, .max = 4,
      .when = "net", .when_values = nets, .when_count = 2 },
    { .name = "kernel", .type = PARAM_INT, .min = 3, .max = 8, .step = 2,
      .when = "net", .when_values = one, .when_count = 1 },
    { .name = "lr", .type = PARAM_LOG, .min = -5, .max = -1, .base = 10,
      .count = 2 },
    { .name = "warm", .type = PARAM_FLOAT, .max = 1, .step = 0.1 },
    { .name = "after", .type = PARAM_CATEGORICAL, .choices = 2,
      .when = "warm", .when_values = early, .when_count = 2 },
};
/* clang-format on */

static bool near (double a, double b)
{
    return fabs (a - b) < 1e-6;
}

static bool in_range (const struct param *p, double x)
{
    double low = p->min, high = p->max, k;

    if (p->type == PARAM_CATEGORICAL)
        return x >= 0 && x < p->choices && x == floor (x);
    if (p->type == PARAM_LOG) {
        low = pow (p->base, low) * (1 - 1e-9);
        high = pow (p->base, high) * (1 + 1e-9);
    }
    k = (x - p->min) / p->step;
    if (p->step > 0 && !near (k, floor (k + 0.5)))
        return false;
    if (p->type == PARAM_INT && x != floor (x))
        return false;
    return x >= low && x <= high;
}

static bool is_active (const struct param *params, size_t n, size_t i, const double *x)
{
    const struct param *p = params + i;

    if (!p->when)
        return true;
    for (size_t k = 0; k < n; k++)
        if (!strcmp (params[k].name, p->when)) {
            if (!is_active (params, n, k, x))
                return false;
            for (long v = 0; v < p->when_count; v++)
                if (near (x[k], p->when_values[v]))
                    return true;
        }
    return false;
}

static void check_point (const struct param *params, size_t n, const double *x)
{
    for (size_t i = 0; i < n; i++)
        if (is_active (params, n, i, x))
            assert_true (in_range (params + i, x[i]));
        else
            assert_true (isnan (x[i]));
}

/* Net 1 is the worst, and net 2 with 4 layers is the best. */
static double branches (const struct sweep *w, long trial, int64_t length)
{
    const double *x = w->x[trial];
    double y = fabs (log10 (x[4]) + 3) + 1.0 / length;

    if (x[1] == 1)
        return y + 3 + fabs (x[3] - 5);
    y += x[1] == 2 ? 0 : 1;
    y += 4 - x[2];
    return isnan (x[0]) ? y + 1 : y + fabs (x[0] - 0.2) * 4;
}

static struct sweep start (const char *name, uint64_t seed)
{
    struct sweep w = { .config = SEARCH (name, .seed = seed, LADDER (60, 9, 3, 3),
                                         .mode = SEARCH_STANDARD),
                       .params = space,
                       .n = COUNT (space),
                       .metric = branches,
                       .workers = 4,
                       .shuffle = seed };

    return w;
}

CASE (test_active)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        long seen[COUNT (space)] = { 0 };
        for (uint64_t seed = 1; seed <= 2; seed++) {
            struct sweep w = start (k->name, seed);
            sweep_run (&w);
            for (long t = 1; t <= w.trials; t++) {
                check_point (space, w.n, w.x[t]);
                for (size_t i = 0; i < w.n; i++)
                    seen[i] += !isnan (w.x[t][i]);
            }
            sweep_free (&w);
        }
        for (size_t i = 0; i < COUNT (space); i++)
            assert_true (seen[i] > 0 || !strcmp (k->name, "single"));
    }
}

CASE (test_single)
{
    struct sweep w = start ("single", 1);

    sweep_run (&w);
    assert_true (isnan (w.x[1][0]));
    assert_true (w.x[1][1] == 0);
    assert_true (w.x[1][2] == 2);
    assert_true (isnan (w.x[1][3]));
    assert_true (near (w.x[1][4], 1e-3));
    assert_true (near (w.x[1][5], 0.5));
    assert_true (isnan (w.x[1][6]));
    sweep_free (&w);
}

/* A random space of small parameters.  Each may depend on an earlier or a later one, but
 * never in a cycle.
 */
struct wood {
    struct param params[6];
    double values[6][3];
    size_t n;
};

static void make_wood (struct wood *w, uint64_t seed)
{
    static const char *const names[] = { "e", "b", "d", "a", "f", "c" };
    size_t order[] = { 0, 1, 2, 3, 4, 5 };
    uint64_t r = seed;

    *w = (struct wood){ .n = 1 + sweep_random (&r, 6) };
    for (size_t i = 0; i < w->n; i++) {
        struct param *p = w->params + i;
        size_t k = i + sweep_random (&r, w->n - i), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
        *p = (struct param){ .name = names[i], .type = PARAM_CATEGORICAL };
        p->choices = 1 + sweep_random (&r, 3);
        if (sweep_random (&r, 2)) {
            p->type = PARAM_INT;
            p->max = p->choices - 1;
        }
    }
    /* order[i] may depend on order[0 .. i-1] */
    for (size_t i = 1; i < w->n; i++) {
        struct param *p = w->params + order[i];
        const struct param *parent = w->params + order[sweep_random (&r, i)];
        if (sweep_random (&r, 3) == 0)
            continue;
        p->when = parent->name;
        p->when_values = w->values[i];
        p->when_count = 1 + sweep_random (&r, 2);
        for (long v = 0; v < p->when_count; v++)
            w->values[i][v] = sweep_random (&r, parent->choices);
    }
}

static void brute_mask (const struct wood *w, double *x)
{
    double masked[6];

    for (size_t i = 0; i < w->n; i++)
        masked[i] = is_active (w->params, w->n, i, x) ? x[i] : NAN;
    memcpy (x, masked, w->n * sizeof (*x));
}

/* Mask the inactive parameters of every point of the product and count the distinct results. */
static long brute_count (const struct wood *w, double (*found)[8])
{
    long product = 1, n = 0;

    for (size_t i = 0; i < w->n; i++)
        product *= w->params[i].choices;
    for (long k = 0; k < product; k++) {
        double x[8] = { 0 };
        long rest = k, old = 0;
        for (size_t i = 0; i < w->n; i++) {
            x[i] = rest % w->params[i].choices;
            rest /= w->params[i].choices;
        }
        brute_mask (w, x);
        while (old < n && memcmp (found[old], x, sizeof (x)))
            old++;
        memcpy (found[old], x, sizeof (x));
        n += old == n;
    }
    return n;
}

static bool allowed (const double *x)
{
    return isnan (x[0]) || (!isnan (x[1]) ? x[0] + x[1] != 2 : true);
}

static void check_wood (const struct wood *wood, const char *constraint)
{
    double found[1000][8];
    long n = brute_count (wood, found), some = 0;
    struct sweep w = { .config = { .name = "grid", .max_length = 1, .constraint = constraint },
                       .params = wood->params,
                       .n = wood->n,
                       .metric = sweep_plain };

    for (long i = 0; i < n; i++)
        if (!constraint || allowed (found[i]))
            memcpy (found[some++], found[i], sizeof (found[i]));
    if (some == 0) {
        assert_string_equal (searcher_check (&w.config, w.params, w.n, NULL),
                             "the constraint forbids all points of the grid");
        return;
    }
    sweep_run (&w);
    assert_int_equal (w.trials, some);
    for (long t = 1; t <= w.trials; t++) {
        long i = 0;
        while (i < some && memcmp (found[i], w.x[t], sizeof (found[i])))
            i++;
        assert_true (i < some);
        /* remove it, so that a second trial of the same point fails */
        memcpy (found[i], found[--some], sizeof (found[i]));
    }
    sweep_free (&w);
}

CASE (test_grid)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct wood wood;

        make_wood (&wood, seed);
        check_wood (&wood, NULL);
        if (wood.n >= 2 && wood.params[0].type == PARAM_INT && wood.params[1].type == PARAM_INT)
            check_wood (&wood, "e + b != 2");
    }
}

/* The grid sorts parameters by name, as without conditions: "a" varies slowest, its children
 * vary with it, and the last name varies fastest.
 */
CASE (test_grid_order)
{
    static const double x[][3] = { { NAN, 0, 0 }, { NAN, 0, 1 }, { 5, 1, 0 },
                                   { 5, 1, 1 },   { 6, 1, 0 },   { 6, 1, 1 } };
    /* clang-format off */
    static const struct param params[] = {
        { .name = "c", .type = PARAM_INT, .min = 5, .max = 6, .when = "a",
          .when_values = one, .when_count = 1 },
        { .name = "a", .type = PARAM_CATEGORICAL, .choices = 2 },
        { .name = "b", .type = PARAM_CATEGORICAL, .choices = 2 },
    };
    /* clang-format on */
    struct sweep w = { .config = { .name = "grid", .max_length = 1 },
                       .params = params,
                       .n = 3,
                       .metric = sweep_plain };

    sweep_run (&w);
    assert_int_equal (w.trials, COUNT (x));
    for (size_t t = 0; t < COUNT (x); t++)
        for (int i = 0; i < 3; i++)
            assert_true (w.x[t + 1][i] == x[t][i] || (isnan (w.x[t + 1][i]) && isnan (x[t][i])));
    sweep_free (&w);
}

static const double never[] = { 0, 5 }, half[] = { 0.5 };
static const double not_a_number[] = { NAN };

#define WAITS(n, by, values, count)                                                                \
    {                                                                                              \
        .name = n, .type = PARAM_CATEGORICAL, .choices = 3, .when = by, .when_values = values,     \
        .when_count = count                                                                        \
    }

#define FREE(n) WAITS (n, NULL, NULL, 0)

#define MISSING "when: no such parameter"
#define CIRCLE  "when: the parameters wait for each other"
#define NEVER   "when: the other parameter never has this value"

/* clang-format off */
static const struct {
    struct param params[3];
    size_t n;
    int param;
    const char *why;
} bad[] = {
    { { WAITS ("a", "b", one, 1) }, 1, 0, MISSING },
    { { WAITS ("a", "", one, 1) }, 1, 0, MISSING },
    { { WAITS ("a", "a", one, 1) }, 1, 0, CIRCLE },
    { { FREE ("a"), WAITS ("b", "c", one, 1), WAITS ("c", "b", one, 1) }, 3, 1, CIRCLE },
    { { WAITS ("a", "b", one, 1), WAITS ("b", "c", one, 1),
        WAITS ("c", "a", one, 1) }, 3, 0, CIRCLE },
    { { FREE ("a"), WAITS ("b", "a", never, 2) }, 2, 1, NEVER },
    { { FREE ("a"), WAITS ("b", "a", half, 1) }, 2, 1, NEVER },
    { { FREE ("a"), WAITS ("b", "a", not_a_number, 1) }, 2, 1, NEVER },
    { { FREE ("a"), WAITS ("b", "a", one, 0) }, 2, 1, "when: no values" },
    { { FREE ("a"), WAITS ("b", "a", one, 1) }, 2, -1, NULL },
};
/* clang-format on */

CASE (test_bad)
{
    const struct search_config config = { .name = "random", .max_trials = 1, .max_length = 1 };

    for (size_t i = 0; i < COUNT (bad); i++) {
        struct search_mistake at;
        const char *why = searcher_check (&config, bad[i].params, bad[i].n, &at);
        if (bad[i].why)
            assert_string_equal (why, bad[i].why);
        else
            assert_null (why);
        assert_int_equal (at.param, bad[i].param);
    }
}

/* searcher_begin() rejects a point whose inactive parameters are set or active ones missing. */
CASE (test_points)
{
    static const struct {
        double x[7];
        bool fits;
    } points[] = {
        { { NAN, 1, NAN, 5, 1e-3, 0, NAN }, true },
        { { NAN, 1, NAN, 4, 1e-3, 0, NAN }, false },
        { { NAN, 1, NAN, NAN, 1e-3, 0, NAN }, false },
        { { NAN, 1, 2, 5, 1e-3, 0, NAN }, false },
        { { 0.1, 0, 3, NAN, 1e-3, 0, NAN }, true },
        { { NAN, 0, 3, NAN, 1e-3, 0, NAN }, false },
        { { 0.1, 0, 2, NAN, 1e-3, 0, NAN }, false },
        { { 0.1, 1, NAN, 5, 1e-3, 0, NAN }, false },
        { { NAN, NAN, NAN, NAN, 1e-3, 0, NAN }, false },
        { { NAN, 1, NAN, 5, 1e-3, 0.3, 1 }, true },
        { { NAN, 1, NAN, 5, 1e-3, 0.1 + 2 * 0.1, 1 }, true },
        { { NAN, 1, NAN, 5, 1e-3, 0.3, NAN }, false },
        { { NAN, 1, NAN, 5, 1e-3, 0.35, NAN }, false },
        { { NAN, 1, NAN, 5, 1e-6, 0, NAN }, false },
        { { NAN, 1, NAN, 5, 0.2, 0, NAN }, false },
    };
    struct sweep w = start ("random", 1);
    struct searcher *s = searcher_create (&w.config, space, COUNT (space));
    struct search_op op = { .fresh = true, .length = 9 };

    assert_non_null (s);
    for (size_t i = 0; i < COUNT (points); i++) {
        op.trial += op.trial == 0 || points[i - 1].fits;
        errno = 0;
        assert_int_equal (searcher_begin (s, &op, points[i].x), points[i].fits ? 0 : -1);
        assert_int_equal (errno, points[i].fits ? 0 : EINVAL);
    }
    searcher_destroy (s);
}

static double mean_best (const char *name)
{
    double sum = 0;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct sweep w = start (name, seed);
        double best = INFINITY;
        w.config.max_length = 1;
        sweep_run (&w);
        for (long t = 1; t <= w.trials; t++)
            best = fmin (best, branches (&w, t, 1) - 1);
        sum += best / 10;
        sweep_free (&w);
    }
    return sum;
}

CASE (test_learns)
{
    double random = mean_best ("random");

    assert_true (mean_best ("tpe") < 0.6 * random);
    assert_true (mean_best ("nsga2") < random);
}

enum { SHARED = 14, ARMS = 16, ARM = 3, WIDE = 1 + SHARED + ARMS * ARM };

/* The arm, 14 shared parameters and three per arm: 63 parameters, of which 18 are active. */
static void make_arms (struct param *p, char (*names)[8], double *arms)
{
    p[0] = (struct param){ .name = "arm", .type = PARAM_CATEGORICAL, .choices = ARMS };
    for (int i = 1; i < WIDE; i++) {
        snprintf (names[i], sizeof (names[i]), "p%d", i);
        p[i] = (struct param){ .name = names[i], .type = PARAM_FLOAT, .max = 1 };
        if (i <= SHARED)
            continue;
        arms[i] = (i - 1 - SHARED) / ARM;
        p[i].when = "arm";
        p[i].when_values = arms + i;
        p[i].when_count = 1;
    }
}

static double bowl (const double *x)
{
    double y = x[0] * 0.01;

    for (int i = 1; i < WIDE; i++)
        y += isnan (x[i]) ? 0 : (x[i] - 0.3) * (x[i] - 0.3);
    return y;
}

static double bowl_best (const char *name, const struct param *p)
{
    double x[WIDE], sum = 0;

    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct searcher *s = search_create (name, seed, 80, p, WIDE);
        double best = INFINITY;
        for (int i = 0; i < 80; i++) {
            long t = search_begin (s, x);
            best = fmin (best, bowl (x));
            assert_int_equal (searcher_observe (s, t, 1, &(double){ bowl (x) }), 0);
        }
        sum += best;
        searcher_destroy (s);
    }
    return sum;
}

/* "auto" keeps its Gaussian process because few of the many parameters are active at once. */
CASE (test_many_arms)
{
    struct param p[WIDE];
    char names[WIDE][8];
    double arms[WIDE];

    make_arms (p, names, arms);
    assert_true (bowl_best ("auto", p) < 0.7 * bowl_best ("tpe", p));
}

RUN_CASES ()
