/* SPDX-License-Identifier: Apache-2.0 */
/* Collect what a report shows, and the JSON from which its script draws. */
#include "launcher/report/page_data.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/monitor/monitor.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/columns.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* ---- importance of parameters ---- */

/* Return the length with the most results if most trials have one there, or 0. */
static int64_t fair_length (const struct report *r, size_t k)
{
    long best = 0, with = 0;
    int64_t length = 0;

    for (size_t i = 0; i < r->nlengths; i++) {
        long n = 0;
        for (size_t m = 0; m < r->nresults; m++)
            n += r->results[m].length == r->lengths[i] && r->trials[r->results[m].trial].sweep == k;
        if (n > best) {
            best = n;
            length = r->lengths[i];
        }
    }
    for (long i = 0; i < r->n; i++)
        with += r->trials[i].sweep == k && r->trials[i].of->nmilestones > 0;
    return best * 2 > with ? length : 0;
}

/* If there are too many lengths, as in searches that stop trials at any step, do not
 * choose one.
 */
static void find_length (struct explanation *x, const struct report *r)
{
    x->length = r->nlengths > 1 && r->nlengths <= 64 ? fair_length (r, x->sweep) : 0;
}

static void fill_explained_values (const struct explanation *x, const struct report *r, double *y)
{
    const struct report_sweep *of = &r->sweeps[x->sweep];

    for (long i = 0; i < of->s->ntrials; i++)
        y[i] = x->length ? NAN : report_value (r, of->first + i, 0);
    for (size_t m = 0; x->length && m < r->nresults; m++)
        if (r->results[m].length == x->length && r->trials[r->results[m].trial].sweep == x->sweep)
            y[r->results[m].trial - of->first] = r->results[m].value;
}

/* Return the experiment with the most trials that have a value. */
static size_t largest_sweep (const struct report *r)
{
    size_t found = 0;
    long most = -1;

    for (size_t k = 0; k < r->nsweeps; k++) {
        long n = 0;
        for (long i = 0; i < r->sweeps[k].s->ntrials; i++)
            n += isfinite (report_value (r, r->sweeps[k].first + i, 0));
        if (n > most) {
            most = n;
            found = k;
        }
    }
    return found;
}

static void find_explained_params (struct explanation *x, const struct experiment *e,
                                   const struct report_params *p)
{
    x->param = xmalloc ((e->space->nparams + 1) * sizeof (*x->param));
    for (size_t d = 0; d < e->space->nparams; d++) {
        x->param[d] = -1;
        for (size_t i = 0; i < p->n; i++)
            if (!strcmp (p->list[i].name, e->space->params[d].name))
                x->param[d] = (long)i;
    }
}

/* Compare trials at the same length if possible, because a trial may be better only
 * because it was trained longer.
 */
static void explain_values (struct explanation *x, const struct report *r,
                            const struct report_params *p)
{
    struct sweep *s;
    const double **points;
    double *y;
    enum importance_result result = IMPORTANCE_NONE;

    *x = (struct explanation){ .sweep = largest_sweep (r) };
    s = r->sweeps[x->sweep].s;
    find_length (x, r);
    points = xmalloc (((size_t)s->ntrials + 1) * sizeof (*points));
    y = xmalloc (((size_t)s->ntrials + 1) * sizeof (*y));
    find_explained_params (x, s->exp, p);
    for (long i = 0; i < s->ntrials; i++)
        points[i] = s->trials[i].x;
    fill_explained_values (x, r, y);
    if (s->searcher)
        result = importance_fit (&x->of, s->searcher, points, y, s->ntrials);
    if (result == IMPORTANCE_FAILED)
        out_of_memory ();
    x->known = result == IMPORTANCE_FITTED;
    free (points);
    free (y);
}

static void explanation_free (struct explanation *x)
{
    importance_free (&x->of);
    free (x->param);
    *x = (struct explanation){ 0 };
}

