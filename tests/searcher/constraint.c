/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints: true and false ones, error messages with their columns, and mutated texts. */
#include "searcher/space/constraint.h"
#include "tests/unit.h"

static const char *const batch[] = { "16", "32", "6.4e1" };
static const char *const optimizer[] = { "sgd", "adam", "it's", "-", "" };
static const char *const nesterov[] = { "false", "true" };
static const char *wide[200]; /* 200 numbers; two such parameters are too many */

/* clang-format off */
#define LABELS(a) a, COUNT (a)
#define WORDS(...) LABELS (((const char *const[]){ __VA_ARGS__ }))

static const struct {
    const char *name;
    double x;
    const char *const *labels;
    long n;
} params[] = {
    { "a", 2, NULL, 0 },           { "b", 3, NULL, 0 },
    { "c", 5, NULL, 0 },           { "zero", 0, NULL, 0 },
    { "opt.lr_0", 1e-3, NULL, 0 }, { "like-this", 7, NULL, 0 },
    { "min", 4, NULL, 0 },         { "true", 8, NULL, 0 },
    { "order", 9, NULL, 0 },       { "and", 10, NULL, 0 },
    { "batch", 2, LABELS (batch) }, { "optimizer", 1, LABELS (optimizer) },
    { "quote", 2, LABELS (optimizer) }, { "nesterov", 1, LABELS (nesterov) },
    { "signs", 2, WORDS ("-1", "+1", "-.5e-1", "5.") },
    { "mixed", 0, WORDS ("1", "auto") }, { "hex", 0, WORDS ("0x10") },
    { "huge", 0, WORDS ("1e999") }, { "infinite", 0, WORDS ("inf") },
    { "blank", 0, WORDS ("1 ") }, { "nothing", 0, WORDS ("") },
    { "wide", 199, LABELS (wide) }, { "wide2", 5, LABELS (wide) },
    { "off", NAN, NULL, 0 }, { "offlabel", NAN, LABELS (batch) },
    { "offtext", NAN, LABELS (optimizer) },
    { "above", 3, LABELS (batch) },     /* indexes outside the list of choices */
    { "below", -1, LABELS (batch) }, { "beyond", 1e300, LABELS (batch) },
};
/* clang-format on */

enum { N = COUNT (params) };

static const char *names_of[N];
static const char *const *labels_of[N];
static long nlabels_of[N];
static double point[N];
static const struct constraint_names names = { names_of, labels_of, nlabels_of, N };

static int setup (void **state)
{
    static char text[COUNT (wide)][8];

    for (size_t i = 0; i < COUNT (wide); i++) {
        snprintf (text[i], sizeof (text[i]), "%zu", i);
        wide[i] = text[i];
    }
    for (size_t i = 0; i < N; i++) {
        names_of[i] = params[i].name;
        labels_of[i] = params[i].labels;
        nlabels_of[i] = params[i].n;
        point[i] = params[i].x;
    }
    return 0;
}

static bool holds (const char *text)
{
    struct constraint c;
    int column = -1;
    const char *why = constraint_compile (&c, text, &names, &column);

    if (why)
        fail_msg ("%s: %d: %s", text, column, why);
    assert_int_equal (column, 0);
    return constraint_holds (&c, point);
}

