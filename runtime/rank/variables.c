/* SPDX-License-Identifier: Apache-2.0 */
/* Read and set the variables of a task. */
#include "runtime/rank/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/nearest_word.h"

int variables_text (const struct variables *v, const char *name, char *buf, int size)
{
    *buf = '\0';
    if (v->get (v->arg, name, buf, size) == VARIABLE_COPIED)
        return 0;
    *buf = '\0';
    return -1;
}

long variables_number (const struct variables *v, const char *name)
{
    char text[32];
    char *end;
    long n;

    if (variables_text (v, name, text, sizeof (text)) < 0 || !*text)
        return -1;
    n = strtol (text, &end, 10);
    return *end ? -1 : n;
}

/* Whether the variable is set, however long its value is. */
static bool variables_has (const struct variables *v, const char *name)
{
    char text[8];

    return v->get (v->arg, name, text, sizeof (text)) != VARIABLE_UNSET;
}

void given_begin (struct given *g, const struct variables *v, const char *mark)
{
    g->vars = v;
    g->ours[0] = '\0';
    variables_text (v, mark, g->stale, sizeof (g->stale));
}

/* Slurm's own variables do not count as exported: those of the job may be wrong for
 * this step.
 */
bool given_set (struct given *g, const char *name, const char *value)
{
    size_t used = strlen (g->ours);

    if (variables_has (g->vars, name) && !word_listed (g->stale, name)
        && strncmp (name, "SLURM_", 6))
        return false;
    g->vars->set (g->vars->arg, name, value);
    snprintf (g->ours + used, sizeof (g->ours) - used, "%s%s", used ? "," : "", name);
    return true;
}

void given_end (struct given *g, const char *mark)
{
    g->vars->set (g->vars->arg, mark, g->ours);
}
