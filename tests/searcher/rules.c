/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that show only over many trials: PASHA's noise estimate, the shares of methods in auto. */
#include "tests/searcher/params.h"
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

static const struct param square[] = { FLOAT ("x", 0, 1, 0), FLOAT ("y", 0, 1, 0) };

/* ---- pasha: the noise estimate ---- */

/* With a divisor near 1, each rung promotes all trials except the worst.  Three extra trials are
 * the worst, one in each rung, so that all others reach the top.
 */
enum { WAITING = 3, PAIRS_MAX = 10 };

/* Two trials, and the lead of one over the other in the three lowest rungs. */
struct pair {
    double ahead[3];
};

/* clang-format off */
#define BOTH(d)       { { (d), -(d), (d) } }
#define OTHER(e, d)   { { 1, -(e), (d) } }
static const struct noise_case {
    int n;
    struct pair pairs[PAIRS_MAX];
    bool rises; /* the top rung rises to the maximum */
} noises[] = {
    /* no difference exceeds the noise */
    { 10, { BOTH (1), BOTH (1), BOTH (1), BOTH (1), BOTH (1),
            BOTH (1), BOTH (1), BOTH (1), BOTH (1), BOTH (1) }, false },
    /* the noise is the 90 % quantile, neither the median nor the maximum */
    { 10, { BOTH (3), BOTH (3), BOTH (3), BOTH (3), BOTH (1),
            BOTH (1), BOTH (1), BOTH (1), BOTH (1), BOTH (1) }, false },
    { 10, { BOTH (1), BOTH (1), BOTH (1), BOTH (1), BOTH (1),
            BOTH (1), BOTH (1), BOTH (1), BOTH (1), BOTH (5) }, true },
    /* a difference must exceed the noise in both rungs; the upper rung defines the noise */
    { 4,  { BOTH (1), BOTH (1), BOTH (1), OTHER (0.5, 5) }, false },
    { 4,  { BOTH (1), BOTH (1), BOTH (1), OTHER (5, 0.5) }, false },
    { 4,  { BOTH (1), BOTH (1), BOTH (1), OTHER (5, 2) }, true },
    { 4,  { OTHER (1, 3), OTHER (1, 3), OTHER (1, 3), BOTH (2) }, false },
    /* a pair that crosses only once is not noise */
    { 2,  { { { 1, -1, -1 } }, { { 1, 1, -1 } } }, true },
};
/* clang-format on */

static const struct noise_case *noise_now;

static int rung_of (int64_t length)
{
    return length < 98000 ? 0 : length < 99000 ? 1 : length < 100000 ? 2 : 3;
}

static double crossing (const struct sweep *w, long trial, int64_t length)
{
    long k = (trial - WAITING - 1) / 2;
    int rung = rung_of (length);
    double ahead;

    if (trial <= WAITING)
        return 1e6 * (WAITING + 1 - trial);
    ahead = noise_now->pairs[k].ahead[rung < 2 ? rung : 2];
    return 1000 - 100 * k + (trial % 2 ? ahead : 0);
}

CASE (pasha_noise)
{
    for (size_t i = 0; i < COUNT (noises); i++) {
        int n = noises[i].n;
        struct sweep w = { .config = SEARCH ("pasha", LADDER (WAITING + 2 * n, 100000, 1.01, 4)),
                           .metric = crossing,
                           .workers = 1 };
        noise_now = noises + i;
        sweep_run (&w);
        assert_int_equal (sweep_count (&w, 100000), noises[i].rises ? 2 * n : 1);
        sweep_free (&w);
    }
}

static struct searcher *create (struct search_config config, const char *name)
{
    struct searcher *s;

    config.name = name;
    config.seed = 3;
    config.max_length = 1;
    config.smaller_is_better = true;
    s = searcher_create (&config, square, 2);
    assert_non_null (s);
    return s;
}

/* Count the trials from 'from' to config->max_trials in which auto proposes the point that
 * 'method' itself would propose after the same results.
 */
static int shared_with (const struct search_config *config, const char *method,
                        void (*metric) (const double *x, double *y), int from)
{
    struct searcher *a = create (*config, "auto");
    struct searcher *b = create (*config, method);
    int same = 0;

    for (int i = 1; i <= config->max_trials; i++) {
        struct search_op op, other;
        double x[2], z[2], y[OBJECTIVES_MAX];
        assert_int_equal (searcher_ask (a, &op, x), SEARCH_RUN);
        if (i >= from) {
            assert_int_equal (searcher_ask (b, &other, z), SEARCH_RUN);
            same += x[0] == z[0] && x[1] == z[1];
        }
        assert_int_equal (searcher_begin (a, &op, x), 0);
        assert_int_equal (searcher_begin (b, &op, x), 0);
        metric (x, y);
        assert_int_equal (searcher_observe (a, i, 1, y), 0);
        assert_int_equal (searcher_observe (b, i, 1, y), 0);
    }
    searcher_destroy (a);
    searcher_destroy (b);
    return same;
}

