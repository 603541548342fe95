/* SPDX-License-Identifier: Apache-2.0 */
/* dl report: check the page's text, numbers and JSON, and how it thins curves. */
#include "launcher/report/page_data.h"
#include "launcher/report/report.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/sweep.h"
#include "tests/folder.h"
#include "tests/launcher/made.h"

/* ---- texts ---- */

static char *html_of (const char *text)
{
    char *buf = NULL;
    size_t size = 0;
    FILE *f = open_memstream (&buf, &size);

    html_put (f, text);
    fclose (f);
    return buf;
}

static void assert_html (const char *text, const char *wanted)
{
    char *html = html_of (text);

    assert_string_equal (html, wanted);
    free (html);
}

CASE (test_html)
{
    assert_html ("a<b>&\"'`", "a&#60;b&#62;&#38;&#34;&#39;&#96;");
    assert_html ("\xC3\xBC \xE2\x98\x83 \xF0\x9F\x90\x88",
                 "\xC3\xBC \xE2\x98\x83 \xF0\x9F\x90\x88");
    assert_html ("a\x01\x1B[31m\x7F\tb\nc", "a\xEF\xBF\xBD\xEF\xBF\xBD[31m\xEF\xBF\xBD\tb\nc");
    /* truncated, overlong, a surrogate, beyond Unicode, a C1 control */
    assert_html ("\xC3", "\xEF\xBF\xBD");
    assert_html ("\xC0\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD");
    assert_html ("\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    assert_html ("\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    assert_html ("\xC2\x85", "\xEF\xBF\xBD");
}

CASE (test_json_text)
{
    json_t *o = text_to_json ("x\xFF</script>\xC3");
    char *buf = NULL;
    size_t size = 0;
    FILE *f = open_memstream (&buf, &size);
    json_t *list = json_array ();

    json_array_append_new (list, o);
    html_put_json (f, list);
    fclose (f);
    assert_string_equal (buf, "[\"x\xEF\xBF\xBD\\u003c/script>\xEF\xBF\xBD\"]");
    free (buf);
    json_decref (list);
}

static void assert_rounded (double v, int digits, const char *wanted)
{
    json_t *o = rounded_to_json (v, digits);
    char *text = json_dumps (o, JSON_ENCODE_ANY | JSON_REAL_PRECISION (8));

    assert_string_equal (text, wanted);
    free (text);
    json_decref (o);
}

CASE (test_numbers)
{
    assert_rounded (0.1234567, 5, "0.12346");
    assert_rounded (3, 5, "3");
    assert_rounded (NAN, 5, "null");
    assert_rounded (INFINITY, 5, "\"inf\"");
    assert_rounded (-INFINITY, 5, "\"-inf\"");
    assert_rounded (1e300, 5, "1e300");
    assert_rounded (-0.0, 5, "0");
}

/* ---- curves ---- */

CASE (test_thin)
{
    struct trial_curves t = { .n = 5000 };
    struct curve_point to[60];
    bool high = false, low = false;
    size_t n;

    t.list = calloc (t.n, sizeof (*t.list));
    for (size_t i = 0; i < t.n; i++)
        t.list[i] = (struct curve_point){ (int64_t)i / 2, 1, i % 2 };
    t.list[2000].value = 99;
    t.list[3000].value = -99;
    t.list[1000].value = NAN;
    t.list[1001].value = 5; /* another metric */
    n = curve_thin (&t, 0, 60, to);
    assert_true (n <= 60 && n > 20);
    assert_int_equal (to[0].step, 0);
    assert_int_equal (to[n - 1].step, 2499);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal (to[i].name, 0);
        assert_true (i == 0 || to[i].step > to[i - 1].step);
        high = high || to[i].value == 99;
        low = low || to[i].value == -99;
        assert_false (isnan (to[i].value)); /* a bucket with other points drops NaN */
    }
    assert_true (high && low);
    assert_int_equal (curve_thin (&t, 7, 60, to), 0);
    t.n = 1;
    assert_int_equal (curve_thin (&t, 0, 60, to), 1);
    free (t.list);
}

/* ---- the whole page ---- */

