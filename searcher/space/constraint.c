/* SPDX-License-Identifier: Apache-2.0 */
/* A constraint: compiled to steps on a stack, operands before operators. */
#include "searcher/space/constraint.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/space/constraint_op.h"

#define COUNT(a) (sizeof (a) / sizeof ((a)[0]))

/* isalpha() and isdigit() would ask the locale. */
#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define NAME    LETTERS DIGITS "."

enum level { CALL, OR, AND, COMPARE, SUM, PRODUCT };

/* A longer word comes before its prefix. */
static const struct word {
    const char *text;
    enum level level;
    enum constraint_op op;
} constraint_words[] = {
    { "||", OR, OP_OR },           { "&&", AND, OP_AND },       { "or", OR, OP_OR },
    { "and", AND, OP_AND },        { "==", COMPARE, OP_EQ },    { "!=", COMPARE, OP_NE },
    { "<=", COMPARE, OP_LE },      { ">=", COMPARE, OP_GE },    { "<", COMPARE, OP_LT },
    { ">", COMPARE, OP_GT },       { "+", SUM, OP_ADD },        { "-", SUM, OP_SUBTRACT },
    { "*", PRODUCT, OP_MULTIPLY }, { "/", PRODUCT, OP_DIVIDE }, { "%", PRODUCT, OP_MODULO },
    { "active", CALL, OP_ACTIVE }, { "abs", CALL, OP_ABS },     { "sqrt", CALL, OP_SQRT },
    { "log", CALL, OP_LOG },       { "log2", CALL, OP_LOG2 },   { "log10", CALL, OP_LOG10 },
    { "exp", CALL, OP_EXP },       { "floor", CALL, OP_FLOOR }, { "ceil", CALL, OP_CEIL },
    { "min", CALL, OP_MIN },       { "max", CALL, OP_MAX },
};

struct constraint_span {
    const char *text;
    size_t n;
};

struct constraint_parser {
    struct constraint c;
    const struct constraint_names *names;
    const char *text;
    const char *at; /* what is not read yet */
    const char *why;
    int error; /* errno for 'why' */
    int column;
    int depth;
};

enum constraint_kind { KIND_NUMBER, KIND_TRUTH, KIND_CHOICE, KIND_TEXT };

/* A choice or a text is one step, which is rewritten once its use is known. */
struct operand {
    enum constraint_kind kind;
    const char *at;
    int step;
    bool compared;               /* by an operator that is not in parentheses */
    struct constraint_span text; /* of a KIND_TEXT, or of true and false */
};

/* The first error is reported.  It ends the text, so that all callers return. */
static void fail_parse_as (struct constraint_parser *p, const char *at, int error, const char *why)
{
    if (p->why)
        return;
    p->why = why;
    p->error = error;
    p->column = at - p->text + 1;
    p->at = "";
}

static void fail_parse (struct constraint_parser *p, const char *at, const char *why)
{
    fail_parse_as (p, at, EINVAL, why);
}

/* Append a step.  After a failure the result is a harmless operand. */
static struct operand emit_step (struct constraint_parser *p, enum constraint_kind kind,
                                 enum constraint_op op, int32_t index, double value)
{
    int i = p->c.used;

    if (i == CONSTRAINT_STEPS)
        fail_parse (p, p->at, "the constraint is too long");
    if (p->why)
        return (struct operand){ 0 };
    p->c.step[p->c.used++] = (struct constraint_step){ op, 0, index, value };
    return (struct operand){ .kind = kind, .step = i };
}

/* ---- the text ---- */

static bool char_in (const char *set, char c)
{
    return c && strchr (set, c);
}

static bool span_is (struct constraint_span s, const char *text)
{
    return strlen (text) == s.n && !memcmp (s.text, text, s.n);
}

/* Where the next token begins. */
static const char *skip_blanks (struct constraint_parser *p)
{
    p->at += strspn (p->at, " \t\r\n");
    return p->at;
}

static bool take_token (struct constraint_parser *p, const char *token)
{
    const char *at = skip_blanks (p);
    size_t n = strlen (token);

    if (strncmp (at, token, n) || (char_in (LETTERS, *token) && char_in (NAME, at[n])))
        return false;
    p->at += n;
    return true;
}

/* Take a name, or quoted text. */
static struct constraint_span take_name_token (struct constraint_parser *p)
{
    struct constraint_span s = { p->at, strspn (p->at, NAME) };
    const char *end = s.text + s.n;

    if (s.n == 0) {
        end = strchr (++s.text, *p->at);
        if (!end) {
            fail_parse (p, p->at, "the quote is not closed");
            return s;
        }
        s.n = end++ - s.text;
    }
    p->at = end;
    return s;
}

