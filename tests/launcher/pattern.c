/* SPDX-License-Identifier: Apache-2.0 */
/* Check metrics in lines of output, suggestions for misspelt words, and placeholders. */
#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/metric_pattern.h"
#include "launcher/config/space.h"
#include "runtime/base/nearest_word.h"
#include "tests/unit.h"

static char found[256];

static int note (const char *name, int64_t step, double value, void *arg)
{
    size_t n = strlen (found);

    snprintf (found + n, sizeof (found) - n, "%s@%lld=%g ", name, (long long)step, value);
    return 0;
}

/* clang-format off */
static const struct {
    const char *pattern, *line, *want;
} lines[] = {
    { "loss={loss}",                    "loss=0.5",                    "loss@1=0.5 " },
    { "loss={loss}",                    "x loss=-1.5e-3, y",           "loss@1=-0.0015 " },
    { "loss={loss}",                    "loss=",                       "" },
    { "loss={loss}",                    "loss=nan",                    "loss@1=nan " },
    { "loss={loss}",                    "loss=-inf",                   "loss@1=-inf " },
    { "loss={loss}",                    "loss=.5",                     "loss@1=0.5 " },
    { "loss={loss}",                    "loss=5.",                     "loss@1=5 " },
    { "step {step}: a={a} b={b}",       "step 12: a=1 b=2",            "a@12=1 b@12=2 " },
    { "({step})/10 (acc|accuracy) {v}", "(3)/10",                      "" },
    { "(acc|accuracy) {v}",             "accuracy 0.9",                "v@1=0.9 " },
    { "[(]{step}[)] {val/loss}",        "(7) 3",                       "val/loss@7=3 " },
    { "\\({step}\\) {loss}",            "(8) 4",                       "loss@8=4 " },
    { "x{2,3} {loss}",                  "xxx 4",                       "loss@1=4 " },
    { "x{2,3} {loss}",                  "x 4",                         "" },
    { "(a={a})?(b={b})?$",              "a=1",                         "a@1=1 " },
    { "loss = {loss}",                  "loss = 0,5",                  "" },
    { "loss = {loss}",                  "loss = -1,234.5",             "" },
    { "loss = {loss}",                  "loss = 3, 4",                 "loss@1=3 " },
    { "loss = {loss}",                  "loss = 0.5,3",                "loss@1=0.5 " },
    { "loss = {loss},",                 "loss = 3,4",                  "loss@1=3 " },
    { "{step},{loss}",                  "3,4",                         "loss@3=4 " },
    { "loss = {loss}",                  "loss = 12abc",                "" },
    { "loss = {loss}",                  "loss = 1e",                   "" },
    { "loss = {loss}",                  "loss = 1e-",                  "" },
    { "loss = {loss}",                  "loss = 0x1F",                 "" },
    { "loss = {loss}",                  "loss = 1.2.3",                "" },
    { "loss = {loss}",                  "loss = 1_000",                "" },
    { "loss = {loss}",                  "loss = 0.5.",                 "loss@1=0.5 " },
    { "loss = {loss}",                  "loss = 93.5%",                "loss@1=93.5 " },
    { "loss = {loss}",                  "loss = 0.5)",                 "loss@1=0.5 " },
    { "loss = {loss}",                  "loss = 1e-3;",                "loss@1=0.001 " },
    { "in {t}s",                        "in 12s",                      "t@1=12 " },
    { "in {t}(s|ms)",                   "in 12ms",                     "t@1=12 " },
    { "loss {loss}.*",                  "loss 1e x",                   "" },
    { "loss {loss}.*",                  "loss 0,5 x",                  "" },
    { "loss.*{loss}",                   "loss 0.35",                   "" },
    { "loss.*{loss}",                   "loss 1e-5",                   "" },
    { "loss.* {loss}",                  "loss 7 0.35",                 "loss@1=0.35 " },
    { "e {step} l {loss}",              "e 1.53 l 4",                  "loss@1=4 " },
    { "e {step} l {loss}",              "e 2.0 l 4",                   "loss@2=4 " },
    { "e {step}/10 l {loss}",           "e 3/10 l 4",                  "loss@3=4 " },
    { "a={a}\\s\\d+",                   "a=1 23",                      "a@1=1 " },
    { "([\\w|-]+)\\s*=\\s*([+-]?\\d*(\\.\\d+)?([Ee][+-]?\\d+)?)", "x a-b=1 c = .5, d= e=2e-1", "a-b@1=1 c@1=0.5 e@1=0.2 " },
    { "\\{metricName: ([\\w|-]+), metricValue: (-?\\d+(\\.\\d+)?)\\}", "{metricName: f1, metricValue: 0.75};", "f1@1=0.75 " },
    { PATTERN_TEXT,                     "loss=1 val/acc=nan loss= 2",  "loss@1=1 val/acc@1=nan loss@2=2 " },
    { PATTERN_TEXT,                     "loss=high = 3",               "high@1=3 " },
    { PATTERN_TEXT,                     "a=12abc b=0,5 c=1e d=2, e=3", "d@1=2 e@1=3 " },
    { PATTERN_JSON,                     "{\"a\": \"0.5\", \"b\": 2, \"c\": [1], \"timestamp\": 3}", "a@1=0.5 b@1=2 " },
    { PATTERN_JSON,                     "{\"step\": 7, \"a\": 1, \"d\": \"x\"}", "a@7=1 " },
    { PATTERN_JSON,                     "{\"step\": 1.5, \"a\": 1}",   "a@1=1 " },
    { PATTERN_JSON,                     "{\"a\": \"12abc\"}",          "" },
    { PATTERN_JSON,                     "{\"a\": ",                    "" },
    { PATTERN_JSON,                     "a=1",                         "" },
};
/* clang-format on */

