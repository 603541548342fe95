/* SPDX-License-Identifier: Apache-2.0 */
/* The settings in which experiments differ. */
#include "launcher/view/differences.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/keys.h"
#include "launcher/config/values.h"

static char *list_text (char *const *list)
{
    char *text = NULL;
    size_t size;
    FILE *f = list && *list ? open_memstream (&text, &size) : NULL;

    for (size_t i = 0; f && list[i]; i++)
        fprintf (f, "%s%s", i ? " " : "", list[i]);
    if (f)
        fclose (f);
    return text;
}

__attribute__ ((format (printf, 1, 2))) static char *text_of (const char *fmt,
                                                              ...)
{
    char *text;
    va_list ap;
    int n;

    va_start (ap, fmt);
    n = vasprintf (&text, fmt, ap);
    va_end (ap);
    return n < 0 ? NULL : text;
}

static char *bools_text (const struct bools *b)
{
    char text[8 * OBJECTIVES_MAX + 1] = "", *end = text;

    for (int i = 0; i < b->n && i < OBJECTIVES_MAX; i++)
        end =
            stpcpy (stpcpy (end, i ? " " : ""), b->value[i] ? "true" : "false");
    return strdup (text);
}

/* NULL: it has none, or one that is no single text. */
static char *key_text (const struct experiment *e, const struct key *k)
{
    const void *at = (const char *)e + k->offset;
    const char *text;

    switch (k->type) {
    case KEY_STRING:
        return (text = *(char *const *)at) ? strdup (text) : NULL;
    case KEY_TEXT:
        return e->entrypoint ? strdup (e->entrypoint) : list_text (e->argv);
    case KEY_INT:
        return text_of ("%" PRId64, *(const int64_t *)at);
    case KEY_FLOAT:
        return isnan (*(const double *)at) || *(const double *)at == 0
                   ? NULL
                   : text_of ("%.9g", *(const double *)at);
    case KEY_BOOL:
        return strdup (*(const bool *)at ? "true" : "false");
    case KEY_BOOLS:
        return bools_text (at);
    case KEY_LIST:
        return list_text (*(char **const *)at);
    case KEY_GROUPS:
        break;
    }
    return NULL;
}

static char *number_range (const struct param *p)
{
    if (p->type == PARAM_LOG)
        return text_of (
            "log %.4g to %.4g", pow (p->base, p->min), pow (p->base, p->max));
    return text_of (
        "%s%.6g to %.6g", p->type == PARAM_INT ? "int " : "", p->min, p->max);
}

static char *hparam_text (const struct experiment *e, const char *path)
{
    const struct hparam *h = hparam_find (e, path);

    if (!h)
        return NULL;
    if (h->dim < 0 || e->params[h->dim].type == PARAM_CATEGORICAL)
        return json_text (h->values);
    return number_range (&e->params[h->dim]);
}

static bool all_equal (char *const *values, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!values[i] != !values[0]
            || (values[i] && strcmp (values[i], values[0])))
            return false;
    return true;
}

struct collection {
    struct sweep *const *list;
    size_t n;
    char **values;
    void (*f) (const char *key, char *const *values, void *arg);
    void *arg;
};

static void tell (const struct collection *c, const char *key)
{
    if (!all_equal (c->values, c->n))
        c->f (key, c->values, c->arg);
    for (size_t i = 0; i < c->n; i++)
        free (c->values[i]);
}

/* Whether an experiment before the one with number 'k' has it. */
static bool was_told (const struct collection *c, size_t k, const char *path)
{
    for (size_t i = 0; i < k; i++)
        if (hparam_find (c->list[i]->exp, path))
            return true;
    return false;
}

static void tell_hparams (const struct collection *c, size_t k)
{
    const struct experiment *e = c->list[k]->exp;

    for (size_t h = 0; h < e->nhparams; h++) {
        const char *path = e->hparams[h].path;
        if (was_told (c, k, path))
            continue;
        for (size_t i = 0; i < c->n; i++)
            c->values[i] = hparam_text (c->list[i]->exp, path);
        tell (c, path);
    }
}

int differences_each (struct sweep *const *list,
                      size_t n,
                      void (*f) (const char *key,
                                 char *const *values,
                                 void *arg),
                      void *arg)
{
    struct collection c = { list, n, calloc (n + 1, sizeof (char *)), f, arg };

    if (!c.values)
        return -1;
    for (const struct key *k = experiment_keys; k->path; k++) {
        if (!strcmp (k->path, "name"))
            continue;
        for (size_t i = 0; i < n; i++)
            c.values[i] = key_text (list[i]->exp, k);
        tell (&c, k->path);
    }
    for (size_t k = 0; k < n; k++)
        tell_hparams (&c, k);
    free (c.values);
    return 0;
}
