/* SPDX-License-Identifier: Apache-2.0 */
/* The states of an experiment and the requests that lead from one to another.
 */
#include "launcher/sweep/states.h"

#define IN(name) (1u << SWEEP_##name)
#define ENDED    (IN (STOPPED) | IN (KILLED) | IN (COMPLETED) | IN (FAILED) | IN (PARTIAL))

/* clang-format off */
static const struct transition {
    enum event_op op;
    unsigned from;
    enum sweep_state to;
} transitions[] = {
    { EVENT_CREATE,   IN (NEW),                                   SWEEP_RUNNING },
    { EVENT_PAUSE,    IN (RUNNING),                               SWEEP_PAUSED },
    { EVENT_RESUME,   IN (PAUSED),                                SWEEP_RUNNING },
    { EVENT_STOP,     IN (RUNNING) | IN (PAUSED),                 SWEEP_STOPPED },
    { EVENT_KILL,     IN (RUNNING) | IN (PAUSED) | IN (STOPPED),  SWEEP_KILLED },
    { EVENT_END,      IN (RUNNING),                               SWEEP_COMPLETED },
    { EVENT_CONTINUE, ENDED,                                      SWEEP_RUNNING },
    { EVENT_EXPIRE,   IN (RUNNING),                               SWEEP_RUNNING },
};
/* clang-format on */

static const struct transition *find (enum event_op op)
{
    for (size_t i = 0; i < sizeof (transitions) / sizeof (*transitions); i++)
        if (transitions[i].op == op)
            return &transitions[i];
    return NULL;
}

bool sweep_allows (enum sweep_state state, enum event_op op)
{
    const struct transition *t = find (op);

    if (op == EVENT_ARCHIVE)
        return ENDED >> state & 1;
    return !t || (t->from >> state & 1);
}

enum sweep_state sweep_next_state (enum sweep_state state, enum event_op op)
{
    const struct transition *t = find (op);

    return t && (t->from >> state & 1) ? t->to : state;
}

bool sweep_has_ended (const struct sweep *s)
{
    return ENDED >> s->state & 1;
}

const char *sweep_state_name (enum sweep_state state)
{
    static const char *const names[] = {
        "new", "running", "paused", "stopped", "killed", "completed", "failed", "partial",
    };
    return names[state];
}
