/* SPDX-License-Identifier: Apache-2.0 */
/* The options and notes of a planned step. */
#include "launcher/env/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void plan_note (struct env_plan *p, const char *fmt, ...)
{
    char line[PLAN_NOTE];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (line, sizeof (line), fmt, ap);
    va_end (ap);
    for (int i = 0; i < p->notes; i++)
        if (!strcmp (p->note[i], line))
            return;
    if (p->notes < PLAN_NOTES)
        memcpy (p->note[p->notes++], line, sizeof (line));
}

const char *plan_text (const struct env_plan *p, enum ask_key key)
{
    const char *value = p->ask->value[key];

    /* how an option without its value arrives */
    return !value || !strcmp (value, "(null)") ? "" : value;
}

int plan_refuse (const struct env_plan *p,
                 enum ask_key key,
                 const char *why,
                 struct slurmdl_error *err)
{
    errno = EINVAL;
    return errorf (
        err, "%.60s: '%.40s': %s", p->ask->where[key], plan_text (p, key), why);
}

/* Of "2", "2-4" (the first) and, if 'typed', "a100:2"; 0: not given. */
int plan_number (struct env_plan *p,
                 enum ask_key key,
                 bool typed,
                 long max,
                 long *n,
                 struct slurmdl_error *err)
{
    const char *value = plan_text (p, key);
    const char *colon = typed ? strrchr (value, ':') : NULL;
    char *end;

    *n = 0;
    if (!*value)
        return 0;
    if (colon)
        value = colon + 1;
    *n = strtol (value, &end, 10);
    if (end != value && *end == '-' && key == ASK_NODES) {
        plan_note (p, "--nodes=%s: as if Slurm gave %ld", value, *n);
        return 0;
    }
    if (end == value || *end || *n < (key == ASK_JOB ? 0 : 1) || *n > max)
        return plan_refuse (p, key, "not a number in the range", err);
    return 0;
}

void plan_destroy (struct env_plan *p)
{
    if (!p)
        return;
    for (long i = 0; p->gtids && i < p->nodes; i++)
        free (p->gtids[i]);
    free (p->gtids);
    free (p->hosts);
    free (p->tasks);
    free (p->task);
    free (p);
}
