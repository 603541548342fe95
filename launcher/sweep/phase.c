/* SPDX-License-Identifier: Apache-2.0 */
/* What a trial does now, or how it ended, as pictures and reports show it. */
#include "launcher/sweep/phase.h"

#include "launcher/sweep/states.h"

const char *const trial_phases[TRIAL_PHASES] = {
    "completed", "stopped early", "running", "paused", "waiting", "failed", "rejected",
};

enum trial_phase trial_phase_of (const struct sweep *s, const struct sweep_trial *t)
{
    switch (t->state) {
    case TRIAL_FAILED:
        return PHASE_FAILED;
    case TRIAL_REJECTED:
        return PHASE_REJECTED;
    case TRIAL_OPEN:
        if (sweep_has_ended (s))
            return PHASE_STOPPED;
        return s->state == SWEEP_RUNNING && t->owner ? PHASE_RUNNING : PHASE_WAITING;
    case TRIAL_PAUSED:
        break;
    }
    if (!t->stopped && t->length >= s->exp->search.max_length)
        return PHASE_COMPLETED;
    return t->stopped || sweep_has_ended (s) ? PHASE_STOPPED : PHASE_PAUSED;
}
