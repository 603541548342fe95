/* SPDX-License-Identifier: Apache-2.0 */
/* Read an experiment file in YAML. */
#include "launcher/config/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

/* An alias can stand for much, also for what it is in. */
enum { DEPTH_MAX = 32, SETTINGS_MAX = 20000, SIZE_MAX_MB = 16 };

struct yaml_tree {
    yaml_document_t document;
    struct problems *p;
    int depth;
    long settings;
    bool space; /* among the hyperparameters, of which one may be null */
};

static int line_of (const yaml_node_t *node)
{
    return (int)node->start_mark.line + 1;
}

static int wrong (struct yaml_tree *t, const yaml_node_t *node, const char *why)
{
    problem_at (t->p, (struct origin){ line_of (node), NULL }, "%s", why);
    return -1;
}

/* ---- scalars ---- */

static bool is_one_of (const char *text, const char *a, const char *b)
{
    return !strcmp (text, a) || !strcmp (text, b);
}

/* Plain text that is an integer of 64 bits, decimal or 0x. */
static bool is_integer (const char *text, long long *v)
{
    const char *digits = text + strspn (text, "+-");
    bool hex = !strncmp (digits, "0x", 2);
    char *end;

    if (digits > text + 1 || !*digits
        || (hex ? !digits[2] : digits[strspn (digits, "0123456789")] != '\0'))
        return false;
    errno = 0;
    *v = strtoll (text, &end, hex ? 16 : 10);
    return !*end && errno == 0;
}

static bool is_real (const char *text, double *v)
{
    char *end;

    if (!*text || text[strspn (text, "0123456789+-.eE")]
        || !strpbrk (text, "0123456789"))
        return false;
    *v = strtod (text, &end);
    return !*end && isfinite (*v);
}

static config_setting_t *
add (config_setting_t *to, const char *name, int type, const yaml_node_t *node)
{
    config_setting_t *s = config_setting_add (to, name, type);

    if (s)
        s->line = (unsigned)line_of (node);
    return s;
}

/* { type = "null"; }, as libconfig has none. */
static int
add_null (config_setting_t *to, const char *name, const yaml_node_t *node)
{
    config_setting_t *s = add (to, name, CONFIG_TYPE_GROUP, node);

    if (s)
        s = add (s, "type", CONFIG_TYPE_STRING, node);
    return s && config_setting_set_string (s, "null") ? 0 : -1;
}

static int add_scalar (struct yaml_tree *t,
                       config_setting_t *to,
                       const char *name,
                       const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    bool plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    config_setting_t *s;
    long long integer;
    double real;

    if (strlen (text) < node->data.scalar.length)
        return wrong (t, node, "a byte is zero in this text");
    if (plain && t->space && is_one_of (text, "null", "~"))
        return add_null (to, name, node);
    if (plain && (!*text || is_one_of (text, "null", "~")))
        return wrong (t, node, "a value is missing here");
    if (plain
        && (is_one_of (text, "true", "True")
            || is_one_of (text, "false", "False"))) {
        s = add (to, name, CONFIG_TYPE_BOOL, node);
        return s && config_setting_set_bool (s, (*text | 32) == 't') ? 0 : -1;
    }
    if (plain && is_integer (text, &integer)) {
        bool small = integer >= INT_MIN && integer <= INT_MAX;
        s = add (to, name, small ? CONFIG_TYPE_INT : CONFIG_TYPE_INT64, node);
        return s
                       && (small ? config_setting_set_int (s, (int)integer)
                                 : config_setting_set_int64 (s, integer))
                   ? 0
                   : -1;
    }
    if (plain && is_real (text, &real)) {
        s = add (to, name, CONFIG_TYPE_FLOAT, node);
        return s && config_setting_set_float (s, real) ? 0 : -1;
    }
    s = add (to, name, CONFIG_TYPE_STRING, node);
    return s && config_setting_set_string (s, text) ? 0 : -1;
}

/* ---- mappings and sequences ---- */

static int add_node (struct yaml_tree *t,
                     config_setting_t *to,
                     const char *name,
                     const yaml_node_t *node);

static int
add_pair (struct yaml_tree *t, config_setting_t *to, const yaml_node_pair_t *m)
{
    const yaml_node_t *key = yaml_document_get_node (&t->document, m->key);
    const yaml_node_t *value = yaml_document_get_node (&t->document, m->value);
    const char *name;
    int before = t->p->count;
    bool outer = t->space;

    if (!key || !value || key->type != YAML_SCALAR_NODE)
        return key ? wrong (t, key, "the name of a key must be a word") : -1;
    name = (const char *)key->data.scalar.value;
    if (strlen (name) > 100)
        return wrong (t, key, "the name of a key is too long");
    if (config_setting_get_member (to, name)) {
        problem_at (t->p,
                    (struct origin){ line_of (key), NULL },
                    "duplicate setting name '%s'",
                    name);
        return -1;
    }
    t->space |= t->depth == 0 && !strcmp (name, "hyperparameters");
    if (add_node (t, to, name, value) < 0 && t->p->count == before)
        problem_at (t->p,
                    (struct origin){ line_of (key), NULL },
                    "'%s' cannot be the name of a key: letters, digits, '_', "
                    "'-' and '*', a letter first",
                    name);
    t->space = outer;
    return t->p->count > before ? -1 : 0;
}

static int
add_pairs (struct yaml_tree *t, config_setting_t *to, const yaml_node_t *node)
{
    int rv = 0;

    for (const yaml_node_pair_t *m = node->data.mapping.pairs.start;
         m < node->data.mapping.pairs.top;
         m++)
        if (add_pair (t, to, m) < 0)
            rv = -1;
    return rv;
}