static const char conf[] =
    "name = \"t\"; entrypoint = \"true\";\n"
    "searcher = { name = \"asha\"; metric = \"lo</script>ss\"; max_trials = "
    "3;\n"
    "             max_length = 4; divisor = 2; };\n"
    "hyperparameters = { lr = { type = \"log\"; minval = -3; maxval = -1; };\n"
    "    kind = { type = \"categorical\"; vals = (\"<a>\", \"b\", \"d\", \"c\"); };\n"
    "    fixed = 3; };\n";

static struct sweep *make_sweep (void)
{
    struct sweep *s;
    char path[256];
    FILE *f = fopen (in_dir ("t.conf"), "w");

    fputs (conf, f);
    fclose (f);
    assert_int_equal (made_folder (in_dir ("t.conf"), dir, path, sizeof (path)), 0);
    assert_non_null (s = made_open (path));
    return s;
}

static void put (struct sweep *s, struct event e)
{
    struct slurmdl_error err = { "" };

    assert_int_equal (sweep_publish (s, &e, 1, &err), 0);
}

/* One trial has a result at length 1, one failed and one is running. */
static void fill_sweep (struct sweep *s)
{
    double x[3][2] = { { 0.01, 0 }, { 0.1, 1 }, { 0.05, 0 } };
    struct search_op op;
    double asked[2];
    int64_t length = 0;

    for (int i = 0; i < 3; i++) {
        assert_int_equal (searcher_ask (s->searcher, &op, asked), SEARCH_RUN);
        length = op.length;
        x[i][0] = asked[0];
        x[i][1] = asked[1];
        put (s, (struct event){ .op = EVENT_BEGIN,
                                .by = "w_1",
                                .trial = op.trial,
                                .length = op.length,
                                .owner = "n",
                                .x = x[i],
                                .nx = 2 });
    }
    put (s, (struct event){ .op = EVENT_RESULT,
                            .by = "w_10",
                            .trial = 1,
                            .attempt = 1,
                            .length = length,
                            .metric = 0.5,
                            .seconds = 1 });
    put (s, (struct event){ .op = EVENT_FAIL,
                            .by = "w_2",
                            .trial = 2,
                            .attempt = 1,
                            .why = "tried to get 2.5 GiB at 0x7f00",
                            .seconds = 1 });
    put (s, (struct event){ .op = EVENT_EXIT, .by = "w_2", .trial = 2, .why = "x" });
    /* too late: this attempt has already failed */
    put (s, (struct event){ .op = EVENT_RESULT,
                            .by = "w_9",
                            .trial = 2,
                            .attempt = 1,
                            .length = length,
                            .metric = 0.1,
                            .seconds = 1 });
}

static json_int_t number_at (const json_t *o, const char *a, const char *b, size_t i)
{
    return json_integer_value (json_array_get (json_object_get (json_object_get (o, a), b), i));
}