/* clang-format off */
static const char *const truths[] = {
    /* operators; check() also tests each negation */
    "a == 2", "a != 3", "a < b", "a <= b", "a <= 2", "b > a", "b >= a",
    "b >= 3", "a + b == 5", "a - b == -1", "a * b == 6", "a / b == 2 / 3",
    "c % b == 2", "-c % b == -2", "5.5 % 2 == 1.5", "a ^ b == 8",
    "true", "!false", "not false", "true && true", "true and true",
    "true || false", "false or true", "!(true && false)", "!(false || false)",
    /* precedence */
    "1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "7 - 6 / 3 == 5", "1 + 5 % 3 == 3",
    "2 * 3 ^ 2 == 18", "-2 ^ 2 == -4", "(-2) ^ 2 == 4", "2 ^ -1 == .5",
    "2 ^ -2 ^ 2 == 1 / 16", "- - 2 == 2", "2 - -2 == 4", "2--2==4",
    "a + 1 < b + 1", "true || true && false", "(true || true) && true",
    "false && false || true", "!false && true", "!(false && true)",
    "not a == b", "not a == b and b == 3", "not not a == 2", "! !true",
    "!false || false", "not false or true", "true or not a == 2",
    "!(a == b) && not (b < a)",
    /* associativity */
    "10 - 4 - 3 == 3", "16 / 4 / 2 == 2", "2 * 7 % 4 == 2", "7 % 4 * 2 == 6",
    "2 ^ 3 ^ 2 == 512", "(2 ^ 3) ^ 2 == 64",
    /* numbers and blanks */
    "1e3 == 1000", "1E+3==1000", "25e-1 == 2.5", "5. == 5", ".5 == 0.5",
    "1e-400 == 0", "\t(\r\n1 ) ==1 ", "0.1 + 0.2 != 0.3", "007 == 7",
    /* names */
    "opt.lr_0 == 1e-3", "`like-this` == 7", "min == 4", "min(min, 9) == 4",
    "`true` == 8", "order == 9", "and == 10 and and == 10", "`a` == a",
    "a < b or order < 9",
    /* functions */
    "abs(-3) == 3", "abs (a - c) == b", "log(exp(1)) == 1", "log2(8) == 3",
    "log10(1000) == 3", "sqrt(16) == min", "floor(-1.5) == -2",
    "ceil(-1.5) == -1", "min(3, 1, 2) == 1", "max(3, 1, 2) == 3",
    "max(a, b) == b", "-min(1, 2) ^ 2 == -1", "min(max(1, 2), max(3, 4)) == 2",
    "floor(2.7) * 2 == 4", "active(a)", "active(`like-this`)",
    "active(optimizer)", "active( batch )", "!active(off)",
    "not active(offtext)",
    /* choices */
    "optimizer == 'adam'", "'adam' == optimizer", "optimizer != \"sgd\"",
    "\"sgd\" != optimizer", "quote == \"it's\"", "optimizer != '-'",
    "optimizer != ''", "(optimizer) == ('adam')", "not optimizer == 'sgd'",
    "nesterov == true", "true == nesterov", "nesterov != false",
    "nesterov == 'true'", "mixed == '1'", "hex == '0x10'", "nothing == ''",
    /* choices used as numbers */
    "batch == 64", "batch == '6.4e1'", "batch * a == 128", "-batch == -64",
    "batch >= 2 * 32", "sqrt(batch) == 8", "min(batch, batch) == batch",
    "signs == -0.05", "signs - signs == 0", "wide == 199",
    "wide + wide + wide > wide", "batch * batch - 64 * batch == 0",
    "batch == '16' || batch > 63",
    /* infinity */
    "1 / zero > 1e308", "-1 / zero < -1e308", "1e308 * 10 == 1 / zero",
    "log(zero) < 0", "exp(1e9) > 1", "1 / (1 / zero) == 0",
    /* inactive parameters that do not decide the result */
    "true || off > 1", "off > 1 || true", "!(off > 1 && false)",
    "!(false && off > 1)", "!(false and offtext == 'sgd')",
    "!active(off) || off > 1", "active(off) && off > 1 || true",
    /* not a number, but it does not decide the result */
    "true || zero / zero < 1", "zero / zero < 1 || true",
    "!(false && zero / zero < 1)", "zero == 0 || 1 / zero < a",
};

/* An inactive parameter decides, so both the constraint and its negation hold. */
static const char *const unknowns[] = {
    "off == 1", "off != 1", "off < 1 && true", "true && off >= 1",
    "off > 1 || false", "false || off > 1", "!(off == off)", "off + a * 2 > 3",
    "offlabel == 16", "offlabel == '16'", "offtext == 'sgd'",
    "'sgd' != offtext", "offtext != 'adam' && a == 2", "min(1, off) == 1",
    "max(off, 1) == 1", "off ^ 0 == 1", "1 ^ off == 1", "abs(off) > 0",
    "-off > 0", "off * zero / zero == 1", "off > 1 || zero / zero > 1",
};

