/* SPDX-License-Identifier: Apache-2.0 */
/* What a trial does now, or how it ended, as pictures and reports show it. */
#pragma once

#include "launcher/sweep/sweep.h"

enum trial_phase {
    PHASE_COMPLETED,
    PHASE_STOPPED, /* early, by the searcher or by the experiment's end */
    PHASE_RUNNING,
    PHASE_PAUSED,  /* has a result; may be promoted */
    PHASE_WAITING, /* for a worker */
    PHASE_FAILED,
    PHASE_REJECTED,
    TRIAL_PHASES
};
extern const char *const trial_phases[TRIAL_PHASES];

/* A trial whose attempt failed is running again once a worker has claimed the
 * next one, of which the log says nothing: it counts as waiting here.
 */
enum trial_phase trial_phase_of (const struct sweep *s, const struct sweep_trial *t);
