/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that replay the decision log share. */
#ifndef LAUNCHER_SWEEP_REPLAY_H
#define LAUNCHER_SWEEP_REPLAY_H

#include "launcher/sweep/sweep.h"

/* Damage that checksums cannot see: events that make no sense. */
int replay_bad (struct slurmdl_error *err, const char *what);

/* Replace a text of the state. */
void replay_text (char **at, const char *text);

/* Note that a segment of a trial has begun (N), or ended (-N). */
int replay_history (struct sweep *s, long what, struct slurmdl_error *err);

long trial_number (const struct sweep *s, const struct trial *t);

/* ---- machines (hosts.c) ---- */

void host_succeeds (struct sweep *s, const char *name);
void host_fails (struct sweep *s, const char *name, long trial);

int apply_exclude (struct sweep *s,
                   const struct event *e,
                   struct slurmdl_error *err);

/* ---- what somebody wishes (wishes.c) ---- */

/* Each returns 1 if it makes no sense, and changes nothing then. */
/* Note who has wished something, and what. */
void replay_deed (struct sweep *s, const struct event *e);

int apply_continue (struct sweep *s,
                    const struct event *e,
                    struct slurmdl_error *err);
int apply_retry (struct sweep *s,
                 const struct event *e,
                 struct slurmdl_error *err);
int apply_submit (struct sweep *s,
                  const struct event *e,
                  struct slurmdl_error *err);
int apply_scale (struct sweep *s,
                 const struct event *e,
                 struct slurmdl_error *err);
int apply_label (struct sweep *s,
                 const struct event *e,
                 struct slurmdl_error *err);
int apply_archive (struct sweep *s,
                   const struct event *e,
                   struct slurmdl_error *err);

#endif