static const struct marginal *marginal_of (const struct explanation *x, size_t param)
{
    for (long d = 0; x->known && d < x->of.n; d++)
        if (x->param[d] == (long)param)
            return &x->of.marginals[d];
    return NULL;
}

double explained_share (const struct explanation *x, size_t param)
{
    const struct marginal *m = marginal_of (x, param);

    return m ? m->share : NAN;
}

static json_t *list_json (const double *v, int n)
{
    json_t *list = json_array ();

    for (int i = 0; i < n; i++)
        json_array_append_new (list, rounded_to_json (v[i], 5));
    return list;
}

/* Choices are numbered as in the first experiment, so marginals of a category from
 * another one cannot be drawn.
 */
static bool can_draw (const struct explanation *x, const struct report_param *p)
{
    return !p->category || x->sweep == 0;
}

/* Add the share and the mean by value of a parameter to its JSON object. */
static void explained_put (const struct explanation *x, const struct report_params *p, size_t param,
                           json_t *o)
{
    const struct marginal *m = marginal_of (x, param);

    if (!m)
        return;
    json_object_set_new (o, "share", rounded_to_json (m->share, 3));
    if (!can_draw (x, &p->list[param]))
        return;
    json_object_set_new (o, "at", list_json (m->x, m->n));
    json_object_set_new (o, "mean", list_json (m->mean, m->n));
}

/* Return the surfaces as a list. */
static json_t *explained_surfaces (const struct explanation *x, const struct report_params *p)
{
    json_t *list = json_array ();

    for (int i = 0; x->known && i < x->of.nsurfaces; i++) {
        const struct surface *u = &x->of.surfaces[i];
        long a = x->param[u->a], b = x->param[u->b];
        if (a < 0 || b < 0 || !can_draw (x, &p->list[a]) || !can_draw (x, &p->list[b]))
            continue;
        json_array_append_new (
            list, json_pack ("{s:i, s:i, s:o, s:o, s:o, s:o}", "a", (int)a, "b", (int)b, "share",
                             rounded_to_json (u->share, 3), "x", list_json (u->xa, u->na), "y",
                             list_json (u->xb, u->nb), "v", list_json (u->mean, u->na * u->nb)));
    }
    return list;
}

/* ---- GPU use ---- */

/* ---- GPU use over time ---- */

/* State of one GPU while its file is read. */
struct gpu_track {
    int gpu;
    double last, since; /* last value, and the time up to which it was counted */
};

struct series_reading {
    double begin, end; /* of the attempt, in s since the epoch */
    struct gpu_track tracks[GPUS_MAX];
    int n;
    long long step;
    double time, before; /* of this sample and the previous one */
    double sum[GPU_BINS], weight[GPU_BINS];
};

static void put_busy (struct series_reading *g, double from, double to, double busy)
{
    double width = (g->end - g->begin) / GPU_BINS;

    if (!(width > 0))
        return;
    for (int i = 0; i < GPU_BINS; i++) {
        double low = fmax (from, g->begin + i * width);
        double high = fmin (to, g->begin + (i + 1) * width);
        if (high > low) {
            g->sum[i] += busy * (high - low);
            g->weight[i] += high - low;
        }
    }
}

static struct gpu_track *find_gpu_track (struct series_reading *g, int gpu)
{
    for (int i = 0; i < g->n; i++)
        if (g->tracks[i].gpu == gpu)
            return &g->tracks[i];
    if (g->n == GPUS_MAX)
        return NULL;
    g->tracks[g->n] = (struct gpu_track){ .gpu = gpu, .last = NAN, .since = g->time };
    return &g->tracks[g->n++];
}

/* Add a sample.  Its value covers the time since the previous sample.  The monitor
 * writes only values that changed, so the last one covers the time up to then.
 */