static void slope (const double *x, double *y)
{
    *y = (x[0] - 0.3) * (x[0] - 0.3) + fabs (x[1] - 0.6);
}

/* After trial 100, one point in four still comes from the earlier methods. */
CASE (auto_evolves)
{
    static const struct search_config config = { .max_trials = 160 };
    int process = shared_with (&config, "gp", slope, 102);
    int estimator = shared_with (&config, "tpe", slope, 102);

    assert_in_range (process + estimator, 7, 24);
}

static void two (const double *x, double *y)
{
    y[0] = x[0] + x[1];
    y[1] = (1 - x[0]) * (1 - x[0]) + fabs (x[1] - 0.2);
}

/* The first points are given, because fitting a Gaussian process to 250 trials is slow. */
CASE (auto_has_a_crowd)
{
    enum { FROM = 249, TO = 262 };
    double points[FROM - 1][2];
    uint64_t r = 5;
    struct search_config config = {
        .max_trials = FROM + 1, .objectives = 2, .points = *points, .npoints = FROM - 1
    };

    for (int i = 0; i < FROM - 1; i++)
        for (int k = 0; k < 2; k++)
            points[i][k] = sweep_random (&r, 1000) / 1000.0;
    assert_int_equal (shared_with (&config, "gp", two, FROM), 2);
    config.max_trials = TO;
    assert_int_equal (shared_with (&config, "nsga2", two, FROM), TO - 250);
}

/* ---- auto: the guard against misleading early values ---- */

static int lost_segment;

static bool lost (const struct sweep *w, long trial, int segment)
{
    return segment >= lost_segment;
}

static double bowl (const struct sweep *w, long trial, int64_t length)
{
    const double *x = w->x[trial];

    return (x[0] - 0.3) * (x[0] - 0.3) + (x[1] - 0.6) * (x[1] - 0.6) + 1.0 / length;
}

/* Count the trials from 'from' on whose points are those of "random". */
static int random_points (const struct sweep *w, long from)
{
    struct search_config config = {
        .name = "random", .seed = w->config.seed, .max_trials = w->trials, .max_length = 1
    };
    struct searcher *s = searcher_create (&config, square, 2);
    int same = 0;

    assert_non_null (s);
    for (long t = 1; t <= w->trials; t++) {
        double x[2];
        sweep_next (s, x);
        same += t >= from && x[0] == w->x[t][0] && x[1] == w->x[t][1];
    }
    searcher_destroy (s);
    return same;
}

CASE (auto_stays_random)
{
    static const struct {
        int lost; /* all trials fail in this segment, counted from 1 */
        int least, most;
    } cases[] = { { 2, 150, 150 }, { 3, 37, 62 }, { 9, 13, 32 } };
    enum { FROM = 51, TO = 200 };

    for (size_t i = 0; i < COUNT (cases); i++) {
        struct sweep w = { .config = SEARCH ("auto", .seed = 7, LADDER (TO, 81, 3, 5)),
                           .params = square,
                           .n = 2,
                           .metric = bowl,
                           .fails = lost,
                           .workers = 1 };
        lost_segment = cases[i].lost;
        sweep_run (&w);
        assert_in_range (random_points (&w, FROM), cases[i].least, cases[i].most);
        sweep_free (&w);
    }
}

/* ---- gp: too many objectives for the hypervolume ---- */

/* Squared distances to the four corners.  Their sum weighted by w is smallest at the mean of the
 * corners weighted by w.
 */
static void corners (const struct sweep *w, long trial, double *y)
{
    const double *x = w->x[trial];

    for (int k = 0; k < 4; k++)
        y[k] = (x[0] - (k & 1)) * (x[0] - (k & 1)) + (x[1] - k / 2) * (x[1] - k / 2);
}

/* If the weights are uniform on the simplex, each coordinate has a beta(2, 2) distribution, whose
 * deviation is 0.224.  Maximizing the expected improvement moves the points a little further out.
 */
CASE (weights)
{
    enum { FROM = 61, TO = 150 };
    struct sweep w = { .config = SEARCH ("gp", .seed = 11, .max_trials = TO, .max_length = 1,
                                         .objectives = 4),
                       .params = square,
                       .n = 2,
                       .metrics = corners,
                       .workers = 1 };
    double sum = 0, square_sum = 0, n = 2 * (TO - FROM + 1);

    sweep_run (&w);
    for (long t = FROM; t <= TO; t++)
        for (int k = 0; k < 2; k++) {
            sum += w.x[t][k];
            square_sum += (w.x[t][k] - 0.5) * (w.x[t][k] - 0.5);
        }
    assert_true (fabs (sum / n - 0.5) < 0.05);
    assert_true (sqrt (square_sum / n) > 0.245);
    assert_true (sqrt (square_sum / n) < 0.31);
    sweep_free (&w);
}

RUN_CASES ()