/* The result is not a number, so neither the constraint nor its negation holds. */
static const char *const broken[] = {
    "zero / zero == 1", "zero / zero != 1", "log(-1) < 0", "sqrt(-1) == 0",
    "(-8) ^ (1 / 3) == -2", "a % zero == 0", "1 / zero - 1 / zero == 0",
    "(zero / zero) ^ 0 == 1", "1 ^ (zero / zero) == 1", "-sqrt(-1) != 0",
    "min(zero / zero, 1) == 1", "max(1, zero / zero) == 1",
    "true && zero / zero == 1", "false || log(-1) == log(-1)",
    "above == 1", "below == 1", "beyond == 1",
    "off > 1 && zero / zero > 1",
};
/* clang-format on */

static void check (const char *const *texts, size_t n, bool is, bool isnt)
{
    for (size_t i = 0; i < n; i++) {
        char text[256];
        snprintf (text, sizeof (text), "!(%s)", texts[i]);
        if (holds (texts[i]) != is)
            fail_msg ("%s", texts[i]);
        if (holds (text) != isnt)
            fail_msg ("%s", text);
    }
}

CASE (test_holds)
{
    check (truths, COUNT (truths), true, false);
    check (unknowns, COUNT (unknowns), true, true);
    check (broken, COUNT (broken), false, false);
}

#define VALUE    "expected a value"
#define OPERATOR "expected an operator"
#define CLOSE    "expected an operator or )"
#define NUMBER   "expected a number"
#define TRUTH    "expected a comparison"
#define RESULT   "not a comparison"
#define CHAIN    "comparisons cannot be chained: write a < b && b < c"
#define PARAM    "no parameter has this name (text needs quotes)"
#define FUNCTION "no function has this name"
#define QUOTE    "the quote is not closed"
#define CHOICE   "the parameter has no such choice"
#define ORDER    "choices have no order: compare them with == or !="
#define LABEL    "a choice of this parameter is not a number"
#define TEXT     "only a categorical parameter can be compared with text"
#define LITERAL  "not a valid number, or too long or too large"
#define ONE      "this function takes one value"
#define TWO      "this function takes two values or more"
#define ACTIVE   "active() takes the name of a parameter"
#define MANY     "too many choices to calculate with"
#define EQUAL    "write == to compare"
#define LONG     "the constraint is too long"
#define DEEP     "nested too deeply"

