/* SPDX-License-Identifier: Apache-2.0 */
/* dl search-server: the searchers for any program, over lines of JSON. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd.h"
#include "runtime/error.h"

/* The protocol is in dl(1), SEARCH SERVER.  Trial N is "id" N - 1. */
enum { LINE_MAX_SIZE = 1 << 20, TRIALS_DEFAULT = 100000 };

struct server {
    struct searcher *searcher;
    struct search_config config;
    struct param *params;
    json_t **choices; /* of each parameter, NULL: a number */
    size_t n;
    json_t *hello;    /* owns the names and the choices */
    int64_t *lengths; /* of the segment of each trial */
    double *x;
};

static int bad (struct slurmdl_error *err, const char *what)
{
    errno = EINVAL;
    return errorf (err, "search-server: %s", what);
}

/* ---- the first line ---- */

static bool is_true (const json_t *o, const char *key)
{
    return json_is_true (json_object_get (o, key));
}

static double number_at (const json_t *o, const char *key, double otherwise)
{
    const json_t *v = json_object_get (o, key);

    return json_is_number (v) ? json_number_value (v) : otherwise;
}

static int
read_param (struct server *s, const json_t *o, struct slurmdl_error *err)
{
    const char *type = json_string_value (json_object_get (o, "type"));
    struct param *p = &s->params[s->n];

    *p = (struct param){
        .name = json_string_value (json_object_get (o, "name")),
        .min = number_at (o, "low", NAN),
        .max = number_at (o, "high", NAN),
    };
    if (!p->name || !type)
        return bad (err, "a parameter needs \"name\" and \"type\"");
    if (!strcmp (type, "categorical")) {
        p->type = PARAM_CATEGORICAL;
        s->choices[s->n] = json_object_get (o, "choices");
        p->choices = (long)json_array_size (s->choices[s->n]);
    } else if (!strcmp (type, "int")) {
        p->type = PARAM_INT;
        p->base = is_true (o, "log") ? 10 : 0;
    } else if (strcmp (type, "float"))
        return bad (err, "\"type\" must be float, int or categorical");
    else if (is_true (o, "log")) {
        p->type = PARAM_LOG;
        p->base = 10;
        p->min = log10 (p->min);
        p->max = log10 (p->max);
    }
    s->n++;
    return 0;
}

static int read_space (struct server *s, struct slurmdl_error *err)
{
    const json_t *space = json_object_get (s->hello, "space");
    size_t n = json_array_size (space);

    s->params = calloc (n + 1, sizeof (*s->params));
    s->choices = calloc (n + 1, sizeof (json_t *));
    s->x = calloc (n + 1, sizeof (*s->x));
    if (!s->params || !s->choices || !s->x)
        return errorf (err, "out of memory");
    if (n == 0)
        return bad (err,
                    "the first line needs \"space\", a list of parameters");
    for (size_t i = 0; i < n; i++)
        if (read_param (s, json_array_get (space, i), err) < 0)
            return -1;
    return 0;
}

static const char *searcher_name (const struct server *s,
                                  const struct settings *st)
{
    const char *name =
        json_string_value (json_object_get (s->hello, "searcher"));

    if (st->searcher)
        return st->searcher;
    if (name)
        return name;
    return json_object_get (s->hello, "max_step") ? "asha" : "tpe";
}

static void read_config (struct server *s, const struct settings *st)
{
    const char *direction =
        json_string_value (json_object_get (s->hello, "direction"));
    double budget = number_at (s->hello, "budget", 0);
    bool steps = json_object_get (s->hello, "max_step") != NULL;

    s->config = (struct search_config){
        .name = searcher_name (s, st),
        .seed = (uint64_t)number_at (s->hello, "seed", 0),
        .max_trials = budget >= 1 && !steps ? (long)budget : TRIALS_DEFAULT,
        .max_length = (int64_t)number_at (s->hello, "max_step", 1),
        .smaller_is_better = !direction || strcmp (direction, "maximize") != 0,
        .divisor = number_at (s->hello, "divisor", 3),
        .max_rungs = (long)number_at (s->hello, "max_rungs", 32),
    };
}

static int
start (struct server *s, const struct settings *st, struct slurmdl_error *err)
{
    const char *why;
    char text[200];
    int param;

    if (read_space (s, err) < 0)
        return -1;
    read_config (s, st);
    why = searcher_check (&s->config, s->params, s->n, &param);
    if (why) {
        snprintf (text,
                  sizeof (text),
                  "%s%s%s",
                  param >= 0 ? s->params[param].name : "searcher",
                  ": ",
                  why);
        return bad (err, text);
    }
    s->searcher = searcher_create (&s->config, s->params, s->n);
    s->lengths =
        calloc ((size_t)s->config.max_trials + 1, sizeof (*s->lengths));
    if (!s->searcher || !s->lengths)
        return errorf (err, "out of memory");
    return 0;
}

static void server_free (struct server *s)
{
    searcher_destroy (s->searcher);
    json_decref (s->hello);
    free (s->params);
    free (s->choices);
    free (s->lengths);
    free (s->x);
}

/* ---- the operations ---- */

static void answer (json_t *o)
{
    json_dumpf (o, stdout, JSON_COMPACT);
    putchar ('\n');
    fflush (stdout);
    json_decref (o);
}

