/* SPDX-License-Identifier: Apache-2.0 */
/* All that a report says, and the JSON that its script draws. */
#include "launcher/report/data.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "launcher/config/trial_gpus.h"
#include "launcher/report/gather.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "runtime/base/error.h"

enum { VERSION = 3, TICKS = 4000 };

/* ---- reading ---- */

int data_read (struct report_data *d, struct sweep *const *list, size_t n, struct rows *old,
               struct slurmdl_error *err)
{
    const struct report *r = &d->report;

    *d = (struct report_data){ 0 };
    if (report_fill (&d->report, list, n, err) < 0)
        return -1;
    report_fill_files (&d->report);
    if (params_fill (&d->params, r) < 0 || curves_read (&d->curves, r, old) < 0
        || explain (&d->explanation, r, &d->params) < 0 || gpu_use_read (&d->gpus, r) < 0
        || (d->nordered = report_order (r, &d->order)) < 0)
        return errorf (err, "out of memory");
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

static json_t *trial_seconds (const struct report *r, long i)
{
    return time_json (r->trials[i].of->seconds);
}

static double since_created (const struct report *r, long i, double time)
{
    return time - r->sweeps[r->trials[i].sweep].s->created;
}

static json_t *trial_begin (const struct report *r, long i)
{
    return time_json (since_created (r, i, r->trials[i].of->begin_time));
}

static json_t *trial_end (const struct report *r, long i)
{
    return time_json (since_created (r, i, r->trials[i].of->end_time));
}

static json_t *trial_tries (const struct report *r, long i)
{
    const struct sweep_trial *t = r->trials[i].of;

    return json_integer (t->over + (report_phase (r, i) == PHASE_RUNNING));
}

static json_t *trial_fails (const struct report *r, long i)
{
    return json_integer (r->trials[i].of->fails);
}

static json_t *point_number (const struct report *r, long i)
{
    return json_integer (r->trials[i].point);
}

static json_t *trial_own (const struct report *r, long i)
{
    return rounded_to_json (
        trial_result (r->sweeps[r->trials[i].sweep].s, r->trials[i].number, 0).value, 5);
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

static json_t *trial_bytes (const struct report *r, long i)
{
    return rounded_to_json (r->trials[i].files.bytes, 4);
}

static json_t *trial_step (const struct report *r, long i)
{
    return json_integer (r->trials[i].files.step);
}

static json_t *trial_saved_by (const struct report *r, long i)
{
    return json_integer (r->trials[i].files.attempt);
}

/* "Restarting: NodeLost" */
static json_t *trial_condition (const struct report *r, long i)
{
    const struct conditions *c =
        trial_conditions (r->sweeps[r->trials[i].sweep].s, r->trials[i].number);
    const char *reason = c->list[c->last].reason;

    return json_sprintf ("%s%s%s", condition_names[c->last], reason ? ": " : "",
                         reason ? reason : "");
}

static const struct trial_column {
    const char *name;
    json_t *(*get) (const struct report *r, long trial);
} trial_columns[] = {
    { "exp", trial_exp },
    { "state", trial_state },
    { "length", trial_length },
    { "seconds", trial_seconds },
    { "begin", trial_begin },
    { "end", trial_end },
    { "tries", trial_tries },
    { "fails", trial_fails },
    { "condition", trial_condition },
    { "point", point_number },
    { "files", trial_files },
    { "bytes", trial_bytes },
    { "step", trial_step },
    { "saved", trial_saved_by },
    { "compared", is_compared },
    { "own", trial_own },
    { "deviation", point_deviation },
    { "n", point_n },
};

static json_t *column (const struct report *r, json_t *(*get) (const struct report *r, long trial))
{
    json_t *list = json_array ();

    for (long i = 0; i < r->n; i++)
        json_array_append_new (list, get (r, i));
    return list;
}

/* Texts of trials as numbers into a table, which 'o' gets under another name.
 */
static json_t *coded (const struct report *r, json_t *o, const char *table,
                      const char *(*get) (const struct sweep_trial *t))
{
    struct words w = { 0 };
    json_t *list = json_array ();

    words_number (&w, "");
    for (long i = 0; i < r->n; i++)
        json_array_append_new (list,
                               json_integer ((json_int_t)words_number (&w, get (r->trials[i].of))));
    json_object_set_new (o, table, words_json (&w));
    words_free (&w);
    return list;
}

static const char *host_of (const struct sweep_trial *t)
{
    return t->host;
}

static const char *why_of (const struct sweep_trial *t)
{
    return t->why;
}

static json_t *trials_json (const struct report *r, json_t *data)
{
    json_t *o = json_object ();

    for (size_t k = 0; k < sizeof (trial_columns) / sizeof (*trial_columns); k++)
        json_object_set_new (o, trial_columns[k].name, column (r, trial_columns[k].get));
    json_object_set_new (o, "host", coded (r, data, "hosts", host_of));
    json_object_set_new (o, "why", coded (r, data, "whys", why_of));
    return o;
}

/* ---- metrics and parameters ---- */

static json_t *metrics_json (const struct report *r)
{
    const struct sweep *s = r->sweeps[0].s;
    const struct search_config *search = &s->exp->search;
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

static json_t *param_json (const struct report_data *d, size_t k)
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
        json_array_append_new (list, param_json (d, k));
    return list;
}

/* ---- rungs, attempts ---- */

static size_t rung_of (const struct report *r, int64_t length)
{
    size_t k = 0;

    while (k + 1 < r->nlengths && r->lengths[k] < length)
        k++;
    return k;
}

static json_t *rungs_json (const struct report *r)
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

/* Times in ticks: a tenth of a pixel of the time line. */
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

static json_t *experiment_json (const struct report_sweep *of)
{
    const struct sweep *s = of->s;
    const struct experiment *e = s->exp;

    return json_pack ("{s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "name",
                      text_to_json (of->name), "state", sweep_state_name (s->state), "searcher",
                      text_to_json (e->searcher_name), "first", (json_int_t)of->first, "n",
                      (json_int_t)s->ntrials, "length", (json_int_t)e->search.max_length, "gpus",
                      (json_int_t)experiment_gpus (e), "repeats",
                      (json_int_t)(e->search.repeats > 1 ? e->search.repeats : 1), "created",
                      rounded_to_json (s->created, 11));
}

static json_t *experiments_json (const struct report *r)
{
    json_t *list = json_array ();

    for (size_t k = 0; k < r->nsweeps; k++)
        json_array_append_new (list, experiment_json (&r->sweeps[k]));
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
    json_object_set_new (o, "metrics", metrics_json (r));
    json_object_set_new (o, "params", params_json (d));
    json_object_set_new (o, "surfaces", explained_surfaces (&d->explanation, &d->params));
    json_object_set_new (o, "trial", trials_json (r, o));
    json_object_set_new (o, "rungs", rungs_json (r));
    json_object_set_new (o, "attempts", attempts_json (r));
    json_object_set_new (o, "requests", requests_json (r));
    json_object_set_new (o, "front", front_json (r));
    json_object_set_new (o, "curves", curves_json (&d->curves, r));
    json_object_set_new (o, "hidden",
                         json_integer ((json_int_t)(d->curves.names.n - d->curves.nshown)));
    json_object_set_new (o, "gpu", gpu_use_json (&d->gpus));
    return o;
}