static int take_gpu_row (const struct slurmdl_row *row, void *arg)
{
    struct series_reading *g = arg;
    struct gpu_track *t;
    int gpu, end = 0;

    if (row->step != g->step) {
        g->before = g->time;
        g->step = row->step;
        g->time = row->time;
        if (isnan (g->before))
            g->before = g->time;
    }
    if (sscanf (row->name, "gpu/%d/busy%n", &gpu, &end) != 1 || !end || row->name[end]
        || !(t = find_gpu_track (g, gpu)))
        return 0;
    if (!isnan (t->last))
        put_busy (g, t->since, g->before, t->last);
    put_busy (g, fmax (g->before, t->since), g->time, row->value);
    t->last = row->value;
    t->since = g->time;
    return 0;
}

static void read_gpu_file (struct series_reading *g, const char *path)
{
    g->n = 0;
    g->step = -1;
    g->time = g->before = NAN;
    slurmdl_metrics_read (path, take_gpu_row, g, NULL);
    for (int i = 0; i < g->n; i++)
        if (!isnan (g->tracks[i].last))
            put_busy (g, g->tracks[i].since, g->time, g->tracks[i].last);
}

static void read_series (struct gpu_attempt *a, const char *dir, double begin, double end)
{
    struct series_reading g = { .begin = begin, .end = end };
    char path[PATH_MAX];
    DIR *d = opendir (dir);
    struct dirent *e;

    while (d && (e = readdir (d))) {
        size_t n = strlen (e->d_name);
        if (n < 4 || strcmp (e->d_name + n - 3, ".h5") || e->d_name[0] == '.')
            continue;
        snprintf (path, sizeof (path), "%s/%s", dir, e->d_name);
        read_gpu_file (&g, path);
    }
    if (d)
        closedir (d);
    for (int i = 0; i < GPU_BINS; i++)
        a->bins[i] = g.weight[i] > 0 ? g.sum[i] / g.weight[i] : NAN;
}

/* ---- GPU use of one step ---- */

static void add_advice (struct gpu_use *u, const struct usage *usage)
{
    const struct pattern_row *rows[8];
    int n = advise (usage, rows, 8);

    for (int i = 0; i < n; i++) {
        size_t k = 0;
        while (k < u->nadvice && strcmp (u->advice[k].text, rows[i]->text))
            k++;
        if (k == ADVICE_MAX)
            continue;
        if (k == u->nadvice) {
            snprintf (u->advice[k].text, sizeof (u->advice[k].text), "%s", rows[i]->text);
            u->nadvice++;
        }
        u->advice[k].n++;
    }
}

static void measure_attempt (struct gpu_attempt *a, const struct usage *usage)
{
    double busy = 0;
    int known = 0;

    a->memory = NAN;
    for (size_t k = 0; k < usage->nnodes; k++)
        for (int i = 0; i < usage->nodes[k].ngpus; i++) {
            const struct usage_gpu *g = &usage->nodes[k].gpus[i];
            a->gpus++;
            if (!isnan (g->busy)) {
                busy += g->busy;
                known++;
            }
            if (g->memory_size > 0)
                a->memory = fmax (a->memory, g->memory / g->memory_size);
        }
    a->busy = known ? busy / known : NAN;
}

static void read_step_usage (struct gpu_use *u, const struct report *r, size_t i, const char *dir)
{
    const struct report_attempt *of = &r->attempts[i];
    double created = r->sweeps[r->trials[of->trial].sweep].s->created;
    struct gpu_attempt a = { .attempt = i };
    struct usage usage;

    if (usage_read (&usage, dir, NULL) < 0)
        return;
    measure_attempt (&a, &usage);
    add_advice (u, &usage);
    usage_free (&usage);
    if (a.gpus)
        read_series (&a, dir, created + of->begin, created + of->end);
    XGROW (u->list, u->n);
    u->list[u->n++] = a;
}

/* ---- GPU use of all attempts ---- */