/* Length of the number at 's', or 0. strtod() would also accept "0x1" and "inf". */
static size_t read_number (const char *s, double *value)
{
    size_t sign = char_in ("+-", *s), n = sign + strspn (s + sign, DIGITS ".");
    size_t e = n + 1;
    char copy[64], *stop;

    if (n > sign && char_in ("eE", s[n])) {
        e += char_in ("+-", s[e]);
        if (char_in (DIGITS, s[e]))
            n = e + strspn (s + e, DIGITS);
    }
    if (n >= sizeof (copy))
        return 0;
    memcpy (copy, s, n);
    copy[n] = '\0';
    *value = strtod (copy, &stop);
    return !*stop && isfinite (*value) ? n : 0;
}

/* ---- checks of an operand ---- */

/* Where the numbers of the choices of parameter 'i' begin. */
static int find_labels (struct constraint_parser *p, const char *at, int32_t i)
{
    const char *const *labels = p->names->labels[i];
    long count = p->names->nlabels[i];
    struct constraint *c = &p->c;
    int start = c->labels;

    for (int k = 0; k < c->used; k++)
        if (c->step[k].op == OP_LABEL && c->step[k].index == i)
            return c->step[k].value;
    if (count > CONSTRAINT_LABELS - start)
        fail_parse (p, at, "too many choices to calculate with");
    for (long k = 0; !p->why && k < count; k++) {
        size_t n = read_number (labels[k], c->label + c->labels++);
        if (n == 0 || labels[k][n])
            fail_parse (p, at, "a choice of this parameter is not a number");
    }
    return start;
}

static void need_kind (struct constraint_parser *p, enum constraint_kind kind,
                       const struct operand *o)
{
    struct constraint_step *s = p->c.step + o->step;

    if (o->kind == KIND_CHOICE && kind == KIND_NUMBER) {
        s->value = find_labels (p, o->at, s->index);
        s->count = p->why ? 0 : p->names->nlabels[s->index];
        s->op = OP_LABEL;
    } else if (o->kind == KIND_TEXT && char_in (LETTERS, *o->at))
        fail_parse_as (p, o->at, ENOENT, "no such name");
    else if (o->kind == KIND_TEXT)
        fail_parse (p, o->at, "only a categorical parameter can be compared with text");
    else if (o->kind != kind && kind == KIND_TRUTH)
        fail_parse (p, o->at, "expected a comparison");
    else if (o->kind != kind)
        fail_parse (p, o->at, "expected a number");
}

/* Compare a choice with a text.  Returns false if the operands are not one of each. */
static bool match_choice (struct constraint_parser *p, struct operand *a, struct operand *b)
{
    const struct operand *choice = a->kind == KIND_CHOICE ? a : b;
    const struct operand *text = choice == a ? b : a;
    int32_t i = p->c.step[choice->step].index;
    long k = 0;

    if (choice->kind != KIND_CHOICE || !text->text.text)
        return false;
    while (k < p->names->nlabels[i] && !span_is (text->text, p->names->labels[i][k]))
        k++;
    p->c.step[text->step].value = k;
    if (k >= p->names->nlabels[i] && !(p->names->open && p->names->open[i]))
        fail_parse_as (p, text->at, EDOM, "the parameter has no such choice");
    return true;
}

/* Apply 'op', which stands at 'at', to one operand (passed twice) or to two. */
static struct operand emit_operator (struct constraint_parser *p, enum constraint_op op,
                                     const char *at, struct operand a, struct operand b)
{
    bool compare = op >= OP_EQ && op <= OP_GT;
    bool logic = op == OP_NOT || op == OP_AND || op == OP_OR;
    enum constraint_kind kind = logic ? KIND_TRUTH : KIND_NUMBER;
    struct operand result;

    if (compare && a.compared)
        fail_parse (p, at, "comparisons cannot be chained: write a < b && b < c");
    if (!compare || !match_choice (p, &a, &b)) {
        need_kind (p, kind, &a);
        need_kind (p, kind, &b);
    } else if (op > OP_NE)
        fail_parse (p, at, "choices have no order: compare them with == or !=");
    result = emit_step (p, compare ? KIND_TRUTH : kind, op, 0, 0);
    result.at = a.at;
    result.compared = compare;
    return result;
}

/* ---- the grammar ---- */

static struct operand parse_binary (struct constraint_parser *p, enum level level);

static void need_close (struct constraint_parser *p)
{
    if (!take_token (p, ")"))
        fail_parse (p, p->at, "expected an operator or )");
}

static struct operand parse_call (struct constraint_parser *p, struct constraint_span name)
{
    const struct word *w = constraint_words, *end = constraint_words + COUNT (constraint_words);
    int start = p->c.used, n = 1;
    struct operand a;

