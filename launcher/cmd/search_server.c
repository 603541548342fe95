/* SPDX-License-Identifier: Apache-2.0 */
/* dl search-server: the searchers for any program, over lines of JSON. */
#include "launcher/cmd/search_server.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/search_header.h"
#include "launcher/config/json_fields.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/say.h"
#include "runtime/base/error.h"

/* The protocol is in dl-search-server(1).  Trial N is "id" N - 1. */
struct server {
    struct search_header header;
    struct searcher *searcher;
    int64_t *lengths; /* of the segment of each trial */
    long capacity;    /* of lengths and params */
    long trials;      /* so many have begun */
    double *x;
    json_t **params; /* of each trial */
    long best;       /* trial with the best value, 0: none */
    double value;    /* of it */
};

/* A line, in which an operation may have some of these. */
struct search_line {
    const char *op;
    int64_t id, step;
    double seconds;
    json_t *value, *params;
};

static int bad (struct slurmdl_error *err, const char *what)
{
    errno = EINVAL;
    return errorf (err, "%s", what);
}

/* ---- the first line ---- */

static int check (const struct server *s, struct slurmdl_error *err)
{
    const struct search_header *h = &s->header;
    int param;
    const char *why = searcher_check (&h->config, h->params, h->n, &param);

    errno = EINVAL;
    if (!why)
        return 0;
    if (param < -1)
        return errorf (err, "constraint: column %d: %s", -1 - param, why);
    return errorf (err, "%.60s: %s", param >= 0 ? h->params[param].name : "searcher", why);
}

static int start (struct server *s, struct slurmdl_error *err)
{
    const struct search_header *h = &s->header;

    if (check (s, err) < 0)
        return -1;
    s->searcher = searcher_create (&h->config, h->params, h->n);
    s->x = calloc (h->n + 1, sizeof (*s->x));
    if (!s->searcher || !s->x)
        return errorf (err, "out of memory");
    return 0;
}

static void server_free (struct server *s)
{
    searcher_destroy (s->searcher);
    for (long i = 0; i < s->capacity; i++)
        json_decref (s->params[i]);
    header_free (&s->header);
    free (s->params);
    free (s->lengths);
    free (s->x);
}

/* Make space for the data of a trial. */
static int reserve_trial (struct server *s, long trial)
{
    long capacity = s->capacity ? s->capacity : 64;
    int64_t *lengths;
    json_t **params;

    while (capacity <= trial)
        capacity *= 2;
    if (capacity == s->capacity)
        return 0;
    if (!(lengths = realloc (s->lengths, (size_t)capacity * sizeof (*lengths))))
        return -1;
    s->lengths = lengths;
    if (!(params = realloc (s->params, (size_t)capacity * sizeof (json_t *))))
        return -1;
    s->params = params;
    for (; s->capacity < capacity; s->capacity++) {
        s->lengths[s->capacity] = 0;
        s->params[s->capacity] = NULL;
    }
    return 0;
}

/* ---- the operations ---- */

static void answer (json_t *o)
{
    json_put (o, stdout, JSON_COMPACT);
    putchar ('\n');
    fflush (stdout);
    json_decref (o);
}

/* Begin what 'op' says, at s->x if it is fresh. */
static int begin_trial (struct server *s, const struct search_op *op, struct slurmdl_error *err)
{
    if (reserve_trial (s, op->trial) < 0)
        return errorf (err, "out of memory");
    if (searcher_begin (s->searcher, op, s->x) < 0)
        return bad (err, "the searcher begins no such trial");
    s->lengths[op->trial] = op->length;
    if (!op->fresh)
        return 0;
    s->params[op->trial] = header_params (&s->header, s->x);
    s->trials = op->trial;
    return 0;
}

static void describe (const struct server *s, const struct search_op *op, json_t *o)
{
    json_object_set_new (o, "id", json_integer (op->trial - 1));
    if (!op->fresh) {
        json_object_set_new (o, "resume", json_true ());
        return;
    }
    json_object_set_new (o, "params", header_params (&s->header, s->x));
    if (op->from) {
        json_object_set_new (o, "from", json_integer (op->from - 1));
        json_object_set_new (o, "from_step", json_integer (op->from_length));
    }
}

