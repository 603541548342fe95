/* SPDX-License-Identifier: Apache-2.0 */
/* Read an experiment file in YAML. */
#include "launcher/config/syntax.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

/* Limits, because an alias can expand to a lot, and even to the node that contains it. */
enum { DEPTH_MAX = 32, SETTINGS_MAX = 20000, SIZE_MAX_MB = 16 };

/* More nodes than this mean too many settings: each has a name and a value, and the root is one
 * more.
 */
enum { NODES_MAX = 2 * SETTINGS_MAX + 1, DIRECTIVES_MAX = 100 };
static const char too_many[] = "more than 20000 settings";

struct yaml_tree {
    yaml_document_t document;
    struct problems *p;
    int depth;
    long settings;
    bool space; /* among the hyperparameters, which may be null */
};

static int line_of (const yaml_node_t *node)
{
    return (int)node->start_mark.line + 1;
}

static int yaml_wrong (struct yaml_tree *t, const yaml_node_t *node, const char *why)
{
    problem_at (t->p, (struct origin){ line_of (node), NULL }, "%s", why);
    return -1;
}

/* ---- scalars ---- */

static bool is_scalar_word (const char *text, const char *a, const char *b)
{
    return !strcmp (text, a) || !strcmp (text, b);
}

static const char digits[] = "0123456789";
static const char octal[] = "01234567";
static const char hexadecimal[] = "0123456789abcdefABCDEF";

static bool is_all_of (const char *text, const char *set)
{
    return *text && !text[strspn (text, set)];
}

static const char *skip_sign (const char *text)
{
    return text + (*text == '+' || *text == '-');
}

/* Whether plain text is a 64-bit integer: decimal, 0x or 0o. */
static bool is_integer (const char *text, long long *v)
{
    int base = !strncmp (text, "0x", 2) ? 16 : !strncmp (text, "0o", 2) ? 8 : 10;
    const char *from = base == 10 ? text : text + 2;
    const char *set = base == 10 ? digits : base == 8 ? octal : hexadecimal;

    if (!is_all_of (base == 10 ? skip_sign (from) : from, set))
        return false;
    errno = 0;
    *v = strtoll (from, NULL, base);
    return errno == 0;
}

/* Whether plain text is a finite number.  strtod() alone would accept 0x1p3, too. */
static bool is_real (const char *text, double *v)
{
    const char *c = skip_sign (text);
    size_t before = strspn (c, digits);
    size_t after = 0;

    c += before;
    if (*c == '.') {
        after = strspn (c + 1, digits);
        c += 1 + after;
    }
    if (before + after == 0)
        return false;
    if (*c == 'e' || *c == 'E') {
        c = skip_sign (c + 1);
        if (!is_all_of (c, digits))
            return false;
        c += strspn (c, digits);
    }
    *v = strtod (text, NULL);
    return !*c && isfinite (*v);
}

/* Convert .inf and .nan, which JSON lacks, to the spelling of C and Python. */
static const char *infinite (const char *text)
{
    static const char *const names[] = { "inf", "Inf", "INF", "nan", "NaN", "NAN" };
    const char *c = skip_sign (text);

    for (size_t i = 0; *c == '.' && i < sizeof (names) / sizeof (*names); i++)
        if (!strcmp (c + 1, names[i]))
            return i > 2 ? c == text ? "nan" : NULL : *text == '-' ? "-inf" : "inf";
    return NULL;
}

static bool is_null_scalar (const char *text)
{
    return !*text || is_scalar_word (text, "~", "null") || is_scalar_word (text, "Null", "NULL");
}

static bool is_truth (const char *text, bool *v)
{
    *v = is_scalar_word (text, "true", "True") || !strcmp (text, "TRUE");
    return *v || is_scalar_word (text, "false", "False") || !strcmp (text, "FALSE");
}

/* Whether the text is a number in base 60 (1:30:00).  The last digit may have a fraction. */
static bool is_of_base_60 (const char *text)
{
    const char *c = skip_sign (text);
    bool colon = false;

    if (strspn (c, digits) == 0)
        return false;
    c += strspn (c, "0123456789_");
    while (c > text && *c == ':' && strchr (digits, c[1]) && c[1]) {
        size_t n = strspn (c + 1, digits);
        if (n > 2 || (n == 2 && c[1] > '5'))
            return false;
        c += 1 + n;
        colon = true;
    }
    if (colon && *c == '.')
        c += 1 + strspn (c + 1, "0123456789_");
    return colon && !*c;
}