    while (w < end && (w->level != CALL || !span_is (name, w->text)))
        w++;
    if (w == end) {
        fail_parse (p, name.text, "no function has this name");
        return (struct operand){ 0 };
    }
    a = parse_binary (p, OR);
    for (; take_token (p, ","); n++)
        a = emit_operator (p, w->op, name.text, a, parse_binary (p, OR));
    need_close (p);
    if (n > 1 && w->op < OP_AND)
        fail_parse (p, name.text, "this function takes one value");
    if (n == 1 && w->op >= OP_AND)
        fail_parse (p, name.text, "this function takes two values or more");
    if (w->op != OP_ACTIVE)
        return n > 1 ? a : emit_operator (p, w->op, name.text, a, a);
    if (p->c.used != start + 1 || p->c.step[start].op != OP_PARAM)
        fail_parse (p, a.at, "active() takes the name of a parameter");
    else
        p->c.step[start].op = OP_ACTIVE;
    a.kind = KIND_TRUTH;
    return a;
}

static struct operand parse_name (struct constraint_parser *p)
{
    const char *at = p->at;
    struct constraint_span s = take_name_token (p);
    bool bare = *at != '`';
    size_t i = 0;

    if (bare && (span_is (s, "true") || span_is (s, "false"))) {
        struct operand a = emit_step (p, KIND_TRUTH, OP_NUMBER, 0, *at == 't' ? TRUE : FALSE);
        a.text = s;
        return a;
    }
    if (bare && take_token (p, "("))
        return parse_call (p, s);
    while (i < p->names->n && !span_is (s, p->names->names[i]))
        i++;
    if (i < p->names->n) {
        bool choice = p->names->labels[i];
        return emit_step (p, choice ? KIND_CHOICE : KIND_NUMBER, OP_PARAM, i, 0);
    }
    if (bare && p->names->bare) {
        struct operand a = emit_step (p, KIND_TEXT, OP_NUMBER, 0, 0);
        a.text = s;
        return a;
    }
    fail_parse_as (p, at, ENOENT, "no parameter has this name (text needs quotes)");
    return (struct operand){ 0 };
}

static struct operand parse_number (struct constraint_parser *p)
{
    double value = 0;
    size_t n = read_number (p->at, &value);

    if (!char_in (DIGITS ".", *p->at))
        fail_parse (p, p->at, "expected a value");
    else if (n == 0)
        fail_parse (p, p->at, "not a valid number, or too long or too large");
    else
        p->at += n;
    return emit_step (p, KIND_NUMBER, OP_NUMBER, 0, value);
}

static struct operand primary (struct constraint_parser *p)
{
    const char *at = skip_blanks (p);
    struct operand a;

    if (take_token (p, "(")) {
        a = parse_binary (p, OR);
        need_close (p);
        a.compared = false;
    } else if (char_in ("'\"", *at)) {
        struct constraint_span text = take_name_token (p);
        a = emit_step (p, KIND_TEXT, OP_NUMBER, 0, 0);
        a.text = text;
    } else
        a = char_in (LETTERS "`", *at) ? parse_name (p) : parse_number (p);
    a.at = at;
    return a;
}

/* All recursion passes through here, with few calls in between. */
static struct operand parse_operand (struct constraint_parser *p)
{
    const char *at = skip_blanks (p);
    struct operand a;

    if (++p->depth > CONSTRAINT_DEPTH)
        fail_parse (p, at, "nested too deeply");
    if (take_token (p, "not")) {
        a = parse_binary (p, COMPARE);
        a = emit_operator (p, OP_NOT, at, a, a);
    } else if (take_token (p, "!") || take_token (p, "-")) {
        a = parse_operand (p);
        a = emit_operator (p, *at == '!' ? OP_NOT : OP_NEGATE, at, a, a);
    } else {
        a = primary (p);
        if (take_token (p, "^"))
            a = emit_operator (p, OP_POWER, at, a, parse_operand (p));
    }
    a.at = at;
    p->depth--;
    return a;
}

static const struct word *infix (struct constraint_parser *p, enum level level)
{
    for (size_t i = 0; i < COUNT (constraint_words); i++)
        if (constraint_words[i].level >= level && take_token (p, constraint_words[i].text))
            return constraint_words + i;
    return NULL;
}

static struct operand parse_binary (struct constraint_parser *p, enum level level)
{
    struct operand a = parse_operand (p);

    for (;;) {
        const char *at = skip_blanks (p);
        const struct word *w = infix (p, level);
        if (!w)
            return a;
        a = emit_operator (p, w->op, at, a, parse_binary (p, w->level + 1));
    }
}

const char *constraint_compile (struct constraint *c, const char *text,
                                const struct constraint_names *names, int *column)
{
    struct constraint_parser p = { .names = names, .text = text, .at = text };
    struct operand a;

    if (strlen (text) > CONSTRAINT_TEXT)
        fail_parse (&p, text + CONSTRAINT_TEXT, "the constraint is too long");
    a = parse_binary (&p, OR);
    if (*skip_blanks (&p) == '=')
        fail_parse (&p, p.at, "write == to compare");
    if (*p.at)
        fail_parse (&p, p.at, "expected an operator");
    if (a.kind != KIND_TRUTH)
        fail_parse (&p, a.at, "not a comparison");
    *column = p.column;
    if (p.why)
        errno = p.error;
    else
        *c = p.c;
    return p.why;
}