/* clang-format off */
static const struct {
    const char *text;
    int column;
    const char *why;
} errors[] = {
    { "", 1, VALUE }, { "  \n ", 5, VALUE }, { "a <", 4, VALUE },
    { "a < b && ", 10, VALUE }, { "a or", 5, VALUE },
    { "a ** b == 8", 4, VALUE }, { "+a == 2", 1, VALUE },
    { "a == +2", 6, VALUE }, { "a <> b", 4, VALUE }, { "a === b", 5, VALUE },
    { "\xc3\xa4 == 1", 1, VALUE }, { "()", 2, VALUE },
    { "abs() == 1", 5, VALUE }, { "active()", 8, VALUE }, { "!", 2, VALUE },
    { "min(1,) == 1", 7, VALUE }, { "a == ", 6, VALUE }, { "2 ^", 4, VALUE },
    { "a == 2 b", 8, OPERATOR }, { "a == 2)", 7, OPERATOR },
    { "a & b", 3, OPERATOR }, { "a | b", 3, OPERATOR },
    { "a ! b", 3, OPERATOR }, { "0x10 == 16", 2, OPERATOR },
    { "2a == 1", 2, OPERATOR }, { "1e == 1", 2, OPERATOR },
    { "1e+ == 1", 2, OPERATOR }, { "true 'a'", 6, OPERATOR },
    { "a, b", 2, OPERATOR }, { "a = 2", 3, EQUAL }, { "a =< 2", 3, EQUAL },
    { "(a == 2", 8, CLOSE }, { "(a, b)", 3, CLOSE }, { "(a = 2)", 4, CLOSE },
    { "abs(1 == 1", 11, CLOSE }, { "abs(a b)", 7, CLOSE }, { "a", 1, RESULT },
    { " a + 1", 2, RESULT }, { "'sgd'", 1, RESULT }, { "nesterov", 1, RESULT },
    { "abs(a)", 1, RESULT }, { " (a)", 2, RESULT }, { "a < b < c", 7, CHAIN },
    { "a == b != c", 8, CHAIN }, { "not a < b > c", 11, CHAIN },
    { "true && 1 < 2 < 3", 15, CHAIN }, { "(a < b) < c", 1, NUMBER },
    { "a < (b < c)", 5, NUMBER }, { "-true == 1", 2, NUMBER },
    { "true + 1 == 2", 1, NUMBER }, { "true == true", 1, NUMBER },
    { "active(a) == 1", 1, NUMBER }, { "abs(true) == 1", 5, NUMBER },
    { "2 ^ (1 < 2) == 2", 5, NUMBER }, { "a < not b == c", 5, NUMBER },
    { "1 == !true", 6, NUMBER }, { "a && true", 1, TRUTH },
    { "true && a", 9, TRUTH }, { "!a", 2, TRUTH }, { "not a", 5, TRUTH },
    { "!a == b", 2, TRUTH }, { "true || 1 + a", 9, TRUTH },
    { "nesterov && true", 1, TRUTH }, { "true or (a)", 9, TRUTH },
    { "x == 1", 1, PARAM }, { "optimizer == sgd", 14, PARAM },
    { "`x` == 1", 1, PARAM }, { "like-this == 7", 1, PARAM },
    { "active(x)", 8, PARAM }, { "abs 1 == 1", 1, PARAM }, { "``", 1, PARAM },
    { "a. == 2", 1, PARAM }, { "A == 2", 1, PARAM },
    { "foo(1) == 1", 1, FUNCTION }, { "1 < a(1)", 5, FUNCTION },
    { "true(1)", 5, OPERATOR }, { "`a == 1", 1, QUOTE },
    { "optimizer == 'sgd", 14, QUOTE }, { "optimizer == \"sgd'", 14, QUOTE },
    { "a == 1 && '", 11, QUOTE }, { "optimizer == 'rms'", 14, CHOICE },
    { "'rms' == optimizer", 1, CHOICE }, { "optimizer == 'sg'", 14, CHOICE },
    { "optimizer != 'sgdm'", 14, CHOICE }, { "optimizer == true", 14, CHOICE },
    { "optimizer < 'sgd'", 11, ORDER }, { "'sgd' >= optimizer", 7, ORDER },
    { "optimizer == 1", 1, LABEL }, { "optimizer + 'sgd' == 1", 1, LABEL },
    { "optimizer == quote", 1, LABEL }, { "a == mixed", 6, LABEL },
    { "hex == 16", 1, LABEL }, { "huge > 1", 1, LABEL },
    { "infinite > 1", 1, LABEL }, { "blank == 1", 1, LABEL },
    { "nothing == 0", 1, LABEL }, { "abs(mixed) == 1", 5, LABEL },
    { "batch + 'sgd' == 1", 9, TEXT }, { "a == '2'", 6, TEXT },
    { "'a' == 'b'", 1, TEXT }, { "'a' && true", 1, TEXT }, { "-'a'", 2, TEXT },
    { "abs('x') == 1", 5, TEXT }, { "1.2.3 == 1", 1, LITERAL },
    { "1..2 == 1", 1, LITERAL }, { "1e999 == 1", 1, LITERAL },
    { "1 < .", 5, LITERAL }, { "abs(1, 2) == 1", 1, ONE },
    { "active(a, b)", 1, ONE }, { "min(1) == 1", 1, TWO },
    { "1 < max(a)", 5, TWO }, { "active(1)", 8, ACTIVE },
    { "active(a + 1)", 8, ACTIVE }, { "active(true)", 8, ACTIVE },
    { "active('sgd')", 8, ACTIVE }, { "a > 1 && active(-a)", 17, ACTIVE },
    { "wide + wide2 > 1", 8, MANY },
};
/* clang-format on */