/* What YAML 1.1, and so PyYAML, reads plain text as if YAML 1.2 reads it differently.  Returns NULL
 * if both agree, and for 1e-5: it is a string in YAML 1.1, but all known programs mean the number.
 */
static const char *other_in_1_1 (const char *text)
{
    static const char *const truths[] = { "yes", "Yes", "YES", "no",  "No",  "NO",
                                          "on",  "On",  "ON",  "off", "Off", "OFF" };
    const char *c = skip_sign (text);
    const char *e;
    double v;
    char plain[64];
    size_t n = 0;

    for (size_t i = 0; i < sizeof (truths) / sizeof (*truths); i++)
        if (!strcmp (text, truths[i]))
            return "a boolean";
    if (!strncmp (text, "0o", 2) && is_all_of (text + 2, octal))
        return "a string";
    if ((!strncmp (c, "0b", 2) && is_all_of (c + 2, "01_"))
        || (!strncmp (c, "0x", 2) && (c > text || strchr (c, '_'))
            && is_all_of (c + 2, "0123456789abcdefABCDEF_")))
        return "a number";
    if (*c == '0' && is_all_of (c, "0123456789_") && strlen (c) > 1) {
        if (strpbrk (c, "89"))
            return "a string";
        if (strtoll (c, NULL, 8) != strtoll (c, NULL, 10) || strchr (c, '_'))
            return "an octal number";
    }
    if (is_of_base_60 (text))
        return "a number in base 60";
    e = strpbrk (c, "eE");
    if (!strchr (text, '_') || *c == '_' || !strncmp (c, "._", 2) || strlen (text) >= sizeof (plain)
        || (e && (strchr (e, '_') || !strchr ("+-", e[1]) || !strchr (c, '.'))))
        return NULL;
    for (c = text; *c; c++)
        if (*c != '_')
            plain[n++] = *c;
    plain[n] = '\0';
    return is_real (plain, &v) ? "a number" : NULL;
}

static config_setting_t *add_yaml_setting (config_setting_t *to, const char *name, int type,
                                           const yaml_node_t *node)
{
    config_setting_t *s = config_setting_add (to, name, type);

    if (s)
        s->line = (unsigned)line_of (node);
    return s;
}

/* Add { type = "null"; }, because libconfig has no null. */
static int add_null (config_setting_t *to, const char *name, const yaml_node_t *node)
{
    config_setting_t *s = add_yaml_setting (to, name, CONFIG_TYPE_GROUP, node);

    if (s)
        s = add_yaml_setting (s, "type", CONFIG_TYPE_STRING, node);
    return s && config_setting_set_string (s, "null") ? 0 : -1;
}

/* Whether this tag makes the text a value, with or without quotes. */
static bool has_value_tag (const char *tag)
{
    return tag
           && (is_scalar_word (tag, YAML_NULL_TAG, YAML_BOOL_TAG)
               || is_scalar_word (tag, YAML_INT_TAG, YAML_FLOAT_TAG));
}

static bool is_float (const yaml_node_t *node)
{
    return node->tag && !strcmp ((const char *)node->tag, YAML_FLOAT_TAG);
}

/* Whether a text matches its YAML tag. */
static bool is_as_tagged (const char *text, const char *tag)
{
    long long integer;
    double real;
    bool truth;

    if (!has_value_tag (tag))
        return true;
    if (!strcmp (tag, YAML_NULL_TAG))
        return is_null_scalar (text);
    if (!strcmp (tag, YAML_BOOL_TAG))
        return is_truth (text, &truth);
    return is_integer (text, &integer)
           || (!strcmp (tag, YAML_FLOAT_TAG) && (is_real (text, &real) || infinite (text)));
}

static void note_other (struct yaml_tree *t, const yaml_node_t *node, const char *text)
{
    const char *what = other_in_1_1 (text);
    char ours[48] = "a string";
    long long integer;
    double real;

    if (!what)
        return;
    if (is_integer (text, &integer))
        snprintf (ours, sizeof (ours), "the number %lld", integer);
    else if (is_real (text, &real))
        snprintf (ours, sizeof (ours), "a number");
    note_at (t->p, (struct origin){ line_of (node), NULL },
             "%s is %s, as in YAML 1.2; in YAML 1.1 it is %s", text, ours, what);
}