static void read_attempt_usage (struct gpu_use *u, const struct report *r, size_t i)
{
    const struct report_attempt *of = &r->attempts[i];
    const struct report_trial *t = &r->trials[of->trial];
    char dir[PATH_MAX], step[PATH_MAX + 300];
    struct dirent *e;
    DIR *d;

    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", r->sweeps[t->sweep].s->dir, t->number,
              of->number);
    d = opendir (dir);
    while (d && (e = readdir (d))) {
        if (strncmp (e->d_name, MONITOR_PREFIX, strlen (MONITOR_PREFIX)))
            continue;
        snprintf (step, sizeof (step), "%s/%s", dir, e->d_name);
        read_step_usage (u, r, i, step);
    }
    if (d)
        closedir (d);
}

static int by_advice_number (const void *a, const void *b)
{
    const struct gpu_advice *x = a, *y = b;

    return (x->n < y->n) - (x->n > y->n);
}

/* Look for monitored steps in the folders of all attempts. */
static void gpu_use_read (struct gpu_use *u, const struct report *r)
{
    for (size_t i = 0; i < r->nattempts; i++)
        read_attempt_usage (u, r, i);
    qsort (u->advice, u->nadvice, sizeof (*u->advice), by_advice_number);
}

static void gpu_use_free (struct gpu_use *u)
{
    free (u->list);
    *u = (struct gpu_use){ 0 };
}

/* ---- JSON ---- */

/* Write one letter per bin: A is 0 %, 8 is 100 % and _ is unknown. */
static json_t *bins_json (const struct gpu_attempt *a)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678";
    char text[GPU_BINS + 1] = "";

    for (int i = 0; i < GPU_BINS; i++) {
        double part = fmin (fmax (a->bins[i], 0), 100) / 100;
        text[i] = isnan (a->bins[i]) ? '_' : letters[lround (part * 60)];
    }
    return json_string (text);
}

/* Return the data for report.js, one array for each field.  The caller owns the object.
 */
static json_t *gpu_use_json (const struct gpu_use *u)
{
    json_t *attempt = json_array (), *gpus = json_array (), *busy = json_array ();
    json_t *memory = json_array (), *bins = json_array (), *advice = json_array ();

    for (size_t i = 0; i < u->n; i++) {
        json_array_append_new (attempt, json_integer ((json_int_t)u->list[i].attempt));
        json_array_append_new (gpus, json_integer (u->list[i].gpus));
        json_array_append_new (busy, rounded_to_json (u->list[i].busy, 3));
        json_array_append_new (memory, rounded_to_json (u->list[i].memory, 3));
        json_array_append_new (bins, bins_json (&u->list[i]));
    }
    for (size_t i = 0; i < u->nadvice; i++)
        json_array_append_new (advice,
                               json_pack ("[i, s]", (int)u->advice[i].n, u->advice[i].text));
    return json_pack ("{s:o, s:o, s:o, s:o, s:o, s:o}", "attempt", attempt, "gpus", gpus, "busy",
                      busy, "memory", memory, "bins", bins, "advice", advice);
}

/* ---- all data ---- */

enum { VERSION = 1, TICKS = 4000 };

/* ---- reading ---- */

int data_read (struct report_data *d, struct sweep *const *list, size_t n, struct rows *old,
               struct slurmdl_error *err)
{
    const struct report *r = &d->report;

    *d = (struct report_data){ 0 };
    if (report_fill (&d->report, list, n, err) < 0)
        return -1;
    report_fill_files (&d->report);
    params_fill (&d->params, r);
    curves_read (&d->curves, r, old);
    explain_values (&d->explanation, r, &d->params);
    gpu_use_read (&d->gpus, r);
    d->nordered = report_order (r, &d->order);
    return 0;
}

void data_free (struct report_data *d)
{
    free (d->order);
    gpu_use_free (&d->gpus);
    explanation_free (&d->explanation);
    curves_free (&d->curves);
    params_free (&d->params);
    report_free (&d->report);
}

/* ---- columns of trials ---- */

static json_t *trial_exp (const struct report *r, long i)
{
    return json_integer ((json_int_t)r->trials[i].sweep);
}

static json_t *trial_state (const struct report *r, long i)
{
    return json_integer (report_phase (r, i));
}

