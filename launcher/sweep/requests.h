/* SPDX-License-Identifier: Apache-2.0 */
/* Replay what users request of an experiment. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Note who has requested something, and what. */
void request_note (struct sweep *s, const struct event *e);

/* Apply a request.  Each returns 1 if it makes no sense, and changes nothing
 * then; -1 if out of memory.
 */
int apply_pause (struct sweep *s, const struct event *e, struct slurmdl_error *err);
int apply_resume (struct sweep *s, const struct event *e, struct slurmdl_error *err);
int apply_continue (struct sweep *s, const struct event *e, struct slurmdl_error *err);
int apply_retry (struct sweep *s, const struct event *e, struct slurmdl_error *err);
int apply_submit (struct sweep *s, const struct event *e, struct slurmdl_error *err);
int apply_scale (struct sweep *s, const struct event *e, struct slurmdl_error *err);
int apply_label (struct sweep *s, const struct event *e, struct slurmdl_error *err);
int apply_archive (struct sweep *s, const struct event *e, struct slurmdl_error *err);

/* Whether the worker of 'slot' is to end. */
bool sweep_retires (const struct sweep *s, const char *slot);