static void check_error (const char *text, int where, const char *why)
{
    static struct constraint c, old;
    int column = -1;
    const char *said;

    memset (&c, 0x5a, sizeof (c));
    memcpy (&old, &c, sizeof (c));
    errno = 0;
    said = constraint_compile (&c, text, &names, &column);
    if (!said || strcmp (said, why) || column != where)
        fail_msg ("%.80s: %d: %s", text, column, said ? said : "accepted");
    assert_int_equal (errno, !strcmp (why, CHOICE) ? EDOM : !strcmp (why, PARAM) ? ENOENT : EINVAL);
    assert_memory_equal (&c, &old, sizeof (c));
}

CASE (test_errors)
{
    for (size_t i = 0; i < COUNT (errors); i++)
        check_error (errors[i].text, errors[i].column, errors[i].why);
}

/* Return 'before' n times, then 'middle', then 'after' n times.  The caller frees it. */
static char *repeat (int n, const char *before, const char *middle, const char *after)
{
    char *text = malloc (n * (strlen (before) + strlen (after)) + strlen (middle) + 1);
    char *at = text;

    assert_non_null (text);
    for (int i = 0; i < n; i++)
        at = stpcpy (at, before);
    at = stpcpy (at, middle);
    for (int i = 0; i < n; i++)
        at = stpcpy (at, after);
    return text;
}

static const struct {
    const char *before, *middle, *after;
    int most;
    int column; /* of the error with one repetition more */
    const char *why;
} limits[] = {
    { "(", "1 == 1", ")", 63, 65, DEEP },        { "!", "false", "", 63, 65, DEEP },
    { "not ", "false", "", 63, 257, DEEP },      { "-", "1 != 2", "", 63, 65, DEEP },
    { "1^", "1 == 1", "", 62, 133, LONG },       { "true && ", "true", "", 63, 517, LONG },
    { "(true && ", "true", ")", 63, 569, DEEP }, /* fills the stack */
    { " ", "true", "", 65531, 65536, LONG },     { "0", "1 == 1", "", 62, 1, LITERAL },
};

CASE (test_limits)
{
    for (size_t i = 0; i < COUNT (limits); i++) {
        const char *b = limits[i].before, *m = limits[i].middle;
        char *text = repeat (limits[i].most, b, m, limits[i].after);
        assert_true (holds (text));
        free (text);
        text = repeat (limits[i].most + 1, b, m, limits[i].after);
        check_error (text, limits[i].column, limits[i].why);
        free (text);
    }
}

CASE (test_bytes)
{
    static const struct constraint_names none = { NULL, NULL, NULL, 0 };
    static struct constraint a, b;
    const char *text = "batch < 64 || optimizer == 'sgd'";
    int column;

    assert_true (constraint_holds (&a, NULL));
    memset (&b, 0xff, sizeof (b));
    assert_null (constraint_compile (&a, text, &names, &column));
    assert_null (constraint_compile (&b, text, &names, &column));
    assert_memory_equal (&a, &b, sizeof (a));
    assert_false (constraint_holds (&b, point));
    assert_null (constraint_compile (&a, "1 < 2", &none, &column));
    assert_true (constraint_holds (&a, NULL));
    assert_string_equal (constraint_compile (&a, "a < 2", &none, &column), PARAM);
}

static uint64_t seed = 88172645463325252u;

static uint64_t draw (uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 11) % below;
}

static const char *any_text (void)
{
    size_t i = draw (COUNT (truths) + COUNT (unknowns) + COUNT (errors));

    if (i < COUNT (truths))
        return truths[i];
    i -= COUNT (truths);
    return i < COUNT (unknowns) ? unknowns[i] : errors[i - COUNT (unknowns)].text;
}