static int ask (struct server *s, const struct search_line *line, struct slurmdl_error *err)
{
    enum search_answer what;
    struct search_op op;
    json_t *o;

    (void)line;
    what = searcher_ask (s->searcher, &op, s->x);
    if (what == SEARCH_RUN && !s->header.confirm && begin_trial (s, &op, err) < 0)
        return -1;
    o = json_object ();
    if (what == SEARCH_RUN)
        describe (s, &op, o);
    else
        json_object_set_new (o, "wait", json_true ());
    if (what == SEARCH_DONE)
        json_object_set_new (o, "done", json_true ());
    answer (o);
    return 0;
}

/* A trial that somebody else has begun, to be trained in full. */
static int begin (struct server *s, const struct search_line *line, struct slurmdl_error *err)
{
    struct search_op op = { .trial = s->trials + 1,
                            .fresh = true,
                            .length = s->header.config.max_length };

    if (line->id != s->trials) {
        errno = EINVAL;
        return errorf (err, "'id' is %" PRId64 ", but the next is %ld", line->id, s->trials);
    }
    if (s->header.config.repeats > 1)
        return bad (err, "begin and 'repeats' do not go together");
    if (header_point (&s->header, line->params, "params", s->x, err) < 0
        || header_fit (&s->header, "params", s->x, 1, err) < 0)
        return -1;
    return begin_trial (s, &op, err);
}

/* Returns it, 0 if there is none. */
static long trial_of (const struct server *s, const struct search_line *line,
                      struct slurmdl_error *err)
{
    if (line->id < s->trials)
        return (long)line->id + 1;
    errno = EINVAL;
    errorf (err, "'id' is %" PRId64 ", but no trial has it", line->id);
    return 0;
}

static void keep_best (struct server *s, long trial, double value)
{
    bool better = s->header.config.smaller_is_better ? value < s->value : value > s->value;

    if (isfinite (value) && (s->best == 0 || better)) {
        s->best = trial;
        s->value = value;
    }
}

static int tell_values (struct server *s, long trial, int64_t length, const double *values)
{
    if (searcher_observe (s->searcher, trial, length, values) < 0)
        return -1;
    keep_best (s, trial, *values);
    return 0;
}

/* null: the trial failed. */
static int observe (struct server *s, const struct search_line *line, struct slurmdl_error *err)
{
    double values[OBJECTIVES_MAX];
    long trial = trial_of (s, line, err);
    int rv;

    if (!trial || header_values (&s->header, line->value, "tell", values, err) < 0)
        return -1;
    if (searcher_spend (s->searcher, trial, line->seconds) < 0)
        return bad (err, "'seconds' are too many");
    rv = json_is_null (line->value) ? searcher_exit (s->searcher, trial)
                                    : tell_values (s, trial, s->lengths[trial], values);
    /* with steps, the last report has had it already */
    if (rv < 0 && !s->header.steps)
        return bad (err, "the trial is not being trained");
    return 0;
}

static int reject (struct server *s, const struct search_line *line, struct slurmdl_error *err)
{
    long trial = trial_of (s, line, err);

    if (!trial)
        return -1;
    if (searcher_reject (s->searcher, trial) < 0)
        return bad (err, "the trial is not being trained");
    return 0;
}

/* What becomes of the trial after a report; NULL: it is not being trained. */
static const char *decide (struct server *s, long trial, int64_t step, const double *values)
{
    int64_t length = s->lengths[trial];
    bool last = step >= length;

    if (searcher_report (s->searcher, trial, last ? length : step, *values) < 0)
        return NULL;
    if (!last && !searcher_stops (s->searcher, trial))
        return "continue";
    if (tell_values (s, trial, last ? length : step, values) < 0)
        return NULL;
    return last && length < s->header.config.max_length && isfinite (*values) ? "pause" : "stop";
}

static int report (struct server *s, const struct search_line *line, struct slurmdl_error *err)
{
    double values[OBJECTIVES_MAX];
    const char *decision;
    long trial = trial_of (s, line, err);

    if (!trial || header_values (&s->header, line->value, "report", values, err) < 0)
        return -1;
    if (!(decision = decide (s, trial, line->step, values)))
        return bad (err, "the trial is not being trained");
    answer (json_pack ("{s:s}", "decision", decision));
    return 0;
}

static int best (struct server *s, const struct search_line *line, struct slurmdl_error *err)
{
    json_t *o = json_object ();

    (void)line;
    (void)err;
    if (s->best) {
        json_object_set_new (o, "id", json_integer (s->best - 1));
        json_object_set (o, "params", s->params[s->best]);
        json_object_set_new (o, "value", json_real (s->value));
    }
    answer (o);
    return 0;
}

