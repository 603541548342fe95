/* SPDX-License-Identifier: Apache-2.0 */
/* Replay: late and repeated events change nothing, and equal logs give equal
 * states.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/trial_gpus.h"
#include "launcher/sweep/nodes.h"
#include "launcher/sweep/pareto_front.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/requests.h"
#include "launcher/sweep/states.h"
#include "launcher/sweep/sweep.h"
#include "tests/folder.h"

#define CONF                                                                   \
    "name = \"t\"; entrypoint = \"true\";\n"                                   \
    "searcher = { metric = %s; %s };\n"                                        \
    "hyperparameters = { x = { type = \"float\"; minval = 0; maxval = 1; }; "  \
    "};\n"

static const char create[] = "{'op':'create','version':1,'name':'t',"
                             "'dir':'/','seed':1,'time':1}";

/* A sweep in memory, without a log of its own. */
static struct sweep *make (const char *metric, const char *searcher)
{
    struct sweep *s = calloc (1, sizeof (*s));
    struct problems p;
    FILE *f = fopen (in_dir ("t.conf"), "w");

    assert_non_null (f);
    fprintf (f, CONF, metric, searcher);
    fclose (f);
    assert_int_equal (problems_open (&p), 0);
    s->exp = experiment_read (in_dir ("t.conf"), &p);
    problems_close (&p);
    if (p.count)
        fputs (p.text, stderr);
    free (p.text);
    assert_non_null (s->exp);
    return s;
}

/* What is counted on the way is what a look at all trials says. */
static void check_counts (const struct sweep *s)
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

/* Apply an event, written with ' for ". */
static int apply (struct sweep *s, const char *text)
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

static bool same (const struct sweep *a, const struct sweep *b)
{
    size_t n = searcher_size (a->searcher);

    return n == searcher_size (b->searcher)
           && !memcmp (a->searcher, b->searcher, n) && a->state == b->state
           && a->best == b->best && a->nhistory == b->nhistory
           && a->expired == b->expired;
}

/* ---- the scenarios ---- */

#define BEGIN(t, len, x)                                                       \
    "{'op':'begin','trial':" t ",'length':" len ",'x':[" x                     \
    "],'hparams':{'x':" x "}}"
#define END(op, t, k, more)                                                    \
    "{'op':'" op "','trial':" t ",'attempt':" k ",'seconds':10" more "}"

static const char *const plain[] = {
    BEGIN ("1", "1", "0.5"),
    BEGIN ("2", "1", "0.25"),
    BEGIN ("3", "1", "0.75"),
    END ("fail", "1", "1", ",'why':'w'"),
    END ("lost", "2", "1", ""),
    END ("result", "1", "2", ",'length':1,'metric':0.5"),
    END ("park", "2", "2", ""),
    END ("reject", "2", "3", ",'why':'r'"),
    END ("fail", "3", "1", ",'why':'w'"),
    "{'op':'exit','trial':3}",
    BEGIN ("4", "1", "0.125"),
    "{'op':'pause'}",
    END ("result", "4", "1", ",'length':1,'metric':'nan'"),
    "{'op':'resume'}",
    "{'op':'expire'}",
    "{'op':'end','state':'completed'}",
    NULL,
};

static const char *const stopping[] = {
    BEGIN ("1", "20", "0.5"),
    BEGIN ("2", "20", "0.25"),
    END ("report", "1", "1", ",'length':3,'metric':0.5"),
    END ("report", "2", "1", ",'length':3,'metric':'nan'"),
    END ("lost", "1", "1", ""),
    END ("report", "1", "2", ",'length':7,'metric':0.25"),
    END ("result", "2", "1", ",'length':3,'metric':'nan','stopped':true"),
    END ("result", "1", "2", ",'length':20,'metric':0.125"),
    NULL,
};

static const char *const several[] = {
    BEGIN ("1", "1", "0.5"),
    BEGIN ("2", "1", "0.25"),
    END ("result", "1", "1", ",'length':1,'metric':1,'metrics':[1,5]"),
    END ("result", "2", "1", ",'length':1,'metric':2,'metrics':[2,'inf']"),
    NULL,
};