static json_t *trial_length (const struct report *r, long i)
{
    const struct sweep_trial *t = r->trials[i].of;

    struct sweep_result of = trial_result (r->sweeps[r->trials[i].sweep].s, r->trials[i].number, 0);

    return json_integer (of.length ?: t->length);
}

static json_t *time_json (double seconds)
{
    return rounded_to_json (round (seconds * 100) / 100, 7);
}

static json_t *point_number (const struct report *r, long i)
{
    return json_integer (r->trials[i].point);
}

static json_t *point_deviation (const struct report *r, long i)
{
    return rounded_to_json (report_result (r, i, 0).deviation, 3);
}

static json_t *point_n (const struct report *r, long i)
{
    return json_integer (report_result (r, i, 0).n);
}

static json_t *is_compared (const struct report *r, long i)
{
    return json_integer (report_result (r, i, 0).compared);
}

static json_t *trial_files (const struct report *r, long i)
{
    return json_integer (r->trials[i].files.n);
}

static json_t *trial_step (const struct report *r, long i)
{
    return json_integer (r->trials[i].files.step);
}

/* "Restarting: NodeLost", for example. */
static json_t *trial_condition (const struct report *r, long i)
{
    const struct conditions *c =
        trial_conditions (r->sweeps[r->trials[i].sweep].s, r->trials[i].number);
    const char *reason = condition_reason_word (c->list[c->last].reason);

    return json_sprintf ("%s%s%s", condition_names[c->last], reason ? ": " : "",
                         reason ? reason : "");
}

/* Return a cell of the table of trials in the page's format. */
static json_t *table_cell (const struct report *r, long i, const struct result_column *c,
                           bool since_created, int digits)
{
    const struct sweep *s = r->sweeps[r->trials[i].sweep].s;
    struct cell cell = column_cell (c, s, r->trials[i].number);

    if (c->type == COLUMN_INT)
        return json_integer (cell.integer);
    return digits ? rounded_to_json (cell.real, digits)
                  : time_json (since_created ? cell.real - s->created : cell.real);
}

/* clang-format off */
static const struct trial_column {
    const char *name;
    json_t *(*get) (const struct report *r, long trial); /* NULL: that column of the table of trials */
    bool since_created;                                  /* a time, relative to the experiment's first event */
    int digits;                                          /* 0: a time in seconds */
} trial_columns[] = {
    { "exp",       trial_exp },
    { "state",     trial_state },
    { "condition", trial_condition },
    { "length",    trial_length },
    { "seconds" },
    { "end_time",  .since_created = true },
    { "attempts" },
    { "point",     point_number },
    { "files",     trial_files },
    { "step",      trial_step },
    { "compared",  is_compared },
    { "best",      .digits = 5 },
    { "deviation", point_deviation },
    { "n",         point_n },
};
/* clang-format on */

static json_t *trial_column_json (const struct report *r, const struct trial_column *of)
{
    struct result_column c = { 0 };
    json_t *list = json_array ();

    if (!of->get)
        c = column_named (of->name);
    for (long i = 0; i < r->n; i++)
        json_array_append_new (
            list, of->get ? of->get (r, i) : table_cell (r, i, &c, of->since_created, of->digits));
    return list;
}

/* Encode texts as indices into a table, which is stored in 'o' under the name 'table'.
 */
static json_t *coded (const struct report *r, json_t *o, const char *table, const char *column)
{
    struct result_column c = column_named (column);
    struct words w = { 0 };
    json_t *list = json_array ();

    words_number (&w, "");
    for (long i = 0; i < r->n; i++) {
        const struct report_trial *t = &r->trials[i];
        struct cell cell = column_cell (&c, r->sweeps[t->sweep].s, t->number);
        json_array_append_new (list, json_integer ((json_int_t)words_number (&w, cell.text)));
    }
    json_object_set_new (o, table, words_json (&w));
    words_free (&w);
    return list;
}

