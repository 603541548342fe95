/* SPDX-License-Identifier: Apache-2.0 */
/* Regret of a multi-fidelity searcher on a table of learning curves:
 *
 *     python3 tests/bench/curves.py teacher teacher.csv
 *     make tests/bench/fidelity
 *     tests/bench/fidelity teacher.csv 4 20 0 9 auto
 *
 * runs "auto" with 4 workers for the time of 20 full trainings, with seeds 0 to 9.  "asha sobol"
 * instead of "auto" is asha with points of the sampler sobol.
 *
 * Prints for each seed the area under the curve of normalised regret over time (the mean of ten
 * points) and the regret at the end, then their means.  Before the means it prints the parts of the
 * mean area: "points", the regret that the best of the started trials would reach; "left", how much
 * better waiting trials would become than those that run; and "training", how much those that run
 * still have to improve.
 *
 * The clock is simulated as in bench/hpo/bench_mf.py, and the tables have the same columns:
 * configuration, named hyperparameters, sec_per_epoch, one that is ignored, values by epoch.
 */
#include <math.h>

#include "searcher/searcher.h"
#include "tests/bench/bench.h"

enum { PARAMS_MAX = 12, ROWS_MAX = 4000, VALUES_MAX = 64, EPOCHS_MAX = 512 };
enum { WORKERS_MAX = 64, TRIALS = 100000, POINTS = 10 };

static const double fractions[POINTS] = { .05, .1, .15, .2, .3, .4, .5, .6, .8, 1 };

struct table {
    int params, rows, epochs;
    char *name[PARAMS_MAX];
    double point[ROWS_MAX][PARAMS_MAX];
    double seconds[ROWS_MAX];
    double curve[ROWS_MAX][EPOCHS_MAX];
    double lowest[ROWS_MAX]; /* lowest value of each curve */
    double values[PARAMS_MAX][VALUES_MAX];
    int nvalues[PARAMS_MAX];
    int *row_at; /* row of each grid point; -1: none */
    double best, median, full;
};

/* The parts of the area. */
struct area_parts {
    double points, left, training;
};

struct run {
    const struct table *t;
    struct searcher *s;
    int row[2 * TRIALS + 1], epoch[2 * TRIALS + 1];
    long begun;
    struct area_parts parts;
    struct {
        bool busy;
        double due;
        long trial;
        int64_t length;
    } worker[WORKERS_MAX];
    int workers;
    double now, best, reached[POINTS];
    int point;
    unsigned long long random;
};

static void fail (const char *what)
{
    fprintf (stderr, "fidelity: %s\n", what);
    exit (1);
}

/* ---- the table ---- */

/* Read the names between "id" and "sec_per_epoch". */
static void read_names (struct table *t, char *line)
{
    char *c = strtok (line, ",");

    while ((c = strtok (NULL, ",")) && strcmp (c, "sec_per_epoch"))
        if (t->params == PARAMS_MAX || !(t->name[t->params++] = strdup (c)))
            fail ("too many hyperparameters");
}

static void read_row (struct table *t, char *line)
{
    double field[EPOCHS_MAX + PARAMS_MAX + 3];
    int n = 0, before = t->params + 3;

    for (char *c = strtok (line, ","); c && n < EPOCHS_MAX + before; c = strtok (NULL, ","))
        field[n++] = strtod (c, NULL);
    if (n <= before || (t->epochs && n != t->epochs + before) || t->rows == ROWS_MAX)
        return;
    t->epochs = n - before;
    memcpy (t->point[t->rows], field + 1, (size_t)t->params * sizeof (double));
    t->seconds[t->rows] = field[t->params + 1];
    memcpy (t->curve[t->rows], field + before, (size_t)t->epochs * sizeof (double));
    t->rows++;
}

static int place_of (const struct table *t, int param, double value)
{
    int i = 0;

    while (i < t->nvalues[param] && t->values[param][i] != value)
        i++;
    return i;
}