static int add_scalar (struct yaml_tree *t, config_setting_t *to, const char *name,
                       const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    bool plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE
                 || has_value_tag ((const char *)node->tag);
    config_setting_t *s;
    long long integer;
    double real;
    bool truth;

    if (strlen (text) < node->data.scalar.length)
        return yaml_wrong (t, node, "this text has a NUL byte");
    if (!is_as_tagged (text, (const char *)node->tag))
        return yaml_wrong (t, node, "the value does not match its tag");
    if (plain && t->space && *text && is_null_scalar (text))
        return add_null (to, name, node);
    if (plain && is_null_scalar (text))
        return yaml_wrong (t, node, "a value is missing here");
    if (plain && !has_value_tag ((const char *)node->tag))
        note_other (t, node, text);
    if (plain && is_truth (text, &truth)) {
        s = add_yaml_setting (to, name, CONFIG_TYPE_BOOL, node);
        return s && config_setting_set_bool (s, truth) ? 0 : -1;
    }
    if (plain && !is_float (node) && is_integer (text, &integer)) {
        bool small = integer >= INT_MIN && integer <= INT_MAX;
        s = add_yaml_setting (to, name, small ? CONFIG_TYPE_INT : CONFIG_TYPE_INT64, node);
        return s
                       && (small ? config_setting_set_int (s, (int)integer)
                                 : config_setting_set_int64 (s, integer))
                   ? 0
                   : -1;
    }
    if (plain && is_integer (text, &integer))
        real = (double)integer;
    if (plain && (is_integer (text, &integer) || is_real (text, &real))) {
        s = add_yaml_setting (to, name, CONFIG_TYPE_FLOAT, node);
        return s && config_setting_set_float (s, real) ? 0 : -1;
    }
    if (plain && infinite (text))
        text = infinite (text);
    s = add_yaml_setting (to, name, CONFIG_TYPE_STRING, node);
    return s && config_setting_set_string (s, text) ? 0 : -1;
}

/* ---- mappings and sequences ---- */

static int add_node (struct yaml_tree *t, config_setting_t *to, const char *name,
                     const yaml_node_t *node);

static int add_pair (struct yaml_tree *t, config_setting_t *to, const yaml_node_pair_t *m)
{
    const yaml_node_t *key = yaml_document_get_node (&t->document, m->key);
    const yaml_node_t *value = yaml_document_get_node (&t->document, m->value);
    const char *name;
    int before = t->p->count;
    bool outer = t->space;

    if (!key || !value || key->type != YAML_SCALAR_NODE)
        return key ? yaml_wrong (t, key, "the name of a key must be a word") : -1;
    name = (const char *)key->data.scalar.value;
    if (strlen (name) > 100)
        return yaml_wrong (t, key, "the name of a key is too long");
    if (config_setting_get_member (to, name)) {
        problem_at (t->p, (struct origin){ line_of (key), NULL }, "duplicate setting name '%s'",
                    name);
        return -1;
    }
    t->space |= t->depth == 0 && !strcmp (name, "hyperparameters");
    if (add_node (t, to, name, value) < 0 && t->p->count == before)
        problem_at (t->p, (struct origin){ line_of (key), NULL },
                    "'%s' cannot be the name of a key: letters, digits, '_', "
                    "'-' and '*', a letter first",
                    name);
    t->space = outer;
    return t->p->count > before ? -1 : 0;
}

static int add_pairs (struct yaml_tree *t, config_setting_t *to, const yaml_node_t *node)
{
    int rv = 0;

    for (const yaml_node_pair_t *m = node->data.mapping.pairs.start;
         m < node->data.mapping.pairs.top; m++) {
        if (add_pair (t, to, m) < 0)
            rv = -1;
        if (t->settings > SETTINGS_MAX)
            break;
    }
    return rv;
}

static int add_items (struct yaml_tree *t, config_setting_t *to, const yaml_node_t *node)
{
    for (const yaml_node_item_t *i = node->data.sequence.items.start;
         i < node->data.sequence.items.top; i++)
        if (add_node (t, to, NULL, yaml_document_get_node (&t->document, *i)) < 0)
            return -1;
    return 0;
}