static json_t *trial_columns_json (const struct report *r, json_t *data)
{
    json_t *o = json_object ();

    for (size_t k = 0; k < sizeof (trial_columns) / sizeof (*trial_columns); k++)
        json_object_set_new (o, trial_columns[k].name, trial_column_json (r, &trial_columns[k]));
    json_object_set_new (o, "host", coded (r, data, "hosts", "host"));
    json_object_set_new (o, "why", coded (r, data, "whys", "why"));
    return o;
}

/* ---- metrics and parameters ---- */

static json_t *metric_columns_json (const struct report *r)
{
    const struct sweep *s = r->sweeps[0].s;
    const struct search_config *search = &s->exp->search->config;
    json_t *list = json_array ();

    for (size_t m = 0; m < sweep_metrics (s); m++) {
        json_t *v = json_array ();
        bool smaller = m == 0 ? search->smaller_is_better : !search->larger[m];
        for (long i = 0; i < r->n; i++)
            json_array_append_new (v, rounded_to_json (report_value (r, i, m), 5));
        json_array_append_new (list, json_pack ("{s:o, s:b, s:o}", "name",
                                                text_to_json (sweep_metric (s, m)), "smaller",
                                                smaller, "v", v));
    }
    return list;
}

static json_t *param_column_json (const struct report_data *d, size_t k)
{
    const struct report_param *p = &d->params.list[k];
    json_t *v = json_array (), *o = json_object ();

    json_object_set_new (o, "name", text_to_json (p->name));
    json_object_set_new (o, "log", json_boolean (p->log));
    for (long i = 0; i < d->report.n; i++)
        json_array_append_new (v, rounded_to_json (p->v[i], p->integer ? 12 : 5));
    if (p->category)
        json_object_set_new (o, "table", words_json (&p->table));
    else if (p->low <= p->high)
        json_object_set_new (
            o, "range",
            json_pack ("[o, o]", rounded_to_json (p->low, 5), rounded_to_json (p->high, 5)));
    json_object_set_new (o, "v", v);
    explained_put (&d->explanation, &d->params, k, o);
    return o;
}

static json_t *params_json (const struct report_data *d)
{
    json_t *list = json_array ();

    for (size_t k = 0; k < d->params.n; k++)
        json_array_append_new (list, param_column_json (d, k));
    return list;
}

/* ---- rungs and attempts ---- */

static size_t rung_of (const struct report *r, int64_t length)
{
    size_t k = 0;

    while (k + 1 < r->nlengths && r->lengths[k] < length)
        k++;
    return k;
}

static json_t *rung_columns_json (const struct report *r)
{
    json_t *lengths = json_array (), *rung = json_array ();
    json_t *trial = json_array (), *v = json_array ();

    for (size_t k = 0; k < r->nlengths; k++)
        json_array_append_new (lengths, json_integer (r->lengths[k]));
    for (size_t i = 0; i < r->nresults; i++) {
        json_array_append_new (rung, json_integer ((json_int_t)rung_of (r, r->results[i].length)));
        json_array_append_new (trial, json_integer (r->results[i].trial));
        json_array_append_new (v, rounded_to_json (r->results[i].value, 5));
    }
    return json_pack ("{s:o, s:o, s:o, s:o}", "lengths", lengths, "rung", rung, "trial", trial, "v",
                      v);
}

static double last_end (const struct report *r)
{
    double end = 0;

    for (size_t i = 0; i < r->nattempts; i++)
        end = fmax (end, r->attempts[i].end);
    return end > 0 ? end : 1;
}

/* Times are in ticks, each about a tenth of a pixel on the timeline. */
static json_t *attempts_json (const struct report *r)
{
    double tick = last_end (r) / TICKS;
    json_t *o = json_pack ("{s:o, s:o, s:o}", "slots", words_json (&r->slots), "causes",
                           words_json (&r->causes), "tick", rounded_to_json (tick, 7));
    static const char *const names[] = {
        "trial", "slot", "begin", "ticks", "end", "number", "cause"
    };
    json_t *lists[7];

    for (int k = 0; k < 7; k++)
        json_object_set_new (o, names[k], lists[k] = json_array ());
    for (size_t i = 0; i < r->nattempts; i++) {
        const struct report_attempt *a = &r->attempts[i];
        const json_int_t v[] = { a->trial,
                                 (json_int_t)a->slot,
                                 llround (a->begin / tick),
                                 llround ((a->end - a->begin) / tick),
                                 a->how,
                                 a->number,
                                 (json_int_t)a->cause };
        for (int k = 0; k < 7; k++)
            json_array_append_new (lists[k], json_integer (v[k]));
    }
    return o;
}