static const struct {
    const char *metric, *searcher;
    const char *const *events;
} scenarios[] = {
    { "\"m\"", "name = \"random\"; max_trials = 4;", plain },
    { "\"m\"", "name = \"gp\"; max_trials = 4; cost_aware = true;", plain },
    { "\"m\"",
      "name = \"median\"; max_trials = 4; max_length = 20;",
      stopping },
    { "(\"m\", \"n\")", "name = \"nsga2\"; max_trials = 4;", several },
};

/* What an attempt says, said again at any time. */
static bool may_repeat (const char *event)
{
    return !strstr (event, "'begin'") && !strstr (event, "'end'")
           && !strstr (event, "'pause'") && !strstr (event, "'resume'");
}

static void repeat_all (struct sweep *s, const char *const *events, int n)
{
    for (int i = 0; i < n; i++)
        if (may_repeat (events[i]))
            assert_int_equal (apply (s, events[i]), 0);
}

static void late_events_are_harmless (void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof (scenarios) / sizeof (*scenarios); k++) {
        struct sweep *a = make (scenarios[k].metric, scenarios[k].searcher);
        struct sweep *b = make (scenarios[k].metric, scenarios[k].searcher);
        const char *const *events = scenarios[k].events;
        assert_int_equal (apply (a, create), 0);
        assert_int_equal (apply (b, create), 0);
        assert_int_equal (apply (b, create), 0);
        for (int i = 0; events[i]; i++) {
            assert_int_equal (apply (a, events[i]), 0);
            assert_int_equal (apply (b, events[i]), 0);
            repeat_all (b, events, i + 1);
            assert_true (same (a, b));
        }
        sweep_close (a);
        sweep_close (b);
    }
}

static struct sweep *replay (size_t k)
{
    struct sweep *s = make (scenarios[k].metric, scenarios[k].searcher);

    assert_int_equal (apply (s, create), 0);
    for (const char *const *e = scenarios[k].events; *e; e++)
        assert_int_equal (apply (s, *e), 0);
    return s;
}

static void plain_states (void **state)
{
    struct sweep *s = replay (0);

    (void)state;
    assert_int_equal (s->state, SWEEP_COMPLETED);
    assert_true (s->expired);
    assert_int_equal (s->best, 1);
    assert_string_equal (trial_state_name (s, sweep_trial (s, 1)), "completed");
    assert_string_equal (trial_state_name (s, sweep_trial (s, 2)), "rejected");
    assert_string_equal (trial_state_name (s, sweep_trial (s, 3)), "failed");
    assert_true (isnan (sweep_trial (s, 4)->metric));
    assert_int_equal (trial_last (sweep_trial (s, 1)).attempt, 2);
    assert_int_equal (trial_milestone (sweep_trial (s, 1), 1), 2);
    assert_int_equal (trial_milestone (sweep_trial (s, 1), 2), 0);
    /* 10 s in the attempt that failed, 10 s in the one with the result */
    assert_true (sweep_trial (s, 1)->spent == 20);
    assert_true (sweep_trial (s, 1)->seconds == 20);
    assert_true (sweep_trial (s, 3)->seconds == 10);
    /* what a lost one took is not known */
    assert_true (sweep_trial (s, 2)->spent == 20);
    sweep_close (s);
}

static void stopped_states (void **state)
{
    struct sweep *s = replay (2);

    (void)state;
    assert_true (sweep_wants_reports (s));
    assert_string_equal (trial_state_name (s, sweep_trial (s, 2)),
                         "stopped early");
    assert_int_equal (sweep_trial (s, 2)->length, 3);
    assert_int_equal (sweep_trial (s, 1)->reported, 7);
    assert_string_equal (trial_state_name (s, sweep_trial (s, 1)), "completed");
    sweep_close (s);
}