/* A float's bounds may be missed by the last bit of a power of ten. */
static double within (const json_t *o, double v)
{
    double low = number_at (o, "low", v);
    double high = number_at (o, "high", v);

    return v < low ? low : v > high ? high : v;
}

static json_t *params_json (const struct server *s)
{
    const json_t *space = json_object_get (s->hello, "space");
    json_t *params = json_object ();

    for (size_t i = 0; i < s->n; i++) {
        json_t *v;
        if (s->choices[i])
            v = json_incref (json_array_get (s->choices[i], (size_t)s->x[i]));
        else if (s->params[i].type == PARAM_INT)
            v = json_integer ((json_int_t)s->x[i]);
        else
            v = json_real (within (json_array_get (space, i), s->x[i]));
        json_object_set_new (params, s->params[i].name, v);
    }
    return params;
}

static int ask (struct server *s, const json_t *line, struct slurmdl_error *err)
{
    struct search_op op;
    json_t *o = json_object ();

    (void)line;
    switch (searcher_ask (s->searcher, &op, s->x)) {
    case SEARCH_WAIT:
        json_object_set_new (o, "wait", json_true ());
        break;
    case SEARCH_DONE:
        json_object_set_new (o, "wait", json_true ());
        json_object_set_new (o, "done", json_true ());
        break;
    case SEARCH_RUN:
        if (searcher_begin (s->searcher, &op, s->x) < 0) {
            json_decref (o);
            return bad (err, "cannot begin a trial");
        }
        s->lengths[op.trial] = op.length;
        json_object_set_new (o, "id", json_integer (op.trial - 1));
        if (op.fresh)
            json_object_set_new (o, "params", params_json (s));
        else
            json_object_set_new (o, "resume", json_true ());
        break;
    }
    answer (o);
    return 0;
}

static int trial_of (const struct server *s,
                     const json_t *line,
                     long *trial,
                     struct slurmdl_error *err)
{
    const json_t *id = json_object_get (line, "id");

    *trial = (long)json_integer_value (id) + 1;
    if (json_is_integer (id) && *trial >= 1 && *trial <= s->config.max_trials)
        return 0;
    return bad (err, "\"id\" is not one of a trial");
}

/* null, or what is no number: the trial failed. */
static int
tell (struct server *s, const json_t *line, struct slurmdl_error *err)
{
    const json_t *value = json_object_get (line, "value");
    long trial;
    int rv;

    if (trial_of (s, line, &trial, err) < 0)
        return -1;
    rv = json_is_number (value) ? searcher_tell (
             s->searcher, trial, s->lengths[trial], json_number_value (value))
                                : searcher_exit (s->searcher, trial);
    /* by steps, the last report has told already */
    if (rv < 0 && s->config.max_length == 1)
        return bad (err, "the trial is not being trained");
    return 0;
}

static int
report (struct server *s, const json_t *line, struct slurmdl_error *err)
{
    int64_t step = json_integer_value (json_object_get (line, "step"));
    const json_t *value = json_object_get (line, "value");
    const char *decision = "continue";
    long trial;

    if (trial_of (s, line, &trial, err) < 0)
        return -1;
    if (step >= s->lengths[trial]) {
        double v = json_is_number (value) ? json_number_value (value) : NAN;
        if (searcher_tell (s->searcher, trial, s->lengths[trial], v) < 0)
            return bad (err, "the trial is not being trained");
        decision = step >= s->config.max_length || isnan (v) ? "stop" : "pause";
    }
    answer (json_pack ("{s:s}", "decision", decision));
    return 0;
}

static const struct {
    const char *op;
    int (*run) (struct server *s,
                const json_t *line,
                struct slurmdl_error *err);
} operations[] = { { "ask", ask }, { "tell", tell }, { "report", report } };

/* 0, 1: quit, -1 */
static int
operate (struct server *s, const json_t *line, struct slurmdl_error *err)
{
    const char *op = json_string_value (json_object_get (line, "op"));

    if (op && !strcmp (op, "quit"))
        return 1;
    for (size_t i = 0; op && i < sizeof (operations) / sizeof (*operations);
         i++)
        if (!strcmp (operations[i].op, op))
            return operations[i].run (s, line, err);
    return bad (err, "\"op\" must be ask, tell, report or quit");
}

static json_t *next_line (char *text, long *number, struct slurmdl_error *err)
{
    json_error_t why;
    json_t *line;

    if (!fgets (text, LINE_MAX_SIZE, stdin))
        return NULL;
    ++*number;
    line = json_loads (text, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object (line)) {
        json_decref (line);
        bad (err, line ? "not a JSON object" : why.text);
        return NULL;
    }
    return line;
}

int cmd_search_server (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    char *text = malloc (LINE_MAX_SIZE);
    struct server s = { 0 };
    json_t *line = NULL;
    long number = 0;
    int rv = text ? 0 : errorf (&err, "out of memory");

    if (rv == 0 && (s.hello = next_line (text, &number, &err)))
        rv = start (&s, st, &err);
    while (rv == 0 && s.searcher && (line = next_line (text, &number, &err))) {
        rv = operate (&s, line, &err);
        json_decref (line);
    }
    server_free (&s);
    free (text);
    if (!*err.text)
        return EXIT_OK;
    complain ("line %ld: %s", number, err.text);
    return EXIT_USAGE;
}