/* Replace a byte by another one of the same class. */
static void change (char *byte)
{
    static const char *const alike[] = { "0123456789", "+-*/%^", "<>=", "abc" };

    for (size_t i = 0; *byte && i < COUNT (alike); i++)
        if (strchr (alike[i], *byte))
            *byte = alike[i][draw (strlen (alike[i]))];
}

/* Insert a byte or a piece of another text into 'text', replacing up to two bytes. */
static void splice_into (char *text, size_t size)
{
    static const char bytes[] = "()+-*/^<>=!&|,.'\"` \t019abc\xc3\x80";
    size_t n = strlen (text), at = draw (n + 1), gone = draw (3);
    const char *piece = any_text ();
    char copy[512];

    strcpy (copy, text + (at + gone < n ? at + gone : n));
    n = draw (2) ? 1 : draw (20);
    piece = n > 1 ? piece + draw (strlen (piece) + 1) : bytes + draw (sizeof (bytes));
    snprintf (text + at, size - at, "%.*s%s", (int)n, piece, copy);
}

static double any_value (void)
{
    static const double odd[] = { NAN, 0, -1, 1e300, -INFINITY, INFINITY };
    size_t i = draw (COUNT (odd) + 6);

    return i < COUNT (odd) ? odd[i] : draw (300);
}

/* Return whether the text compiles, and check that a double negation changes nothing. */
static bool try (const char *mutated)
{
    static struct constraint c, twice;
    char *text = strdup (mutated), more[512];
    int length = strlen (text), column = -1;
    const char *why = constraint_compile (&c, text, &names, &column);
    double x[N];

    free (text);
    assert_true (why ? column >= 1 && column <= length + 1 : column == 0);
    if (why)
        return false;
    snprintf (more, sizeof (more), "!!(%s)", mutated);
    if (constraint_compile (&twice, more, &names, &column))
        twice = c;
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < N; i++)
            x[i] = any_value ();
        assert_int_equal (constraint_holds (&c, x), constraint_holds (&twice, x));
    }
    return true;
}

CASE (test_mutations)
{
    char text[400];
    long good = 0;

    for (long i = 0; i < 200000; i++) {
        snprintf (text, sizeof (text), "%s", any_text ());
        for (int k = draw (5); k > 0; k--)
            change (text + draw (strlen (text) + 1));
        for (int k = draw (4); k > 0; k--)
            splice_into (text, sizeof (text));
        good += try (text);
    }
    assert_in_range (good, 10000, 190000);
}

/* Unquoted words, choices outside the list, and inactive parameters. */
CASE (test_bare)
{
    static const struct {
        const char *text;
        bool holds, is_true;
        const char *why;
    } rows[] = {
        { "optimizer == adam", true, true, NULL },
        { "optimizer != adam || a > b", false, false, NULL },
        { "optimizer == lion", false, false, NULL },
        { "batch == lion", false, false, CHOICE },
        { "off < 1", true, false, NULL },
        { "not off < 1", true, false, NULL },
        { "off < 1 || a == 2", true, true, NULL },
        { "lion < 1", false, false, "no such name" },
    };
    struct constraint_names bare = names;
    bool open[N] = { false };
    struct constraint c;
    int column;

    for (int i = 0; i < N; i++)
        open[i] = !strcmp (names_of[i], "optimizer");
    bare.open = open;
    bare.bare = true;
    for (size_t i = 0; i < COUNT (rows); i++) {
        const char *why = constraint_compile (&c, rows[i].text, &bare, &column);
        if (rows[i].why) {
            assert_string_equal (why, rows[i].why);
            assert_int_equal (errno, strcmp (why, CHOICE) ? ENOENT : EDOM);
        } else {
            assert_null (why);
            assert_int_equal (constraint_holds (&c, point), rows[i].holds);
            assert_int_equal (constraint_is_true (&c, point), rows[i].is_true);
        }
    }
}

int main (void)
{
    return run_cases (setup, NULL);
}