CASE (patterns_find_numbers)
{
    for (size_t i = 0; i < COUNT (lines); i++) {
        struct pattern *p = pattern_create (lines[i].pattern, NULL);
        assert_non_null (p);
        *found = '\0';
        pattern_match (p, lines[i].line, note, NULL);
        assert_string_equal (found, lines[i].want);
        pattern_destroy (p);
    }
}

CASE (escapes_are_stripped)
{
    static const char *const pairs[][2] = {
        { "acc=\033[1;36m0.15\033[0m", "acc=0.15" },
        { "\033[32mepoch\033[K 1\033[m", "epoch 1" },
        { "\033]0;title\007a=1", "a=1" },
        { "\033]8;;http://x\033\\a=1\033]8;;\033\\", "a=1" },
        { "\033(Ba=\033[38;2;1;2;3m1", "a=1" },
        { "\033[?25la=1\033[2K", "a=1" },
        { "a=1\033", "a=1" },
        { "a=1\033[3", "a=1" },
        { "a=1\033]0;x", "a=1" },
        { "plain [0m", "plain [0m" },
    };

    for (size_t i = 0; i < COUNT (pairs); i++) {
        char line[80];
        strcpy (line, pairs[i][0]);
        line_strip (line);
        assert_string_equal (line, pairs[i][1]);
    }
}

CASE (fractions_count_lines)
{
    struct pattern *p = pattern_create ("e {step} l {loss}", NULL);

    *found = '\0';
    pattern_match (p, "e 0.53 l 3", note, NULL);
    pattern_match (p, "e 1.07 l 2", note, NULL);
    pattern_match (p, "e 2 l 1", note, NULL);
    assert_string_equal (found, "loss@1=3 loss@2=2 loss@3=1 ");
    pattern_destroy (p);
}

CASE (lines_are_steps)
{
    struct pattern *p = pattern_create ("loss {loss}", NULL);

    *found = '\0';
    pattern_match (p, "loss 1", note, NULL);
    pattern_match (p, "other", note, NULL);
    pattern_match (p, "loss 2", note, NULL);
    assert_string_equal (found, "loss@1=1 loss@2=2 ");
    pattern_destroy (p);
}

CASE (bad_patterns)
{
    static const char *const bad[] = { "", "loss", "{step}", "({a}", "{a}*[", NULL };

    for (int i = 0; bad[i]; i++) {
        struct slurmdl_error err = { "" };
        assert_null (pattern_create (bad[i], &err));
        assert_true (*err.text);
    }
}

CASE (nearest_words)
{
    static const char *const words[] = { "run", "resume", "show", "stop", NULL };

    assert_string_equal (nearest_word ("rum", words), "run");
    assert_string_equal (nearest_word ("resmue", words), "resume");
    assert_string_equal (nearest_word ("shop", words), "show");
    assert_string_equal (nearest_word ("sotp", words), "stop");
    assert_null (nearest_word ("zebra", words));
    assert_null (nearest_word ("", words));
}

/* clang-format off */
static const struct {
    const char *text, *want;
    bool quote;
} expansions[] = {
    { "--lr {lr}",              "--lr 0.001",          true },
    { "{opt.name}",             "'it'\\''s \"x\"'",    true },
    { "{opt.name}",             "it's \"x\"",          false },
    { "{length}/{trial}",       "9/2",                 true },
    { "${lr} { x } {}",         "${lr} { x } {}",      true },
    { "a{absent}b",             "ab",                  false },
    { "{absent} {opt.absent}",  "'' ''",               true },
    { "{big} {flag} {list}",    "123456789 true '[1,2]'", true },
    { "{empty}",                "''",                  true },
    { "{lr",                    "{lr",                 true },
};
/* clang-format on */

