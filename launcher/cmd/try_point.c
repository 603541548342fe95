/* SPDX-License-Identifier: Apache-2.0 */
/* The point of dl try: a random one, or the user's. */
#include "launcher/cmd/try_point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/config/diagnostics.h"
#include "launcher/config/edit.h"
#include "launcher/sys/strings.h"
#include "searcher/searcher.h"

/* A point of a random search: any searcher trains such ones. */
static int sample (const struct experiment *e, double *x)
{
    const struct search_config config = {
        .name = "random",
        .seed = e->seed < 0 ? (uint64_t)time (NULL) : (uint64_t)e->seed,
        .max_trials = 1,
        .max_length = 1,
        .smaller_is_better = true,
        .constraint = e->constraint,
    };
    struct searcher *s = searcher_create (&config, e->params, e->nparams);
    struct search_op op;
    int rv = s && searcher_ask (s, &op, x) == SEARCH_RUN ? 0 : -1;

    searcher_destroy (s);
    return rv;
}

int try_point (const struct experiment *e, bool given, double *x)
{
    const double *last = e->points + (size_t)e->nparams * (size_t)(e->search.npoints - 1);

    if (!given)
        return sample (e, x);
    memcpy (x, last, e->nparams * sizeof (*x));
    return 0;
}

static bool is_value (const char *text)
{
    char *end;

    strtod (text, &end);
    return (*text && !*end) || !strcmp (text, "true") || !strcmp (text, "false")
           || strchr ("\"[({", *text);
}

/* "NAME=VALUE" as --set takes it: a word needs no quotes. */
static char *as_set (const char *arg)
{
    const char *value = strchr (arg, '=') + 1;
    char *text = NULL;

    if (asprintf (&text, is_value (value) ? "%.*s%s" : "%.*s\"%s\"", (int)(value - arg), arg, value)
        < 0)
        return NULL;
    return text;
}

char *try_point_set (char **args, int n)
{
    char **sets = calloc ((size_t)n + 1, sizeof (*sets));
    const struct edit edit = { .sets = sets, .words = "" };
    char *text = NULL;
    char *point = NULL;
    struct problems p;
    config_t cf;

    config_init (&cf);
    for (int i = 0; sets && i < n; i++)
        sets[i] = as_set (args[i]);
    if (sets && problems_open (&p) == 0) {
        edit_apply (&edit, &cf, &p);
        text = p.count ? NULL : edit_text (&cf);
        problems_close (&p);
        fputs (p.text, stderr);
        free (p.text);
    }
    for (char *c = text; c && *c; c++)
        if (*c == '\n')
            *c = ' ';
    if (text && asprintf (&point, "searcher.try_first=({ %s})", text) < 0)
        point = NULL;
    config_destroy (&cf);
    strings_free (sets);
    free (text);
    return point;
}

void try_any_searcher (config_t *cf, const void *arg)
{
    static const char *const kept[] = { "metric", "smaller_is_better", "max_length", "constraint",
                                        NULL };
    config_setting_t *group = config_lookup (cf, "searcher");
    int n = group && config_setting_is_group (group) ? config_setting_length (group) : 0;

    (void)arg;
    for (int i = n - 1; i >= 0; i--) {
        const char *name = config_setting_name (config_setting_get_elem (group, (unsigned)i));
        const char *const *k = kept;
        while (*k && strcmp (*k, name))
            k++;
        if (!*k)
            config_setting_remove_elem (group, (unsigned)i);
    }
}