/* A result before the segment's end is none if the searcher wants more. */
static void nobody_stops_but_the_searcher (void **state)
{
    struct sweep *s = make ("\"m\"", scenarios[2].searcher);

    (void)state;
    assert_int_equal (apply (s, create), 0);
    assert_int_equal (apply (s, BEGIN ("1", "20", "0.5")), 0);
    assert_int_equal (
        apply (
            s,
            END ("result", "1", "1", ",'length':3,'metric':1,'stopped':true")),
        0);
    assert_int_equal (sweep_trial (s, 1)->state, TRIAL_OPEN);
    assert_int_equal (sweep_trial (s, 1)->over, 0);
    sweep_close (s);
}

/* Each request in each state: where it leads, and '-' where it is passed over.
 */
static void transitions (void **state)
{
    static const struct {
        const char *request;
        const char *to[7]; /* from new, running, paused, ... */
    } rows[] = {
        { "pause", { "-", "paused", "-", "-", "-", "-", "-" } },
        { "resume", { "-", "-", "running", "-", "-", "-", "-" } },
        { "stop", { "-", "stopped", "stopped", "-", "-", "-", "-" } },
        { "kill", { "-", "killed", "killed", "killed", "-", "-", "-" } },
        { "continue",
          { "-", "-", "-", "running", "running", "running", "running" } },
        { "end", { "-", "completed", "-", "-", "-", "-", "-" } },
        { "expire", { "-", "-", "-", "-", "-", "-", "-" } },
        { "archive", { "-", "-", "-", "-", "-", "-", "-" } },
        { "label", { "-", "-", "-", "-", "-", "-", "-" } },
    };
    struct sweep *s = replay (0);
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof (rows) / sizeof (*rows); i++)
        for (int from = SWEEP_RUNNING; from <= SWEEP_FAILED; from++) {
            bool moves = *rows[i].to[from] != '-';
            bool archives = !strcmp (rows[i].request, "archive");
            s->state = (enum sweep_state)from;
            s->archived = false;
            snprintf (text, sizeof (text), "{'op':'%s'}", rows[i].request);
            assert_int_equal (apply (s, text), 0);
            assert_string_equal (
                sweep_state_name (s->state),
                moves ? rows[i].to[from]
                      : sweep_state_name ((enum sweep_state)from));
            if (archives)
                assert_int_equal (s->archived, sweep_has_ended (s));
        }
    sweep_close (s);
}

static void requests (void **state)
{
    struct sweep *s = replay (0);

    (void)state;
    assert_int_equal (apply (s, "{'op':'label','label':'a'}"), 0);
    assert_int_equal (apply (s, "{'op':'label','label':'b'}"), 0);
    assert_int_equal (apply (s, "{'op':'label','label':'a'}"), 0);
    assert_string_equal (s->labels[1], "b");
    assert_null (s->labels[2]);
    assert_int_equal (apply (s, "{'op':'label','label':'a','off':true}"), 0);
    assert_string_equal (s->labels[0], "b");
    assert_null (s->labels[1]);
    assert_int_equal (apply (s, "{'op':'scale','workers':2,'slots':'7_3 7_4'}"),
                      0);
    assert_int_equal (s->wanted, 2);
    assert_true (sweep_retires (s, "7_4"));
    assert_false (sweep_retires (s, "7_2"));
    assert_int_equal (apply (s, "{'op':'submit','job':'7','first':1,'last':4}"),
                      0);
    assert_int_equal (s->nsubmits, 1);
    assert_string_equal (s->submits[0].job, "7");
    assert_int_equal (apply (s, "{'op':'exclude','host':'n1','why':'ECC'}"), 0);
    assert_string_equal (sweep_host (s, "n1")->why, "ECC");
    assert_int_equal (apply (s, "{'op':'exclude','host':'n1','off':true}"), 0);
    assert_null (sweep_host (s, "n1")->why);
    sweep_close (s);
}