static int
add_items (struct yaml_tree *t, config_setting_t *to, const yaml_node_t *node)
{
    for (const yaml_node_item_t *i = node->data.sequence.items.start;
         i < node->data.sequence.items.top;
         i++)
        if (add_node (t, to, NULL, yaml_document_get_node (&t->document, *i))
            < 0)
            return -1;
    return 0;
}

static int add_node (struct yaml_tree *t,
                     config_setting_t *to,
                     const char *name,
                     const yaml_node_t *node)
{
    bool group = node && node->type == YAML_MAPPING_NODE;
    config_setting_t *s;
    int rv;

    if (!node)
        return -1;
    if (++t->settings > SETTINGS_MAX)
        return wrong (t, node, "more than 20000 settings");
    if (node->type == YAML_SCALAR_NODE)
        return add_scalar (t, to, name, node);
    if (t->depth >= DEPTH_MAX)
        return wrong (t, node, "nested too deeply");
    if (!(s = add (
              to, name, group ? CONFIG_TYPE_GROUP : CONFIG_TYPE_LIST, node)))
        return -1;
    t->depth++;
    rv = group ? add_pairs (t, s, node) : add_items (t, s, node);
    t->depth--;
    return rv;
}

/* ---- the file ---- */

/* libyaml's problems, and the mistake behind each. */
static const struct hint {
    const char *problem;
    const char *hint;
    bool earlier; /* it is where the context begins */
} hints[] = {
    { "start any token",
      "a tab cannot indent; a text with such a character stands in quotes",
      false },
    { "mapping values are not allowed",
      "a text with a colon and a blank stands in quotes; or this line is "
      "indented too far",
      false },
    { "expected ':'",
      "behind the name of a key stand a colon and a blank",
      true },
    { "expected ',' or", "the { or [ of this line is not closed", true },
    { "expected key",
      "a text that begins with { or [ stands in quotes; or a quotation mark "
      "is missing here or above",
      false },
    { "expected '-'", "a list has no names of keys beside its items", false },
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
    problem_at (p,
                (struct origin){ (int)mark->line + 1, NULL },
                "%s%s%s%s%s%s",
                why,
                parser->context ? ", " : "",
                parser->context ? parser->context : "",
                hint ? " (" : "",
                hint ? hint : "",
                hint ? ")" : "");
    return -1;
}

static int
take_document (config_t *cf, yaml_parser_t *parser, struct yaml_tree *t)
{
    const yaml_node_t *root;
    int rv;

    if (!yaml_parser_load (parser, &t->document))
        return bad_syntax (parser, t->p);
    root = yaml_document_get_root_node (&t->document);
    if (root && root->type == YAML_MAPPING_NODE)
        rv = add_pairs (t, config_root_setting (cf), root);
    else
        rv = root ? wrong (t, root, "an experiment file has keys and values")
                  : 0;
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
        problem_at (p,
                    (struct origin){ line_of (root), NULL },
                    "a second document begins here: an experiment is one");
        rv = -1;
    }
    yaml_document_delete (&more);
    return rv;
}

static int cannot_read (const char *path, struct problems *p, int e)
{
    problem (p, "%s: cannot read: %s", path, strerror (e));
    errno = e;
    return -1;
}

/* libyaml takes minutes for a hundred thousand brackets: its events stop where
 * they become too many, yaml_parser_load() does not.
 */
static int check_depth (FILE *f, struct problems *p)
{
    yaml_parser_t parser;
    yaml_event_t e;
    int depth = 0;
    bool ends = false;

    if (!yaml_parser_initialize (&parser))
        return cannot_read (p->file, p, ENOMEM);
    yaml_parser_set_input_file (&parser, f);
    while (!ends && depth <= 2 * DEPTH_MAX && yaml_parser_parse (&parser, &e)) {
        depth += e.type == YAML_MAPPING_START_EVENT
                 || e.type == YAML_SEQUENCE_START_EVENT;
        depth -= e.type == YAML_MAPPING_END_EVENT
                 || e.type == YAML_SEQUENCE_END_EVENT;
        ends = e.type == YAML_STREAM_END_EVENT;
        yaml_event_delete (&e);
    }
    if (depth > 2 * DEPTH_MAX)
        problem_at (p,
                    (struct origin){ (int)parser.mark.line + 1, NULL },
                    "nested too deeply");
    yaml_parser_delete (&parser);
    rewind (f);
    return depth > 2 * DEPTH_MAX ? -1 : 0;
}

static int read_file (config_t *cf, FILE *f, struct problems *p)
{
    struct yaml_tree t = { .p = p };
    yaml_parser_t parser;
    int rv;

    if (check_depth (f, p) < 0)
        return -1;
    if (!yaml_parser_initialize (&parser))
        return cannot_read (p->file, p, ENOMEM);
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
        return cannot_read (path, p, errno);
    if (fstat (fd, &st) < 0 || !S_ISREG (st.st_mode)
        || st.st_size > (off_t)SIZE_MAX_MB << 20) {
        fclose (f);
        return cannot_read (path,
                            p,
                            S_ISDIR (st.st_mode)   ? EISDIR
                            : S_ISREG (st.st_mode) ? EFBIG
                                                   : EINVAL);
    }
    rv = read_file (cf, f, p);
    fclose (f);
    errno = rv < 0 ? EINVAL : errno;
    return rv;
}
