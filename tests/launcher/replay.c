/* SPDX-License-Identifier: Apache-2.0 */
/* Replay: late and repeated events change nothing, and the same log always gives the same state. */
#include "launcher/sweep/replay.h"
#include "launcher/config/resources.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "tests/launcher/applied.h"

static bool same (const struct sweep *a, const struct sweep *b)
{
    size_t n = searcher_size (a->searcher);

    return n == searcher_size (b->searcher) && !memcmp (a->searcher, b->searcher, n)
           && a->state == b->state && sweep_best (a) == sweep_best (b) && a->nhistory == b->nhistory
           && a->expired == b->expired;
}

/* ---- the scenarios ---- */

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
    "{'op':'expire','time':4e9}",
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
    { "\"m\"", "name = \"random\"; max_trials = 4; max_hours = 1.0;", plain },
    { "\"m\"", "name = \"gp\"; max_trials = 4; max_hours = 1.0; cost_aware = true;", plain },
    { "\"m\"", "name = \"median\"; max_trials = 4; max_length = 20;", stopping },
    { "(\"m\", \"n\")", "name = \"nsga2\"; max_trials = 4;", several },
};

/* Whether an event, such as those of attempts, may be repeated at any time. */
static bool may_repeat (const char *event)
{
    return !strstr (event, "'begin'") && !strstr (event, "'end'") && !strstr (event, "'pause'")
           && !strstr (event, "'resume'");
}

static void repeat_all (struct sweep *s, const char *const *events, int n)
{
    for (int i = 0; i < n; i++)
        if (may_repeat (events[i]))
            put (s, events[i]);
}

FOLDER_CASE (late_events_are_harmless)
{
    for (size_t k = 0; k < COUNT (scenarios); k++) {
        struct sweep *a = created (scenarios[k].metric, scenarios[k].searcher);
        struct sweep *b = created (scenarios[k].metric, scenarios[k].searcher);
        const char *const *events = scenarios[k].events;
        put (b, create);
        for (int i = 0; events[i]; i++) {
            put (a, events[i]);
            put (b, events[i]);
            repeat_all (b, events, i + 1);
            assert_true (same (a, b));
        }
        sweep_close (a);
        sweep_close (b);
    }
}

static struct sweep *replay (size_t k)
{
    struct sweep *s = created (scenarios[k].metric, scenarios[k].searcher);

    for (const char *const *e = scenarios[k].events; *e; e++)
        put (s, *e);
    return s;
}

FOLDER_CASE (plain_states)
{
    struct sweep *s = replay (0);

    assert_int_equal (s->state, SWEEP_COMPLETED);
    assert_true (s->expired);
    assert_int_equal (sweep_best (s), 1);
    assert_string_equal (trial_state_name (s, sweep_trial (s, 1)), "completed");
    assert_string_equal (trial_state_name (s, sweep_trial (s, 2)), "rejected");
    assert_string_equal (trial_state_name (s, sweep_trial (s, 3)), "failed");
    assert_true (isnan (sweep_trial (s, 4)->metric));
    assert_int_equal (trial_last (sweep_trial (s, 1)).attempt, 2);
    assert_int_equal (trial_milestone (sweep_trial (s, 1), 1), 2);
    assert_int_equal (trial_milestone (sweep_trial (s, 1), 2), 0);
    /* the failed attempt took 10 s, the one with the result 10 s */
    assert_true (sweep_trial (s, 1)->spent == 20);
    assert_true (sweep_trial (s, 1)->seconds == 20);
    assert_true (sweep_trial (s, 3)->seconds == 10);
    /* includes the time of the lost attempt */
    assert_true (sweep_trial (s, 2)->spent == 30);
    sweep_close (s);
}

FOLDER_CASE (stopped_states)
{
    struct sweep *s = replay (2);

    assert_true (sweep_wants_reports (s));
    assert_string_equal (trial_state_name (s, sweep_trial (s, 2)), "stopped early");
    assert_int_equal (sweep_trial (s, 2)->length, 3);
    assert_int_equal (sweep_trial (s, 1)->reported, 7);
    assert_string_equal (trial_state_name (s, sweep_trial (s, 1)), "completed");
    sweep_close (s);
}