static int quit (struct server *s, const struct search_line *line, struct slurmdl_error *err)
{
    (void)s;
    (void)line;
    (void)err;
    return 1;
}

/* ---- the lines ---- */

#define AT(field) offsetof (struct search_line, field)
#define BIG       0x1p53

/* clang-format off */
#define OP      { "op",      FIELD_TEXT,    AT (op),      true,  0, 0 }
#define ID      { "id",      FIELD_INTEGER, AT (id),      true,  0, BIG }
#define STEP    { "step",    FIELD_INTEGER, AT (step),    true,  1, BIG }
#define VALUE   { "value",   FIELD_ANY,     AT (value),   true,  0, 0 }
#define PARAMS  { "params",  FIELD_OBJECT,  AT (params),  true,  0, 0 }
#define SECONDS { "seconds", FIELD_NUMBER,  AT (seconds), false, 0, INFINITY }

static const struct {
    const char *name;
    struct field fields[6];
    int (*run) (struct server *s,
                const struct search_line *line,
                struct slurmdl_error *err); /* 1: the end */
} operations[] = {
    { "ask",    { OP },                     ask },
    { "tell",   { OP, ID, VALUE, SECONDS }, observe },
    { "report", { OP, ID, STEP, VALUE },    report },
    { "reject", { OP, ID },                 reject },
    { "begin",  { OP, ID, PARAMS },         begin },
    { "best",   { OP },                     best },
    { "quit",   { OP },                     quit },
};
/* clang-format on */

/* 0, 1: quit, -1 */
static int operate (struct server *s, const json_t *o, struct slurmdl_error *err)
{
    const char *op = json_string_value (json_object_get (o, "op"));
    struct search_line line = { 0 };

    for (size_t i = 0; op && i < sizeof (operations) / sizeof (*operations); i++) {
        if (strcmp (operations[i].name, op))
            continue;
        if (fields_read (operations[i].fields, o, op, &line, err) < 0)
            return -1;
        return operations[i].run (s, &line, err);
    }
    return bad (err, "'op' must be ask, tell, report, reject, begin, best or quit");
}

/* The lines of standard input. */
struct input {
    char *text;
    size_t size;
    long number;
};

/* Python writes NaN and Infinity, which JSON has not. */
static void explain (const json_error_t *why, struct slurmdl_error *err)
{
    bool number = strstr (why->text, "'NaN'") || strstr (why->text, "Infinity'");

    errorf (err, "column %d: %s%s", why->column, why->text,
            number ? "; use null for a value that is not finite" : "");
}

static json_t *parse (const char *text, size_t n, struct slurmdl_error *err)
{
    json_error_t why;
    json_t *line = json_loadb (text, n, JSON_REJECT_DUPLICATES, &why);

    errno = EINVAL;
    if (memchr (text, '\0', n))
        bad (err, "a NUL byte");
    else if (!line)
        explain (&why, err);
    else if (!json_is_object (line))
        bad (err, "not a JSON object");
    if (!*err->text)
        return line;
    json_decref (line);
    return NULL;
}

static json_t *next_line (struct input *in, struct slurmdl_error *err)
{
    ssize_t n = getline (&in->text, &in->size, stdin);

    if (n < 0) {
        if (!feof (stdin))
            errorf (err, "cannot read: %s", strerror (errno));
        return NULL;
    }
    in->number++;
    return parse (in->text, (size_t)n, err);
}

static void serve (struct server *s, struct input *in, const char *searcher,
                   struct slurmdl_error *err)
{
    json_t *line = next_line (in, err);
    int rv = -1;

    if (line && (rv = header_read (&s->header, line, searcher, err)) == 0)
        rv = start (s, err);
    while (rv == 0 && !ferror (stdout) && (line = next_line (in, err))) {
        rv = operate (s, line, err);
        json_decref (line);
    }
}

/* A name in it may be of several lines. */
static void make_printable (char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

int cmd_search_server (const struct command_line *line)
{
    const struct search_server_options *opt = line->options;
    struct slurmdl_error err = { "" };
    struct server s = { 0 };
    struct input in = { 0 };

    serve (&s, &in, opt->searcher, &err);
    server_free (&s);
    free (in.text);
    make_printable (err.text);
    if (*err.text) {
        complain ("line %ld: %s", in.number, err.text);
        return ferror (stdin) ? EXIT_IO : EXIT_USAGE;
    }
    if (!ferror (stdout))
        return EXIT_OK;
    complain ("cannot write the answer");
    return EXIT_IO;
}