static void index_rows (struct table *t)
{
    size_t size = 1;

    for (int k = 0; k < t->params; k++) {
        for (int i = 0; i < t->rows; i++) {
            int at = place_of (t, k, t->point[i][k]);
            if (at == VALUES_MAX)
                fail ("a parameter has too many values");
            if (at == t->nvalues[k])
                t->values[k][t->nvalues[k]++] = t->point[i][k];
        }
        qsort (t->values[k], (size_t)t->nvalues[k], sizeof (double), ascending);
        size *= (size_t)t->nvalues[k];
    }
    if (!(t->row_at = malloc (size * sizeof (int))))
        fail ("out of memory");
    memset (t->row_at, -1, size * sizeof (int));
    for (int i = 0; i < t->rows; i++) {
        size_t at = 0;
        for (int k = 0; k < t->params; k++)
            at = at * (size_t)t->nvalues[k] + (size_t)place_of (t, k, t->point[i][k]);
        t->row_at[at] = i;
    }
}

static void summarise (struct table *t)
{
    static double best[ROWS_MAX];
    double seconds = 0;

    for (int i = 0; i < t->rows; i++) {
        t->lowest[i] = INFINITY;
        for (int e = 0; e < t->epochs; e++)
            t->lowest[i] = fmin (t->lowest[i], t->curve[i][e]);
        best[i] = t->lowest[i];
        seconds += t->seconds[i];
    }
    qsort (best, (size_t)t->rows, sizeof (double), ascending);
    t->best = best[0];
    t->median = (best[t->rows / 2] + best[(t->rows - 1) / 2]) / 2;
    t->full = seconds / t->rows * t->epochs;
}

static struct table *read_table (const char *path)
{
    static char line[1 << 16];
    struct table *t = calloc (1, sizeof (*t));
    FILE *f = fopen (path, "r");

    if (!t || !f || !fgets (line, sizeof (line), f))
        fail ("cannot read the table");
    read_names (t, line);
    while (fgets (line, sizeof (line), f))
        read_row (t, line);
    fclose (f);
    if (t->rows < 2)
        fail ("the table is empty");
    index_rows (t);
    summarise (t);
    return t;
}

/* ---- a run ---- */

static double epoch_time (struct run *r, long trial)
{
    r->random = r->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return r->t->seconds[r->row[trial]] * (0.95 + 0.1 * (double)(r->random >> 11) * 0x1p-53);
}

static void place (struct run *r, long trial, const double *x)
{
    size_t at = 0;

    for (int k = 0; k < r->t->params; k++)
        at = at * (size_t)r->t->nvalues[k] + (size_t)x[k];
    if ((r->row[trial] = r->t->row_at[at]) < 0)
        fail ("the table is no full grid");
    r->epoch[trial] = 0;
    r->begun = trial;
}

static bool begin (struct run *r, int i)
{
    struct search_op op;
    double x[PARAMS_MAX];

    if (searcher_ask (r->s, &op, x) != SEARCH_RUN)
        return false;
    if (searcher_begin (r->s, &op, x) < 0)
        fail ("a trial cannot begin");
    if (op.fresh)
        place (r, op.trial, x);
    r->worker[i].busy = true;
    r->worker[i].trial = op.trial;
    r->worker[i].length = op.length;
    r->worker[i].due = r->now + epoch_time (r, op.trial);
    return true;
}

static void end_epoch (struct run *r, int i)
{
    long trial = r->worker[i].trial;
    double value = r->t->curve[r->row[trial]][r->epoch[trial]++];
    int64_t length = r->epoch[trial];

    r->best = fmin (r->best, value);
    searcher_report (r->s, trial, length, value);
    if (length < r->worker[i].length && !searcher_stops (r->s, trial)) {
        r->worker[i].due = r->now + epoch_time (r, trial);
        return;
    }
    if (searcher_observe (r->s, trial, length, &value) < 0)
        fail ("a result is refused");
    r->worker[i].busy = false;
}

static int next_worker (const struct run *r)
{
    int first = -1;

    for (int i = 0; i < r->workers; i++)
        if (r->worker[i].busy && (first < 0 || r->worker[i].due < r->worker[first].due))
            first = i;
    return first;
}