/* A result before the end of the segment is ignored unless the searcher stopped the trial. */
FOLDER_CASE (only_the_searcher_stops_trials)
{
    struct sweep *s = created ("\"m\"", scenarios[2].searcher);

    put (s, BEGIN ("1", "20", "0.5"));
    put (s, END ("result", "1", "1", ",'length':3,'metric':1,'stopped':true"));
    assert_int_equal (sweep_trial (s, 1)->state, TRIAL_OPEN);
    assert_int_equal (sweep_trial (s, 1)->over, 0);
    sweep_close (s);
}

/* The new state after each request in each state; "-": the request is ignored. */
FOLDER_CASE (transitions)
{
    static const struct {
        const char *request;
        const char *to[7]; /* indexed by the old state: new, running, paused, ... */
    } rows[] = {
        { "pause", { "-", "paused", "-", "-", "-", "-", "-" } },
        { "resume", { "-", "-", "running", "-", "-", "-", "-" } },
        { "stop", { "-", "stopped", "stopped", "-", "-", "-", "-" } },
        { "kill", { "-", "killed", "killed", "killed", "-", "-", "-" } },
        { "continue", { "-", "-", "-", "running", "running", "running", "running" } },
        { "end", { "-", "completed", "-", "-", "-", "-", "-" } },
        { "expire", { "-", "-", "-", "-", "-", "-", "-" } },
        { "archive", { "-", "-", "-", "-", "-", "-", "-" } },
        { "label", { "-", "-", "-", "-", "-", "-", "-" } },
    };
    struct sweep *s = replay (0);
    char text[64];

    for (size_t i = 0; i < COUNT (rows); i++)
        for (int from = SWEEP_RUNNING; from <= SWEEP_FAILED; from++) {
            bool moves = *rows[i].to[from] != '-';
            bool archives = !strcmp (rows[i].request, "archive");
            s->state = (enum sweep_state)from;
            s->archived = false;
            snprintf (text, sizeof (text), "{'op':'%s'}", rows[i].request);
            put (s, text);
            assert_string_equal (sweep_state_name (s->state),
                                 moves ? rows[i].to[from]
                                       : sweep_state_name ((enum sweep_state)from));
            if (archives)
                assert_int_equal (s->archived, sweep_has_ended (s));
        }
    sweep_close (s);
}

FOLDER_CASE (requests)
{
    struct sweep *s = replay (0);

    put (s, "{'op':'label','label':'a'}");
    put (s, "{'op':'label','label':'b'}");
    put (s, "{'op':'label','label':'a'}");
    assert_string_equal (s->labels[1], "b");
    assert_null (s->labels[2]);
    put (s, "{'op':'label','label':'a','off':true}");
    assert_string_equal (s->labels[0], "b");
    assert_null (s->labels[1]);
    put (s, "{'op':'scale','workers':2,'slots':'7_3 7_4'}");
    assert_int_equal (s->wanted, 2);
    assert_true (sweep_retires (s, "7_4"));
    assert_false (sweep_retires (s, "7_2"));
    put (s, "{'op':'submit','job':'7','first':1,'last':4}");
    assert_int_equal (s->nsubmits, 1);
    assert_string_equal (s->submits[0].job, "7");
    put (s, "{'op':'exclude','host':'n1','why':'ECC'}");
    assert_string_equal (sweep_host (s, "n1")->why, "ECC");
    put (s, "{'op':'exclude','host':'n1','off':true}");
    assert_null (sweep_host (s, "n1")->why);
    sweep_close (s);
}