static int add_node (struct yaml_tree *t, config_setting_t *to, const char *name,
                     const yaml_node_t *node)
{
    bool group = node && node->type == YAML_MAPPING_NODE;
    config_setting_t *s;
    int rv;

    if (!node)
        return -1;
    if (++t->settings > SETTINGS_MAX)
        return yaml_wrong (t, node, too_many);
    if (node->type == YAML_SCALAR_NODE)
        return add_scalar (t, to, name, node);
    if (t->depth >= DEPTH_MAX)
        return yaml_wrong (t, node, "nested too deeply");
    if (!(s = add_yaml_setting (to, name, group ? CONFIG_TYPE_GROUP : CONFIG_TYPE_LIST, node)))
        return -1;
    t->depth++;
    rv = group ? add_pairs (t, s, node) : add_items (t, s, node);
    t->depth--;
    return rv;
}

/* ---- the file ---- */

/* Error messages of libyaml, and the likely mistake behind each. */
static const struct hint {
    const char *problem;
    const char *hint;
    bool earlier; /* the mistake is where libyaml's context begins */
} hints[] = {
    { "start any token", "do not indent with tabs; quote a string with such a character", false },
    { "mapping values are not allowed",
      "quote a string that has a colon and a space; or this line is indented too far", false },
    { "expected ':'", "a key is followed by a colon and a space", true },
    { "expected ',' or", "the { or [ of this line is not closed", true },
    { "expected key",
      "quote a string that starts with { or [; or a quotation mark is missing here or above",
      false },
    { "expected '-'", "a list cannot have keys beside its items", false },
};

static int bad_syntax (const yaml_parser_t *parser, struct problems *p)
{
    const char *why = parser->problem ? parser->problem : "syntax error";
    const yaml_mark_t *mark = &parser->problem_mark;
    const char *hint = NULL;

    for (size_t i = 0; !hint && i < sizeof (hints) / sizeof (*hints); i++)
        if (strstr (why, hints[i].problem)) {
            hint = hints[i].hint;
            if (hints[i].earlier && parser->context)
                mark = &parser->context_mark;
        }
    problem_at (p, (struct origin){ (int)mark->line + 1, NULL }, "%s%s%s%s%s%s", why,
                parser->context ? ", " : "", parser->context ? parser->context : "",
                hint ? " (" : "", hint ? hint : "", hint ? ")" : "");
    return -1;
}

static int take_document (config_t *cf, yaml_parser_t *parser, struct yaml_tree *t)
{
    const yaml_node_t *root;
    int rv;

    if (!yaml_parser_load (parser, &t->document))
        return bad_syntax (parser, t->p);
    root = yaml_document_get_root_node (&t->document);
    if (root && root->type == YAML_MAPPING_NODE)
        rv = add_pairs (t, config_root_setting (cf), root);
    else
        rv = root ? yaml_wrong (t, root, "an experiment file has keys and values") : 0;
    yaml_document_delete (&t->document);
    return rv;
}

static int no_more_documents (yaml_parser_t *parser, struct problems *p)
{
    yaml_document_t more;
    const yaml_node_t *root;
    int rv = 0;

    if (!yaml_parser_load (parser, &more))
        return bad_syntax (parser, p);
    if ((root = yaml_document_get_root_node (&more))) {
        problem_at (p, (struct origin){ line_of (root), NULL },
                    "a second document starts here: an experiment is a single document");
        rv = -1;
    }
    yaml_document_delete (&more);
    return rv;
}

static int problem_yaml_unreadable (const char *path, struct problems *p, int e)
{
    problem (p, "%s: cannot read: %s", path, strerror (e));
    errno = e;
    return -1;
}

/* Whether we know the tag.  Check events for it, because yaml_parser_load() returns the same nodes
 * for !!str 5 and 5.
 */
static bool is_read (const yaml_event_t *e)
{
    const char *tag;

    if (e->type == YAML_MAPPING_START_EVENT) {
        tag = (const char *)e->data.mapping_start.tag;
        return !tag || is_scalar_word (tag, YAML_MAP_TAG, "!");
    }
    if (e->type == YAML_SEQUENCE_START_EVENT) {
        tag = (const char *)e->data.sequence_start.tag;
        return !tag || is_scalar_word (tag, YAML_SEQ_TAG, "!");
    }
    if (e->type != YAML_SCALAR_EVENT || !e->data.scalar.tag)
        return true;
    tag = (const char *)e->data.scalar.tag;
    return has_value_tag (tag)
           || (is_scalar_word (tag, YAML_STR_TAG, "!")
               && e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE);
}

