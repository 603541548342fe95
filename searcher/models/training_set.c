/* SPDX-License-Identifier: Apache-2.0 */
/* The training set of a model: trials and their values. */
#include "searcher/models/models.h"

#include <stdlib.h>

/* A rung with this many values is preferred to any lower one. */
enum { ENOUGH = 10 };

static int64_t count_at (const struct searcher *s, int64_t rung)
{
    int64_t n = 0;

    for (long i = searcher_first (s); i <= s->created; i++)
        n += !isnan (searcher_values (s, i)[rung]);
    return n;
}

/* The rung with the most values. */
static int64_t widest_rung (const struct searcher *s)
{
    int64_t best = s->rungs - 1, most = count_at (s, best);

    for (int64_t rung = best - 1; rung >= 0; rung--) {
        int64_t n = count_at (s, rung);
        if (n > most) {
            most = n;
            best = rung;
        }
    }
    return best;
}

static int64_t learn_from (const struct searcher *s)
{
    int64_t enough = s->n + 3 > ENOUGH ? s->n + 3 : ENOUGH;

    for (int64_t rung = s->rungs - 1; rung >= 0; rung--)
        if (count_at (s, rung) >= enough)
            return rung;
    return widest_rung (s);
}

int64_t training_set_count (const struct searcher *s)
{
    return count_at (s, widest_rung (s));
}

static bool came_below (const double *values, int64_t rung)
{
    while (rung-- > 0)
        if (!isnan (values[rung]))
            return true;
    return false;
}

static void add_trained (struct training_set *v, const struct searcher *s, long i, int64_t rung,
                         bool wide)
{
    const double *values = searcher_values (s, i);

    if (!isnan (values[rung])) {
        for (int64_t k = 0; k < v->m; k++)
            v->value[v->n * v->m + k] = values[s->objectives > 1 ? k : rung];
        v->trial[v->n++] = i;
    } else if (i > 0 && searcher_trial (s, i)->state == TRIAL_RUNNING)
        v->pending[v->npending++] = i;
    else if (wide && came_below (values, rung)) {
        v->value[v->n * v->m] = INFINITY;
        v->trial[v->n++] = i;
    }
}

static int fill_from_rungs (struct training_set *v, const struct searcher *s, bool wide)
{
    int64_t rung = learn_from (s), most = s->created + s->known + 1;

    *v = (struct training_set){ .m = s->objectives };
    v->trial = malloc (2 * most * sizeof (*v->trial));
    v->value = malloc (most * v->m * sizeof (*v->value));
    if (!v->trial || !v->value)
        return -1;
    v->pending = v->trial + most;
    for (long i = searcher_first (s); i <= s->created; i++)
        add_trained (v, s, i, rung, wide);
    return 0;
}

int training_set_open (struct training_set *v, const struct searcher *s)
{
    return fill_from_rungs (v, s, false);
}

int training_set_open_wide (struct training_set *v, const struct searcher *s)
{
    return fill_from_rungs (v, s, true);
}

void training_set_close (struct training_set *v)
{
    free (v->trial);
    free (v->value);
    free (v->noise);
}

int64_t training_set_good (const struct training_set *v)
{
    int64_t good = 0;

    for (int64_t i = 0; i < v->n; i++)
        good += isfinite (v->value[i * v->m]);
    return good;
}