static json_t *requests_json (const struct report *r)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < r->nrequests; i++)
        json_array_append_new (
            list, json_pack ("[o, s]", time_json (r->requests[i].time), r->requests[i].what));
    return list;
}

/* ---- experiments ---- */

static json_t *front_json (const struct report *r)
{
    json_t *list = json_array ();

    for (size_t k = 0; k < r->nsweeps; k++) {
        const struct sweep *s = r->sweeps[k].s;
        bool *front = sweep_metrics (s) > 1 ? sweep_front (s) : NULL;
        for (long i = 0; front && i < s->ntrials; i++)
            if (front[i])
                json_array_append_new (list, json_integer (r->sweeps[k].first + i));
        free (front);
    }
    return list;
}

static json_t *report_experiment_json (const struct report_sweep *of)
{
    const struct sweep *s = of->s;
    const struct experiment *e = s->exp;

    return json_pack ("{s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "name",
                      text_to_json (of->name), "state", sweep_state_name (s->state), "searcher",
                      text_to_json (e->search->searcher), "first", (json_int_t)of->first, "n",
                      (json_int_t)s->ntrials, "length", (json_int_t)e->search->config.max_length,
                      "gpus", (json_int_t)experiment_gpus (e), "repeats",
                      (json_int_t)e->search->config.repeats, "created",
                      rounded_to_json (s->created, 11));
}

static json_t *experiments_json (const struct report *r)
{
    json_t *list = json_array ();

    for (size_t k = 0; k < r->nsweeps; k++)
        json_array_append_new (list, report_experiment_json (&r->sweeps[k]));
    return list;
}

static json_t *names_json (const char *const *names, int n)
{
    json_t *list = json_array ();

    for (int i = 0; i < n; i++)
        json_array_append_new (list, json_string (names[i]));
    return list;
}

json_t *data_json (const struct report_data *d)
{
    const struct report *r = &d->report;
    json_t *o = json_object ();

    json_object_set_new (o, "version", json_integer (VERSION));
    json_object_set_new (o, "made", json_integer ((json_int_t)time (NULL)));
    json_object_set_new (o, "live", rounded_to_json (r->live, 5));
    json_object_set_new (o, "n", json_integer (r->n));
    json_object_set_new (o, "states", names_json (trial_phases, TRIAL_PHASES));
    json_object_set_new (o, "ends", names_json (attempt_ends, ATTEMPT_ENDS));
    json_object_set_new (o, "experiments", experiments_json (r));
    json_object_set_new (o, "repeats", json_boolean (r->repeats));
    json_object_set_new (o, "fair", json_integer (d->explanation.length));
    json_object_set_new (o, "metrics", metric_columns_json (r));
    json_object_set_new (o, "params", params_json (d));
    json_object_set_new (o, "surfaces", explained_surfaces (&d->explanation, &d->params));
    json_object_set_new (o, "trial", trial_columns_json (r, o));
    json_object_set_new (o, "rungs", rung_columns_json (r));
    json_object_set_new (o, "attempts", attempts_json (r));
    json_object_set_new (o, "requests", requests_json (r));
    json_object_set_new (o, "front", front_json (r));
    json_object_set_new (o, "curves", curves_json (&d->curves, r));
    json_object_set_new (o, "hidden",
                         json_integer ((json_int_t)(d->curves.names.n - d->curves.nshown)));
    json_object_set_new (o, "gpu", gpu_use_json (&d->gpus));
    return o;
}
