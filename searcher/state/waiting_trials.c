/* SPDX-License-Identifier: Apache-2.0 */
/* The trials that wait for their next segment: a first-in, first-out ring. */
#include "searcher/state/state.h"

int32_t *due_trial (const struct searcher *s, int64_t i)
{
    int32_t *ring = searcher_at (s, s->at_due);

    return ring + (s->due_head + i) % s->capacity;
}

/* Usually the trial is the first in the ring. */
void due_remove (struct searcher *s, long trial)
{
    int64_t i = 0;

    while (*due_trial (s, i) != trial)
        i++;
    for (; i > 0; i--)
        *due_trial (s, i) = *due_trial (s, i - 1);
    s->due_head = (s->due_head + 1) % s->capacity;
    s->due--;
    searcher_bracket (s, searcher_trial (s, trial)->bracket)->due--;
}

static void due_add (struct searcher *s, long trial)
{
    struct search_trial *t = searcher_trial (s, trial);

    t->state = TRIAL_DUE;
    *due_trial (s, s->due++) = trial;
    searcher_bracket (s, t->bracket)->due++;
    s->work_open += searcher_segment (s, t);
}

void due_promote (struct searcher *s, long trial)
{
    struct search_trial *t = searcher_trial (s, trial);

    searcher_bracket (s, t->bracket)->rung[t->rung++].promoted++;
    due_add (s, trial);
}

void due_demote (struct searcher *s, long trial)
{
    struct search_trial *t = searcher_trial (s, trial);

    due_remove (s, trial);
    s->work_open -= searcher_segment (s, t);
    searcher_bracket (s, t->bracket)->rung[--t->rung].promoted--;
    t->state = TRIAL_PAUSED;
}

void due_go_on (struct searcher *s, long trial)
{
    struct search_trial *t = searcher_trial (s, trial);

    t->from = t->goal ? t->goal : s->nearlier;
    t->goal = 0;
    due_add (s, trial);
}