FOLDER_CASE (test_data)
{
    struct slurmdl_error err = { "" };
    struct sweep *s = make_sweep ();
    struct report_data d;
    const json_t *slots, *causes;
    const struct words *kind;
    json_t *o;

    fill_sweep (s);
    if (data_read (&d, &s, 1, NULL, &err) < 0)
        fail_msg ("%s", err.text);
    assert_non_null (o = data_json (&d));
    assert_int_equal (json_integer_value (json_object_get (o, "n")), 3);
    assert_int_equal (d.report.best, 0);
    assert_int_equal (d.params.n, 2); /* a constant is no parameter */
    /* all four choices in file order, although three trials can use at most three */
    kind = &d.params.list[0].table;
    assert_int_equal (kind->n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal (kind->list[i], ((const char *[]){ "<a>", "b", "d", "c" })[i]);
    assert_int_equal (number_at (o, "trial", "state", 0), PHASE_PAUSED);
    assert_int_equal (number_at (o, "trial", "state", 1), PHASE_FAILED);
    assert_int_equal (number_at (o, "trial", "state", 2), PHASE_RUNNING);
    assert_int_equal (d.report.nattempts, 3);
    assert_int_equal (d.report.nresults, 1);
    slots = json_object_get (json_object_get (o, "attempts"), "slots");
    assert_string_equal (json_string_value (json_array_get (slots, 1)), "w_2");
    assert_string_equal (json_string_value (json_array_get (slots, 2)), "w_10");
    causes = json_object_get (json_object_get (o, "attempts"), "causes");
    assert_string_equal (json_string_value (json_array_get (causes, 1)), "tried to get # GiB at #");
    json_decref (o);
    data_free (&d);
    sweep_close (s);
}

/* A lost attempt belongs to its own worker, not to the one that reported it.  The next attempt
 * counts as running as soon as a worker claims it.
 */
FOLDER_CASE (test_lost)
{
    struct slurmdl_error err = { "" };
    struct sweep *s = make_sweep ();
    struct report r = { .n = 0 };
    struct peer_membership *peer;
    const struct report_attempt *a;

    fill_sweep (s);
    put (s, (struct event){ .op = EVENT_LOST,
                            .by = "w_2",
                            .trial = 3,
                            .attempt = 1,
                            .seconds = 1e-3,
                            .why = "its worker is gone",
                            .cause = REASON_NODE_LOST });
    assert_int_equal (report_fill (&r, &s, 1, &err), 0);
    assert_int_equal (r.nattempts, 3);
    a = &r.attempts[2];
    assert_string_equal (r.slots.list[a->slot], "w_1");
    assert_int_equal (a->how, ATTEMPT_LOST);
    assert_false (a->told);
    assert_int_equal (a->reason, REASON_NODE_LOST);
    assert_true (a->end - a->begin <= 1.001e-3);
    report_free (&r);

    assert_non_null (peer = peer_create (s->dir, "w_7", &err));
    assert_int_equal (peer_claim (peer, 3, 2, 4, &err), CLAIM_OURS);
    r = (struct report){ .n = 0 };
    assert_int_equal (report_fill (&r, &s, 1, &err), 0);
    assert_int_equal (r.nattempts, 4);
    a = &r.attempts[3];
    assert_int_equal (a->how, ATTEMPT_RUNNING);
    assert_int_equal (a->number, 2);
    assert_string_equal (r.slots.list[a->slot], "w_7");
    report_free (&r);
    peer_destroy (peer);
    sweep_close (s);
}

/* ---- notes ---- */

enum { NOTED = 48 };

/* Returns the notes on a parameter. 'values' has its values in 48 trials, best trial first. */
static char *notes_of (double *values, bool log_scale, double low, double high)
{
    struct report_param p = {
        .name = "lr", .v = values, .log = log_scale, .low = low, .high = high
    };
    long order[NOTED];
    struct report_data d = {
        .params = { &p, 1 }, .order = order, .nordered = NOTED, .report.best = -1
    };
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream (&text, &size);

    for (long i = 0; i < NOTED; i++)
        order[i] = i;
    notes_put (f, &d);
    fclose (f);
    return text;
}

CASE (test_notes)
{
    static const struct {
        double best[5]; /* NaN: the trial does not have the parameter */
        bool log;
        double low, high;
        const char *end; /* NULL: no note */
    } list[] = {
        { { 0, 0.01, 0.02, 0.5, 0.9 }, false, 0, 1, "lower" },
        { { 1, 0.98, 0.99, 0.5, 0.1 }, false, 0, 1, "upper" },
        { { 0, 0.01, 0.1, 0.5, 0.9 }, false, 0, 1, NULL },
        { { 0, 0, 0, 0, NAN }, false, 0, 1, NULL },
        { { 1e-5, 1e-5, 1.2e-5, 1e-2, 1e-1 }, true, 1e-5, 1e-1, "lower" },
        { { 1e-5, 1e-5, 1e-4, 1e-2, 1e-1 }, true, 1e-5, 1e-1, NULL },
    };

    for (size_t i = 0; i < COUNT (list); i++) {
        double values[NOTED];
        char *text;
        for (size_t k = 0; k < NOTED; k++)
            values[k] = k < 5 ? list[i].best[k] : list[i].high;
        text = notes_of (values, list[i].log, list[i].low, list[i].high);
        if (list[i].end) {
            assert_non_null (strstr (text, "The best 5 trials lie at"));
            assert_non_null (strstr (text, list[i].end));
            assert_non_null (strstr (text, "lr: a wider range may help."));
        } else
            assert_string_equal (text, "");
        free (text);
    }
}

RUN_CASES ()
