/* SPDX-License-Identifier: Apache-2.0 */
/* Grid search: one trial for each point of a grid. */
#include <stdlib.h>

#include "searcher/samplers/samplers.h"
#include "searcher/state/state.h"

/* A parameter that is active only for some values of another lies below that
 * one: the space is a forest, and the points below a value are those of all
 * parameters that are active for it.
 */
struct grid_forest {
    const struct dim *dims;
    const void *base; /* of the parents' values */
    int64_t n;
};

static int64_t limited (int64_t a, int64_t b)
{
    return b > 0 && a > TRIALS_MAX / b ? TRIALS_MAX + 1 : a * b;
}

static int64_t count_tree (const struct grid_forest *f, int64_t root);

/* Number of points of all parameters that are active for 'value' of 'parent'
 * (-1: always active).
 */
static int64_t count_subtree (const struct grid_forest *f, int64_t parent, double value)
{
    int64_t points = 1;

    for (int64_t i = 0; i < f->n; i++)
        if (f->dims[i].parent == parent
            && (parent < 0 || space_waits (f->dims + i, f->base, value)))
            points = limited (points, count_tree (f, i));
    return points;
}

static bool has_children (const struct grid_forest *f, int64_t root)
{
    for (int64_t i = 0; i < f->n; i++)
        if (f->dims[i].parent == root)
            return true;
    return false;
}

static int64_t count_tree (const struct grid_forest *f, int64_t root)
{
    const struct dim *d = f->dims + root;
    int64_t points = 0;

    if (!has_children (f, root))
        return d->points > TRIALS_MAX ? TRIALS_MAX + 1 : d->points;
    for (int64_t i = 0; i < d->points && points <= TRIALS_MAX; i++)
        points += count_subtree (f, root, space_grid (d, i));
    return points;
}

static void place_tree (const struct grid_forest *f, int64_t root, int64_t rank, double *x);

/* Of the parameters that are active for the value, the one with the greatest
 * name below 'order'; -1 if there is none.
 */
static int64_t previous_dimension (const struct grid_forest *f, int64_t parent, double value,
                                   int64_t order)
{
    int64_t found = -1;

    for (int64_t i = 0; i < f->n; i++)
        if (f->dims[i].parent == parent && f->dims[i].order < order
            && (parent < 0 || space_waits (f->dims + i, f->base, value))
            && (found < 0 || f->dims[i].order > f->dims[found].order))
            found = i;
    return found;
}

/* The last name varies fastest. */
static void place_below (const struct grid_forest *f, int64_t parent, double value, int64_t rank,
                         double *x)
{
    int64_t i = previous_dimension (f, parent, value, f->n);

    for (; i >= 0; i = previous_dimension (f, parent, value, f->dims[i].order)) {
        int64_t points = count_tree (f, i);
        place_tree (f, i, rank % points, x);
        rank /= points;
    }
}

static void place_tree (const struct grid_forest *f, int64_t root, int64_t rank, double *x)
{
    const struct dim *d = f->dims + root;
    int64_t i = rank;

    if (has_children (f, root))
        for (i = 0; i < d->points - 1; i++) {
            int64_t points = count_subtree (f, root, space_grid (d, i));
            if (rank < points)
                break;
            rank -= points;
        }
    x[root] = space_grid (d, i);
    if (has_children (f, root))
        place_below (f, root, x[root], rank, x);
}

static void point_of_rank (const struct grid_forest *f, int64_t rank, double *x)
{
    for (int64_t i = 0; i < f->n; i++)
        x[i] = NAN;
    place_below (f, -1, 0, rank, x);
}

/* Write the ranks of the first 'max' allowed points.  Returns how many there
 * are in all, -1 if out of memory.
 */
static int64_t list_allowed (const struct grid_forest *f, const struct constraint *c, int32_t *list,
                             int64_t max)
{
    int64_t points = count_subtree (f, -1, 0), n = 0;
    double *x = malloc ((f->n + 1) * sizeof (*x));

    if (!x)
        return -1;
    for (int64_t rank = 0; rank < points; rank++) {
        point_of_rank (f, rank, x);
        if (!constraint_holds (c, x))
            continue;
        if (n < max)
            list[n] = rank;
        n++;
    }
    free (x);
    return n;
}

static int64_t count_allowed (const struct search_request *request, const struct grid_forest *f)
{
    int64_t points = count_subtree (f, -1, 0);
    struct constraint c;
    int column;

    if (points > TRIALS_MAX || !request->config->constraint
        || plan_constraint (request, &c, &column))
        return points;
    return list_allowed (f, &c, NULL, 0);
}

/* Number of points of the whole grid, -1 if out of memory. */
static int64_t count_request (const struct search_request *request)
{
    size_t n = request->n;
    int64_t values = space_when_values (request->params, n), points = -1;
    struct dim *dims = calloc (n + 1, sizeof (*dims));
    double *when = malloc ((values + 1) * sizeof (*when));

    if (dims && when) {
        space_fill (dims, when, 0, request->params, n);
        points = count_allowed (request, &(struct grid_forest){ dims, when, n });
    }
    free (dims);
    free (when);
    return points;
}

static const char *grid_check (const struct search_request *request, int *param)
{
    int64_t points;

    for (size_t i = 0; i < request->n; i++)
        if (space_points (request->params + i) == 0) {
            *param = i;
            return "count is missing: a grid needs it for float and log";
        }
    points = count_request (request);
    if (points < 0)
        return "out of memory";
    if (points == 0)
        return "the constraint forbids all points of the grid";
    if (points <= TRIALS_MAX)
        return NULL;
    points = 1;
    for (*param = -1; points <= TRIALS_MAX;)
        points = limited (points, space_points (request->params + ++*param));
    return "the grid has more than 10000000 points";
}

static void grid_plan (const struct search_request *request, struct search_plan *plan)
{
    int64_t points = count_request (request);

    plan_flat (plan, request->config, points > 0 ? points : 1);
}

/* With a constraint, the state holds the ranks of the allowed points. */
static int64_t grid_room (const struct search_request *request, const struct search_plan *plan)
{
    return request->config->constraint ? plan->bracket[0].trials * (int64_t)sizeof (int32_t) : 0;
}

static void grid_start (struct searcher *s, const struct search_request *request)
{
    const struct grid_forest f = { searcher_dims (s), s, s->n };

    (void)request;
    if (s->at_constraint)
        (void)list_allowed (&f, searcher_at (s, s->at_constraint), searcher_at (s, s->at_schedule),
                            s->trials);
}

static void grid_point (const struct searcher *s, long trial, double *x)
{
    const struct grid_forest f = { searcher_dims (s), s, s->n };
    const int32_t *allowed = searcher_at (s, s->at_schedule);

    point_of_rank (&f, s->at_constraint ? allowed[trial - 1] : trial - 1, x);
}

const struct search_scheduler schedule_grid = {
    .check = grid_check,
    .plan = grid_plan,
    .fixed = true,
    .room = grid_room,
    .start = grid_start,
};

const struct search_sampler sample_grid = {
    .point = grid_point,
};