static void machines (void **state)
{
    struct sweep *s = make ("\"m\"", "name = \"random\"; max_trials = 9;");

    (void)state;
    assert_int_equal (apply (s, create), 0);
    assert_int_equal (apply (s, BEGIN ("1", "1", "0.5")), 0);
    assert_int_equal (apply (s, BEGIN ("2", "1", "0.5")), 0);
    assert_int_equal (apply (s, END ("fail", "1", "1", ",'host':'bad'")), 0);
    assert_int_equal (
        apply (s, END ("fail", "1", "2", ",'host':'bad','free':true")), 0);
    assert_int_equal (sweep_host (s, "bad")->fails, 1);
    assert_int_equal (sweep_trial (s, 1)->fails, 1);
    assert_int_equal (apply (s, END ("fail", "2", "1", ",'host':'bad'")), 0);
    assert_int_equal (sweep_host (s, "bad")->fails, 2);
    assert_int_equal (sweep_host (s, "bad")->trials[1], 2);
    assert_int_equal (
        apply (s,
               END ("result",
                    "2",
                    "2",
                    ",'length':1,'metric':1,'host':'bad','gpus':'3'")),
        0);
    assert_int_equal (sweep_host (s, "bad")->fails, 0);
    assert_int_equal (sweep_host (s, "bad")->results, 1);
    assert_string_equal (sweep_trial (s, 2)->host, "bad");
    assert_string_equal (sweep_trial (s, 2)->gpus, "3");
    sweep_close (s);
}

/* Attempt 'k' of trial 'n' ends at 'host'. */
static void
end_at (struct sweep *s, const char *op, int n, int k, const char *host)
{
    char text[160];

    snprintf (text,
              sizeof (text),
              "{'op':'%s','trial':%d,'attempt':%d,'host':'%s','length':1,"
              "'metric':1}",
              op,
              n,
              k,
              host);
    assert_int_equal (apply (s, text), 0);
}

/* Which machine is blamed, and which never. */
static void spoilers (void **state)
{
    struct sweep *s = make ("\"m\"", "name = \"random\"; max_trials = 40;");
    char text[96];

    (void)state;
    assert_int_equal (apply (s, create), 0);
    for (int i = 1; i <= 40; i++) {
        snprintf (text,
                  sizeof (text),
                  "{'op':'begin','trial':%d,'length':1,'x':[0.5]}",
                  i);
        assert_int_equal (apply (s, text), 0);
    }
    for (int i = 1; i <= 4; i++)
        end_at (s, "fail", 1 + i % 2, (i + 1) / 2, "bad");
    assert_false (host_spoils (s, "bad", 3)); /* nothing succeeds elsewhere */
    for (int i = 11; i <= 14; i++)
        end_at (s, "result", i, 1, "good");
    assert_false (host_spoils (s, "bad", 3));
    end_at (s, "result", 15, 1, "good");
    assert_true (host_spoils (s, "bad", 3));
    assert_false (host_spoils (s, "other", 3));
    end_at (s, "result", 3, 1, "bad"); /* one success, and it is forgotten */
    for (int i = 1; i <= 4; i++)
        end_at (s, "fail", 1 + i % 2, 2 + (i + 1) / 2, "bad");
    assert_false (host_spoils (s, "bad", 4));
    for (int i = 16; i <= 20; i++)
        end_at (s, "result", i, 1, "good");
    assert_true (host_spoils (s, "bad", 4));
    assert_int_equal (apply (s, "{'op':'exclude','host':'bad','why':'w'}"), 0);
    /* the last one is never blamed */
    for (int i = 1; i <= 8; i++)
        end_at (s, "fail", 30 + i % 2, (i + 1) / 2, "good");
    for (int i = 21; i <= 29; i++)
        end_at (s, "result", i, 1, "bad");
    assert_false (host_spoils (s, "good", 39));
    sweep_close (s);
}