FOLDER_CASE (front)
{
    static const double values[][2] = {
        { 1, 5 }, { 2, 4 }, { 2, 5 }, { 3, 1 }, { NAN, 0 }, { 1, 5 },
    };
    static const bool want[] = { true, true, false, true, false, true };
    struct sweep *s = make ("(\"m\", \"n\")", scenarios[3].searcher);
    struct sweep_trial trials[6] = { 0 };
    struct milestone made[6];
    bool *got;

    for (int i = 0; i < 6; i++) {
        double copy[2] = { values[i][0], values[i][1] };
        made[i] = (struct milestone){ 1, 1, copy[0], malloc (sizeof (copy)) };
        memcpy (made[i].values, copy, sizeof (copy));
        trials[i].milestones = &made[i];
        trials[i].nmilestones = 1;
    }
    s->nresults = 6;
    s->trials = trials;
    s->ntrials = 6;
    assert_non_null (got = sweep_front (s));
    assert_memory_equal (got, want, sizeof (want));
    free (got);
    for (int i = 0; i < 6; i++)
        free (made[i].values);
    s->trials = NULL;
    s->ntrials = 0;
    sweep_close (s);
}

/* ---- logs that contradict themselves ---- */

static const struct {
    const char *events[4]; /* the last one is rejected */
} wrong[] = {
    /* trial 1 is missing, starts twice, has length 0, is outside the space */
    { { BEGIN ("2", "1", "0.5") } },
    { { BEGIN ("1", "1", "0.5"), BEGIN ("1", "1", "0.5") } },
    { { BEGIN ("1", "0", "0.5") } },
    { { BEGIN ("1", "1", "7") } },
    /* too many dimensions */
    { { "{'op':'begin','trial':1,'length':1,'x':[0.5,0.5],'hparams':{}}" } },
    /* trial 1 was not promoted */
    { { BEGIN ("1", "1", "0.5"), END ("result", "1", "1", ",'length':1,'metric':1"),
        BEGIN ("1", "3", "0.5") } },
};

FOLDER_CASE (contradictions)
{
    for (size_t i = 0; i < COUNT (wrong); i++) {
        struct sweep *s = created ("\"m\"", scenarios[0].searcher);
        for (int k = 0; k < 4 && wrong[i].events[k]; k++) {
            bool last = k == 3 || !wrong[i].events[k + 1];
            assert_int_equal (apply (s, wrong[i].events[k]), last ? -1 : 0);
        }
        sweep_close (s);
    }
}

/* A log of another version is rejected. */
FOLDER_CASE (versions)
{
    static const struct {
        const char *create;
        int rv;
    } logs[] = {
        { "{'op':'create','version':1,'name':'t','dir':'/','seed':1}", 0 },
        { "{'op':'create','version':2,'name':'t','dir':'/','seed':1}", -1 },
        { "{'op':'create','version':5,'name':'t','dir':'/','seed':1}", -1 },
        { "{'op':'create','version':0,'name':'t','dir':'/','seed':1}", -1 },
        { "{'op':'begin','trial':1,'length':1,'x':[0.5]}", -1 },
    };

    for (size_t i = 0; i < COUNT (logs); i++) {
        struct sweep *s = make ("\"m\"", scenarios[0].searcher);
        assert_int_equal (apply (s, logs[i].create), logs[i].rv);
        sweep_close (s);
    }
}

/* ---- when to give up ---- */

#define LOST_20 "llllllllllllllllllll"

/* Attempts that fail, are lost, make progress, or are the last that makes sense (x).  Only after
 * the last of them to give up.
 */
static const struct {
    int max;
    const char *ends;
} given_up[] = {
    { 0, "f" },         { 2, "fff" },          { 2, "ffpffpfff" },
    { 1, "flf" },       { 9, "fx" },           { 0, "px" },
    { 3, LOST_20 "l" }, { 3, LOST_20 "ffff" }, { 3, "fff" LOST_20 "p" LOST_20 "l" },
};

CASE (tries)
{
    for (size_t i = 0; i < COUNT (given_up); i++) {
        struct tries t = { 0 };
        for (const char *e = given_up[i].ends; *e; e++) {
            const struct try_end end = { .last = *e == 'x',
                                         .progress = *e == 'p',
                                         .free = *e == 'l' };
            assert_int_equal (tries_add (&t, end, given_up[i].max), !e[1]);
        }
    }
}

RUN_CASES ()
