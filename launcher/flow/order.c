/* SPDX-License-Identifier: Apache-2.0 */
/* The order of steps, and cycles. */
#include <stdio.h>
#include <stdlib.h>

#include "launcher/flow/flow.h"

static bool is_ready (const struct flow *f, size_t step, const bool *placed, bool others)
{
    const struct flow_step *s = &f->steps[step];

    if (placed[step] || (s->on_exit && others))
        return false;
    for (size_t i = 0; i < s->nlinks; i++)
        if (!placed[s->links[i].step])
            return false;
    return true;
}

/* From a step that was not placed to one that it waits for, until one comes
 * again.
 */
static void say_cycle (const struct flow *f, struct problems *p, const bool *placed)
{
    size_t *seen = calloc (f->n + 1, sizeof (*seen));
    char *text = NULL;
    size_t size, at = 0, n = 0, first = 0;
    FILE *o = open_memstream (&text, &size);

    while (placed[at])
        at++;
    for (; seen && o; n++) {
        for (first = 0; first < n && seen[first] != at; first++)
            ;
        if (first < n)
            break;
        seen[n] = at;
        for (size_t i = 0; i < f->steps[at].nlinks; i++)
            if (!placed[f->steps[at].links[i].step]) {
                at = f->steps[at].links[i].step;
                break;
            }
    }
    for (size_t i = first; seen && o && i < n; i++)
        fprintf (o, "'%s' waits for ", f->steps[seen[i]].name);
    if (seen && o)
        fprintf (o, "'%s'", f->steps[at].name);
    if (o)
        fclose (o);
    problem_at (p, f->steps[at].origin, "a cycle: %s", text);
    free (text);
    free (seen);
}

void flow_order (struct flow *f, struct problems *p)
{
    bool *placed = calloc (f->n + 1, sizeof (*placed));
    size_t n = 0, before, others = f->n;

    f->order = calloc (f->n + 1, sizeof (*f->order));
    for (size_t i = 0; i < f->n; i++)
        others -= f->steps[i].on_exit;
    do {
        before = n;
        for (size_t i = 0; placed && f->order && i < f->n; i++)
            if (is_ready (f, i, placed, n < others)) {
                f->order[n++] = i;
                placed[i] = true;
            }
    } while (n > before);
    if (placed && n < f->n)
        say_cycle (f, p, placed);
    free (placed);
}