/* One trial that always fails is the trial's fault. */
static void a_bad_trial_is_no_bad_machine (void **state)
{
    struct sweep *s = make ("\"m\"", "name = \"random\"; max_trials = 40;");
    char text[96];

    (void)state;
    assert_int_equal (apply (s, create), 0);
    for (int i = 1; i <= 12; i++) {
        snprintf (text,
                  sizeof (text),
                  "{'op':'begin','trial':%d,'length':1,'x':[0.5]}",
                  i);
        assert_int_equal (apply (s, text), 0);
    }
    for (int i = 1; i <= 8; i++)
        end_at (s, "fail", 1, i, "bad");
    for (int i = 2; i <= 10; i++)
        end_at (s, "result", i, 1, "good");
    assert_false (host_spoils (s, "bad", 1));
    assert_true (host_spoils (s, "bad", 11));
    sweep_close (s);
}

static void front (void **state)
{
    static const double values[][2] = {
        { 1, 5 }, { 2, 4 }, { 2, 5 }, { 3, 1 }, { NAN, 0 }, { 1, 5 },
    };
    static const bool want[] = { true, true, false, true, false, true };
    struct sweep *s = make ("(\"m\", \"n\")", scenarios[3].searcher);
    struct sweep_trial trials[6] = { 0 };
    bool *got;

    (void)state;
    for (int i = 0; i < 6; i++) {
        double copy[2] = { values[i][0], values[i][1] };
        trials[i].values = malloc (sizeof (copy));
        memcpy (trials[i].values, copy, sizeof (copy));
    }
    s->trials = trials;
    s->ntrials = 6;
    assert_non_null (got = sweep_front (s));
    assert_memory_equal (got, want, sizeof (want));
    free (got);
    for (int i = 0; i < 6; i++)
        free (trials[i].values);
    s->trials = NULL;
    s->ntrials = 0;
    sweep_close (s);
}

/* ---- logs that contradict themselves ---- */

/* clang-format off */
static const struct {
    const char *events[4]; /* the last one is refused */
} wrong[] = {
    /* without a first one, twice, of no length, outside the space */
    { { BEGIN ("2", "1", "0.5") } },
    { { BEGIN ("1", "1", "0.5"), BEGIN ("1", "1", "0.5") } },
    { { BEGIN ("1", "0", "0.5") } },
    { { BEGIN ("1", "1", "7") } },
    /* of two dimensions */
    { { "{'op':'begin','trial':1,'length':1,'x':[0.5,0.5],'hparams':{}}" } },
    /* not promoted */
    { { BEGIN ("1", "1", "0.5"),
        END ("result", "1", "1", ",'length':1,'metric':1"),
        BEGIN ("1", "3", "0.5") } },
};
/* clang-format on */

static void contradictions (void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof (wrong) / sizeof (*wrong); i++) {
        struct sweep *s = make ("\"m\"", scenarios[0].searcher);
        assert_int_equal (apply (s, create), 0);
        for (int k = 0; k < 4 && wrong[i].events[k]; k++) {
            bool last = k == 3 || !wrong[i].events[k + 1];
            assert_int_equal (apply (s, wrong[i].events[k]), last ? -1 : 0);
        }
        sweep_close (s);
    }
}

/* A log keeps the rules of the version that made it; of a newer version's
 * nothing is known.
 */