static void add_parts (struct run *r, double now)
{
    double scale = (r->t->median - r->t->best) * POINTS, all = now, flying = now;

    for (long i = 1; i <= r->begun; i++)
        all = fmin (all, r->t->lowest[r->row[i]]);
    for (int i = 0; i < r->workers; i++)
        if (r->worker[i].busy)
            flying = fmin (flying, r->t->lowest[r->row[r->worker[i].trial]]);
    r->parts.points += (all - r->t->best) / scale;
    r->parts.left += (flying - all) / scale;
    r->parts.training += (now - flying) / scale;
}

static void note (struct run *r, double until, double end)
{
    for (; r->point < POINTS && until > fractions[r->point] * end; r->point++) {
        double now = isfinite (r->best) ? r->best : 2 * r->t->median;
        r->reached[r->point] = now;
        add_parts (r, now);
    }
}

static void simulate (struct run *r, double end)
{
    for (;;) {
        int i;
        for (i = 0; i < r->workers; i++)
            if (!r->worker[i].busy && !begin (r, i))
                break;
        if ((i = next_worker (r)) < 0 || r->worker[i].due > end)
            break;
        r->now = r->worker[i].due;
        note (r, r->now, end);
        end_epoch (r, i);
    }
    note (r, INFINITY, end);
}

static struct searcher *create (const struct table *t, char **name, uint64_t seed)
{
    const struct search_config config = { .name = name[0],
                                          .sampler = name[1],
                                          .seed = seed,
                                          .max_trials = TRIALS,
                                          .max_length = t->epochs,
                                          .smaller_is_better = true,
                                          .divisor = 3,
                                          .max_rungs = 32 };
    struct param params[PARAMS_MAX];
    struct searcher *s;

    for (int k = 0; k < t->params; k++)
        params[k] =
            (struct param){ .name = t->name[k], .type = PARAM_INT, .max = t->nvalues[k] - 1 };
    if (!(s = searcher_create (&config, params, (size_t)t->params)))
        fail ("cannot create the searcher");
    return s;
}

static void measure (const struct table *t, char **argv, uint64_t seed, double *area, double *last,
                     struct area_parts *sum)
{
    struct run *r = calloc (1, sizeof (*r));

    if (!r)
        fail ("out of memory");
    r->t = t;
    r->best = INFINITY;
    r->random = seed * 77777 + 5;
    r->workers = atoi (argv[2]);
    r->s = create (t, argv + 6, seed);
    simulate (r, strtod (argv[3], NULL) * t->full / r->workers);
    *area = 0;
    for (int i = 0; i < POINTS; i++)
        *area += (r->reached[i] - t->best) / (t->median - t->best) / POINTS;
    *last = (r->reached[POINTS - 1] - t->best) / (t->median - t->best);
    printf ("seed %lu: area %.4f end %.4f\n", (unsigned long)seed, *area, *last);
    sum->points += r->parts.points;
    sum->left += r->parts.left;
    sum->training += r->parts.training;
    searcher_destroy (r->s);
    free (r);
}

int main (int argc, char **argv)
{
    double area = 0, last = 0, n = 0;
    struct area_parts p = { 0 };
    struct table *t;

    if (argc < 7 || argc > 8 || atoi (argv[2]) < 1 || atoi (argv[2]) > WORKERS_MAX)
        fail ("usage: fidelity TABLE WORKERS BUDGET FIRST LAST SEARCHER "
              "[SAMPLER]");
    t = read_table (argv[1]);
    for (long seed = atol (argv[4]); seed <= atol (argv[5]); seed++, n++) {
        double a, b;
        measure (t, argv, (uint64_t)seed, &a, &b, &p);
        area += a;
        last += b;
    }
    printf ("parts: points %.4f left %.4f training %.4f\n", p.points / n, p.left / n,
            p.training / n);
    printf ("mean: area %.4f end %.4f\n", area / n, last / n);
    for (int k = 0; k < t->params; k++)
        free (t->name[k]);
    free (t->row_at);
    free (t);
    return 0;
}
