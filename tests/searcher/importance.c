/* SPDX-License-Identifier: Apache-2.0 */
/* Importance of parameters, compared with functions whose sensitivity indices are known. */
#include "searcher/models/importance.h"
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

enum { TRIALS = 200 };
static const double pi = 3.14159265358979323846;

struct made {
    struct searcher *s;
    double *x[TRIALS], y[TRIALS], room[TRIALS * 8];
    struct importance of;
};

/* Run a random search on f() and fit the importance to its points and values. */
static int make (struct made *m, const struct param *params, size_t n,
                 double (*f) (const double *x))
{
    struct search_config config =
        SEARCH ("random", .seed = 3, .max_trials = TRIALS, .max_length = 1);
    struct search_op op;

    assert_non_null (m->s = searcher_create (&config, params, n));
    for (int i = 0; i < TRIALS; i++) {
        m->x[i] = m->room + (size_t)i * n;
        op = sweep_next (m->s, m->x[i]);
        m->y[i] = f (m->x[i]);
        assert_int_equal (searcher_observe (m->s, op.trial, 1, &m->y[i]), 0);
    }
    return importance_fit (&m->of, m->s, (const double *const *)m->x, m->y, TRIALS);
}

static void made_free (struct made *m)
{
    importance_free (&m->of);
    searcher_destroy (m->s);
}

static double share (const struct made *m, int k)
{
    return m->of.marginals[k].share;
}

/* T. Ishigami and T. Homma, 1990: S1 0.314, S2 0.442, S3 0, S13 0.244. */
static double ishigami (const double *x)
{
    return sin (x[0]) + 7 * pow (sin (x[1]), 2) + 0.1 * pow (x[2], 4) * sin (x[0]);
}

CASE (test_ishigami)
{
    const struct param params[] = { { "a", PARAM_FLOAT, .min = -pi, .max = pi },
                                    { "b", PARAM_FLOAT, .min = -pi, .max = pi },
                                    { "c", PARAM_FLOAT, .min = -pi, .max = pi } };
    struct made m = { 0 };
    double both = 0;

    assert_int_equal (make (&m, params, 3, ishigami), 0);
    assert_true (fabs (share (&m, 0) - 0.314) < 0.08);
    assert_true (fabs (share (&m, 1) - 0.442) < 0.08);
    assert_true (share (&m, 2) < 0.03);
    assert_int_equal (m.of.nsurfaces, 3);
    for (int i = 0; i < 3; i++) {
        const struct surface *u = &m.of.surfaces[i];
        if (u->a + u->b == 2)
            both = u->share;
        else
            assert_true (u->share < 0.05);
    }
    assert_true (fabs (both - 0.244) < 0.08);
    made_free (&m);
}

/* The example of optuna.visualization.plot_param_importances, with the variances 26/9, 1/7 and
 * 1.82 and no interaction.  The shares of the single parameters add up to at most 1.
 */
static double of_optuna (const double *x)
{
    return x[0] * x[0] + pow (x[1], 3) - pow (x[2], 4);
}

CASE (test_optuna)
{
    const struct param params[] = { { "x", PARAM_INT, .min = 0, .max = 2 },
                                    { "y", PARAM_FLOAT, .min = -1, .max = 1 },
                                    { "z", PARAM_FLOAT, .min = 0, .max = 1.5 } };
    static const double wanted[] = { 0.595, 0.029, 0.375 };
    struct made m = { 0 };
    double sum = 0;

    assert_int_equal (make (&m, params, 3, of_optuna), 0);
    for (int k = 0; k < 3; k++) {
        assert_true (fabs (share (&m, k) - wanted[k]) < 0.06);
        sum += share (&m, k);
    }
    assert_true (sum <= 1 + 1e-9);
    made_free (&m);
}

/* The variances are 16/12, 4/12, 1/12 and, for the choices 0, 1, 2, 2/3. */
static double additive (const double *x)
{
    return 4 * x[0] + 2 * x[1] + log10 (x[2]) / 4 + x[3];
}