static void versions (void **state)
{
    static const struct {
        const char *create;
        int rv, rules;
    } logs[] = {
        { "{'op':'create','version':1,'name':'t','dir':'/','seed':1}", 0, 1 },
        { "{'op':'create','version':2,'name':'t','dir':'/','seed':1}", 0, 2 },
        { "{'op':'create','version':3,'name':'t','dir':'/','seed':1}", 0, 2 },
        { "{'op':'create','version':4,'name':'t','dir':'/','seed':1}", -1, 0 },
        { "{'op':'create','version':0,'name':'t','dir':'/','seed':1}", -1, 0 },
        { "{'op':'begin','trial':1,'length':1,'x':[0.5]}", -1, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof (logs) / sizeof (*logs); i++) {
        struct sweep *s = make ("\"m\"", scenarios[0].searcher);
        assert_int_equal (apply (s, logs[i].create), logs[i].rv);
        assert_int_equal (s->exp->search.rules, logs[i].rules);
        sweep_close (s);
    }
}

/* 'slots_per_trial' counts the GPUs of a trial, before version 3 those of a
 * node; also in a file that no new experiment could have.
 */
static void gpus (void **state)
{
    static const char resources[] =
        "name = \"random\"; max_trials = 9; max_gpu_hours = 8; };\n"
        "resources = { slots_per_trial = %d; nodes_per_trial = 2";
    static const struct {
        int version, slots, node, all;
        double seconds;
    } logs[] = { { 1, 4, 4, 8, 3600 },
                 { 2, 4, 4, 8, 3600 },
                 { 3, 4, 2, 4, 7200 },
                 { 2, 1, 1, 2, 14400 } };

    (void)state;
    for (size_t i = 0; i < sizeof (logs) / sizeof (*logs); i++) {
        char keys[256], text[512];
        struct sweep *s = make ("\"m\"", "name = \"random\"; max_trials = 9");
        struct problems p;

        snprintf (keys, sizeof (keys), resources, logs[i].slots);
        snprintf (text, sizeof (text), CONF, "\"m\"", keys);
        experiment_destroy (s->exp);
        assert_int_equal (problems_open (&p), 0);
        s->exp = experiment_read_text ("t.conf", text, strlen (text), &p);
        problems_close (&p);
        free (p.text);
        assert_non_null (s->exp);
        snprintf (text,
                  sizeof (text),
                  "{'op':'create','version':%d,'name':'t','dir':'/','seed':1}",
                  logs[i].version);
        assert_int_equal (apply (s, text), 0);
        assert_int_equal (s->exp->node_gpus, logs[i].node);
        assert_int_equal (experiment_gpus (s->exp), logs[i].all);
        assert_true (s->exp->search.max_seconds == logs[i].seconds);
        sweep_close (s);
    }
}

/* The same reports: by the first rules ceil (4 / 4) + 1 of five results pass,
 * now one.
 */
static void rules_decide (void **state)
{
    static const char *const events[] = {
        BEGIN ("1", "256", "0.5"),
        BEGIN ("2", "256", "0.25"),
        BEGIN ("3", "256", "0.125"),
        BEGIN ("4", "256", "0.75"),
        BEGIN ("5", "256", "0.625"),
        END ("report", "1", "1", ",'length':64,'metric':0.1"),
        END ("report", "2", "1", ",'length':64,'metric':0.4"),
        END ("report", "3", "1", ",'length':64,'metric':0.4"),
        END ("report", "4", "1", ",'length':64,'metric':0.4"),
        END ("report", "5", "1", ",'length':64,'metric':0.2"),
    };

    (void)state;
    for (int version = 1; version <= 2; version++) {
        struct sweep *s = make ("\"m\"",
                                "name = \"stopping_asha\"; max_trials = 9; "
                                "max_length = 256; divisor = 4");
        char text[128];

        snprintf (text,
                  sizeof (text),
                  "{'op':'create','version':%d,'name':'t','dir':'/','seed':1}",
                  version);
        assert_int_equal (apply (s, text), 0);
        for (size_t i = 0; i < sizeof (events) / sizeof (*events); i++)
            assert_int_equal (apply (s, events[i]), 0);
        assert_false (searcher_stops (s->searcher, 1));
        assert_true (searcher_stops (s->searcher, 2));
        assert_int_equal (searcher_stops (s->searcher, 5), version == 2);
        sweep_close (s);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER (late_events_are_harmless),
        IN_FOLDER (plain_states),
        IN_FOLDER (stopped_states),
        IN_FOLDER (nobody_stops_but_the_searcher),
        IN_FOLDER (transitions),
        IN_FOLDER (requests),
        IN_FOLDER (machines),
        IN_FOLDER (spoilers),
        IN_FOLDER (a_bad_trial_is_no_bad_machine),
        IN_FOLDER (front),
        IN_FOLDER (contradictions),
        IN_FOLDER (versions),
        IN_FOLDER (gpus),
        IN_FOLDER (rules_decide),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