CASE (placeholders)
{
    json_t *h = json_pack ("{s:f, s:{s:s}, s:i, s:b, s:[i,i], s:s}", "lr", 0.001, "opt", "name",
                           "it's \"x\"", "big", 123456789, "flag", 1, "list", 1, 2, "empty", "");
    json_t *more = json_pack ("{s:i, s:i}", "length", 9, "trial", 2);
    struct experiment exp = { .space = &(struct space){ .nhparams = 0 } };
    const struct command_values v = { &exp, h, more, NULL, NULL };

    for (size_t i = 0; i < COUNT (expansions); i++) {
        char *got = hparams_expand (expansions[i].text, &v, expansions[i].quote);
        assert_string_equal (got, expansions[i].want);
        free (got);
    }
    json_decref (h);
    json_decref (more);
}

/* ---- groups ---- */

/* clang-format off */
static const struct {
    const char *text, *here, *absent; /* with {momentum} and {resume_dir}, and without them */
} groups[] = {
    { "t [--momentum {momentum}] -x",        "t --momentum 0.9 -x",   "t  -x" },
    { "t [--resume {resume_dir}/last.pt]",   "t --resume '/r s'/last.pt", "t " },
    { "[--m={momentum} --r={resume_dir}]",   "--m=0.9 --r='/r s'",    "" },
    { "[-m {momentum}]; t",                  "-m 0.9; t",             "; t" },
    { "(t [-m {momentum}])",                 "(t -m 0.9)",            "(t )" },
    { "t {resume_dir}",                      "t '/r s'",              "t ''" },
    { "[ {momentum} -gt 3 ]",                "[ 0.9 -gt 3 ]",         "[ '' -gt 3 ]" },
    { "[[ {momentum} > 3 ]]",                "[[ 0.9 > 3 ]]",         "[[ '' > 3 ]]" },
    { "ls x[0-9]{momentum}",                 "ls x[0-9]0.9",          "ls x[0-9]''" },
    { "ls [0-9]{momentum}",                  "ls [0-9]0.9",           "ls [0-9]''" },
    { "--list=[{momentum},1]",               "--list=[0.9,1]",        "--list=['',1]" },
    { "[--lr {lr}]",                         "--lr 0.001",            "--lr 0.001" },
    { "[{lr},1]",                            "[0.001,1]",             "[0.001,1]" },
    { "[-a-c]*",                             "[-a-c]*",               "[-a-c]*" },
    { "[a-c]* [--lr",                        "[a-c]* [--lr",          "[a-c]* [--lr" },
    { "\\[-m {momentum}]",                   "\\[-m 0.9]",            "\\[-m '']" },
    { "[-m {momentum}",                      "[-m 0.9",               "[-m ''" },
};
/* clang-format on */

static char *made_folder (void *arg, const char *file)
{
    bool *there = arg;

    if (file)
        assert_string_equal (file, "last.pt");
    return *there ? strdup ("/r s") : NULL;
}

static int join (void *arg, char *word)
{
    char *all = arg;

    strcat (strcat (all, word), "|");
    free (word);
    return 0;
}

CASE (optional_groups)
{
    struct param params[] = { { .when = "opt" } };
    struct hparam hparams[] = { { .path = (char *)"lr", .dim = -1 },
                                { .path = (char *)"momentum", .dim = 0 } };
    struct space space = { .params = params, .nparams = 1, .hparams = hparams, .nhparams = 2 };
    struct experiment exp = { .space = &space };
    json_t *with = json_pack ("{s:f, s:f}", "lr", 0.001, "momentum", 0.9);
    json_t *without = json_pack ("{s:f}", "lr", 0.001);
    bool there[] = { false, true };

    for (size_t i = 0; i < 2 * COUNT (groups); i++) {
        bool has = i % 2;
        const struct command_values v = { &exp, has ? with : without, NULL, made_folder,
                                          &there[has] };
        char words[256] = "";
        char *got = hparams_expand (groups[i / 2].text, &v, true);
        assert_string_equal (got, has ? groups[i / 2].here : groups[i / 2].absent);
        free (got);
        hparams_arguments ("[--m {momentum} -r {resume_dir}]", &v, join, words);
        hparams_arguments ("\\[-m {momentum}]", &v, join, words);
        hparams_arguments ("a {lr}", &v, join, words);
        assert_string_equal (words, has ? "--m|0.9|-r|/r s|[-m 0.9]|a 0.001|" : "[-m ]|a 0.001|");
    }
    json_decref (with);
    json_decref (without);
}

/* The text of a number reads back as the same number. */
CASE (numbers_survive)
{
    static const double numbers[] = { 0.1, 1e-300, 1.0 / 3, 123456.789, 5e-324 };

    for (size_t i = 0; i < COUNT (numbers); i++) {
        json_t *h = json_pack ("{s:f}", "x", numbers[i]);
        char *text = hparams_text (h, "x");
        assert_true (strtod (text, NULL) == numbers[i]);
        free (text);
        json_decref (h);
    }
}

RUN_CASES ()