CASE (test_additive)
{
    const struct param params[] = {
        { "a", PARAM_FLOAT, .min = 0, .max = 1 },
        { "b", PARAM_FLOAT, .min = 0, .max = 1 },
        { "c", PARAM_LOG, .min = -4, .max = 0, .base = 10 },
        { "d", PARAM_CATEGORICAL, .choices = 3 },
    };
    const double wanted[] = { 16, 4, 1, 8 };
    struct made m = { 0 };

    assert_int_equal (make (&m, params, 4, additive), 0);
    for (int k = 0; k < 4; k++)
        assert_true (fabs (share (&m, k) - wanted[k] / 29) < 0.05);
    assert_int_equal (m.of.marginals[3].n, 3);
    for (int i = 1; i < m.of.marginals[0].n; i++)
        assert_true (m.of.marginals[0].mean[i] > m.of.marginals[0].mean[i - 1]);
    made_free (&m);
}

/* The means are in the unit of the metric and cover its whole range. */
static double offset (const double *x)
{
    return 100 + 10 * x[0];
}

CASE (test_range)
{
    const struct param params[] = {
        { "a", PARAM_FLOAT, .min = 0, .max = 1 }, { "b", PARAM_FLOAT, .min = 0, .max = 1 },
        { "c", PARAM_FLOAT, .min = 0, .max = 1 }, { "d", PARAM_FLOAT, .min = 0, .max = 1 },
        { "e", PARAM_FLOAT, .min = 0, .max = 1 }, { "f", PARAM_FLOAT, .min = 0, .max = 1 },
        { "g", PARAM_FLOAT, .min = 0, .max = 1 }, { "h", PARAM_FLOAT, .min = 0, .max = 1 },
    };
    struct made m = { 0 };
    const struct marginal *a;

    assert_int_equal (make (&m, params, 8, offset), 0);
    a = &m.of.marginals[0];
    for (int i = 0; i < a->n; i++)
        assert_true (fabs (a->mean[i] - (100 + 10.0 * i / (a->n - 1))) < 1);
    made_free (&m);
}

/* A few trials that diverged do not hide the effect of the parameters elsewhere. */
static double diverging (const double *x)
{
    return x[0] > 0.97 ? 1e9 : x[1] > 0.9 ? NAN : x[0] + 5 * (x[1] - 0.4) * (x[1] - 0.4);
}

CASE (test_diverging)
{
    const struct param params[] = { { "a", PARAM_FLOAT, .min = 0, .max = 1 },
                                    { "b", PARAM_FLOAT, .min = 0, .max = 1 } };
    struct made m = { 0 };

    assert_int_equal (make (&m, params, 2, diverging), 0);
    assert_true (share (&m, 0) > 0.05 && share (&m, 1) > 0.05);
    for (int i = 0; i < m.of.marginals[1].n; i++)
        assert_true (isfinite (m.of.marginals[1].mean[i]));
    made_free (&m);
}

/* "b" matters, but is active for one choice only. */
static double conditional (const double *x)
{
    return x[0] == 0 ? 10 * x[1] : 5;
}

CASE (test_conditional)
{
    const double first[] = { 0 };
    const struct param params[] = {
        { "a", PARAM_CATEGORICAL, .choices = 2 },
        { "b", PARAM_FLOAT, .min = 0, .max = 1, .when = "a", .when_values = first,
          .when_count = 1 },
    };
    struct made m = { 0 };

    assert_int_equal (make (&m, params, 2, conditional), 0);
    assert_true (share (&m, 1) > 0.7);
    assert_true (share (&m, 0) < 0.1);
    for (int i = 0; i < m.of.surfaces[0].na * m.of.surfaces[0].nb; i++)
        assert_true (isfinite (m.of.surfaces[0].mean[i]) || m.of.surfaces[0].na == 2
                     || m.of.surfaces[0].nb == 2);
    made_free (&m);
}

static double constant (const double *x)
{
    return 1;
}

CASE (test_nothing)
{
    const struct param params[] = { { "a", PARAM_FLOAT, .min = 0, .max = 1 } };
    struct made m = { 0 };

    assert_int_equal (make (&m, params, 1, constant), 1);
    importance_free (&m.of);
    assert_int_equal (importance_fit (&m.of, m.s, (const double *const *)m.x, m.y, 3),
                      IMPORTANCE_NONE);
    importance_free (&m.of);
    assert_int_equal (importance_fit (&m.of, m.s, NULL, NULL, 0), IMPORTANCE_NONE);
    made_free (&m);
}

RUN_CASES ()