static const char *yaml_tag (const yaml_event_t *e)
{
    return (const char *)(e->type == YAML_MAPPING_START_EVENT    ? e->data.mapping_start.tag
                          : e->type == YAML_SEQUENCE_START_EVENT ? e->data.sequence_start.tag
                                                                 : e->data.scalar.tag);
}

static void bad_tag (struct problems *p, const yaml_event_t *e, struct origin origin)
{
    const char *tag = yaml_tag (e);

    if (!strcmp (tag, YAML_STR_TAG) || !strcmp (tag, "!"))
        problem_at (p, origin, "a tag: quote a string");
    else
        problem_at (p, origin, "unsupported tag %s: only plain values are read", tag);
}

static int too_much (struct problems *p, size_t line, const char *why)
{
    problem_at (p, (struct origin){ (int)line + 1, NULL }, "%s", why);
    return -1;
}

/* Check the number of directives ourselves, because libyaml compares each with all before it, and
 * only then reports them.
 */
static int check_directives (FILE *f, struct problems *p)
{
    char *line = NULL;
    size_t size = 0, lines = 0;
    int n = 0;

    while (n <= DIRECTIVES_MAX && getline (&line, &size, f) >= 0) {
        n += *line == '%';
        lines++;
    }
    free (line);
    rewind (f);
    return n > DIRECTIVES_MAX ? too_much (p, lines - 1, "more than 100 lines begin with '%'") : 0;
}

/* libyaml takes minutes for a hundred thousand brackets or keys.  Unlike yaml_parser_load(), a loop
 * over events can stop when there are too many.  It also shows the tags.
 */
static int check_events (FILE *f, struct problems *p)
{
    yaml_parser_t parser;
    yaml_event_t e;
    int depth = 0;
    long nodes = 0;
    bool ends = false;
    bool bad = false;
    int rv = 0;

    if (!yaml_parser_initialize (&parser))
        return problem_yaml_unreadable (p->file, p, ENOMEM);
    yaml_parser_set_input_file (&parser, f);
    while (!ends && rv == 0 && yaml_parser_parse (&parser, &e)) {
        bool begins = e.type == YAML_MAPPING_START_EVENT || e.type == YAML_SEQUENCE_START_EVENT;
        depth += begins;
        depth -= e.type == YAML_MAPPING_END_EVENT || e.type == YAML_SEQUENCE_END_EVENT;
        nodes += begins || e.type == YAML_SCALAR_EVENT || e.type == YAML_ALIAS_EVENT;
        ends = e.type == YAML_STREAM_END_EVENT;
        if (!is_read (&e)) {
            bad = true;
            bad_tag (p, &e, (struct origin){ (int)e.start_mark.line + 1, NULL });
        }
        if (depth > 2 * DEPTH_MAX)
            rv = too_much (p, e.start_mark.line, "nested too deeply");
        else if (nodes > NODES_MAX)
            rv = too_much (p, e.start_mark.line, too_many);
        yaml_event_delete (&e);
    }
    yaml_parser_delete (&parser);
    rewind (f);
    return bad ? -1 : rv;
}

static int read_yaml_file (config_t *cf, FILE *f, struct problems *p)
{
    struct yaml_tree t = { .p = p };
    yaml_parser_t parser;
    int rv;

    if (check_directives (f, p) < 0 || check_events (f, p) < 0)
        return -1;
    if (!yaml_parser_initialize (&parser))
        return problem_yaml_unreadable (p->file, p, ENOMEM);
    yaml_parser_set_input_file (&parser, f);
    rv = take_document (cf, &parser, &t);
    if (rv == 0)
        rv = no_more_documents (&parser, p);
    yaml_parser_delete (&parser);
    return rv;
}

int yaml_read (config_t *cf, const char *path, struct problems *p)
{
    int fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen (fd, "r");
    struct stat st;
    int rv;

    if (!f)
        return problem_yaml_unreadable (path, p, errno);
    if (fstat (fd, &st) < 0 || !S_ISREG (st.st_mode) || st.st_size > (off_t)SIZE_MAX_MB << 20) {
        fclose (f);
        return problem_yaml_unreadable (path, p,
                                        S_ISDIR (st.st_mode)   ? EISDIR
                                        : S_ISREG (st.st_mode) ? EFBIG
                                                               : EINVAL);
    }
    rv = read_yaml_file (cf, f, p);
    fclose (f);
    errno = rv < 0 ? EINVAL : errno;
    return rv;
}
