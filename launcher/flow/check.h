/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks of a flow share. */
#pragma once

#include "launcher/flow/flow.h"

struct flow_checking {
    struct flow *f;
    const config_t *cf;
    struct flow_step *s; /* the one that is checked */
    struct problems *p;
};

/* Where the step has the key 'where', as "after" or "outputs.m"; else where it
 * begins.
 */
struct origin flow_check_origin (const struct flow_checking *c, const char *where);

/* The step that is named in the key 'where'; NULL after a problem. */
const struct flow_step *flow_check_find (const struct flow_checking *c, const char *name,
                                         const char *where);

/* Let a step wait for another one, if it does not do so yet. */
void flow_add_link (struct flow_step *s, size_t to, enum flow_wait wait);

/* Each check adds its problems. */
void flow_check_foreach (struct flow_checking *c);
void flow_check_each (const struct flow_checking *c);
void flow_check_sweep (const struct flow_checking *c);
void flow_check_command (const struct flow_checking *c);
void flow_check_inputs (const struct flow_checking *c);
void flow_check_outputs (struct flow_checking *c);
