/* SPDX-License-Identifier: Apache-2.0 */
/* Apply events to a sweep in memory, which has no log. */
#pragma once

#include "launcher/sweep/replay.h"
#include "tests/folder.h"
#include "tests/launcher/made.h"
#include "tests/unit.h"

#define CONF                                                                                       \
    "name = \"t\"; entrypoint = \"true\";\n"                                                       \
    "searcher = { metric = %s; %s };\n"                                                            \
    "hyperparameters = { x = { type = \"float\"; minval = 0; maxval = 1; }; "                      \
    "};\n"

/* Events; x is the value of the only hyperparameter. */
#define BEGIN(t, len, x)                                                                           \
    "{'op':'begin','trial':" t ",'length':" len ",'x':[" x "],'hparams':{'x':" x "}}"
#define END(op, t, k, more) "{'op':'" op "','trial':" t ",'attempt':" k ",'seconds':10" more "}"

static const char create[] = "{'op':'create','version':1,'name':'t',"
                             "'dir':'/','seed':1,'time':1}";

/* A sweep before its create event. */
static inline struct sweep *make (const char *metric, const char *searcher)
{
    struct sweep *s = calloc (1, sizeof (*s));
    FILE *f = fopen (in_dir ("t.conf"), "w");

    assert_non_null (f);
    fprintf (f, CONF, metric, searcher);
    fclose (f);
    assert_non_null (s->exp = made_experiment (in_dir ("t.conf")));
    return s;
}

/* The counters that events update match a count over all trials. */
static inline void check_counts (const struct sweep *s)
{
    double seconds = 0, length = 0;
    long nopen = 0;

    for (long i = 1; i <= s->ntrials; i++) {
        const struct sweep_trial *t = sweep_trial (s, i);
        if (t->state == TRIAL_OPEN) {
            assert_true (nopen < s->nopen);
            assert_int_equal (s->open[nopen++], i);
        }
        seconds += t->length > 0 ? t->seconds : 0;
        length += (double)t->length;
    }
    assert_int_equal (nopen, s->nopen);
    assert_true (seconds == s->pace.seconds && length == s->pace.length);
}

/* Apply an event in JSON, with ' in place of ". */
static inline int apply (struct sweep *s, const char *text)
{
    struct slurmdl_error err = { "" };
    char *copy = strdup (text);
    struct event event;
    json_t *json;
    int rv;

    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    assert_non_null (json = json_loads (copy, 0, NULL));
    assert_int_equal (event_read (json, &event), 0);
    rv = sweep_apply (&event, s, &err);
    if (rv < 0)
        fprintf (stderr, "%s: %s\n", text, err.text);
    else
        check_counts (s);
    event_free (&event);
    json_decref (json);
    free (copy);
    return rv;
}

static inline void put (struct sweep *s, const char *text)
{
    assert_int_equal (apply (s, text), 0);
}

static inline struct sweep *created (const char *metric, const char *searcher)
{
    struct sweep *s = make (metric, searcher);

    put (s, create);
    return s;
}
