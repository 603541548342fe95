/* SPDX-License-Identifier: Apache-2.0 */
/* The group "job" of an experiment file. */
#pragma once

#include "launcher/config/experiment.h"

/* The table of RESTART_EXIT_CODE where nobody gives one: 128 and above (signals)
 * begins again, 1 to 127 does not.  Ended by .last 0.
 */
extern const struct exit_range exit_ranges[];

/* "chief", "master" and "launcher" are the chief; "ps", "server", "scheduler" and
 * "evaluator" serve, and never end a job; all others are workers.
 */
bool role_is_chief (const char *name);
bool role_serves (const char *name);

/* Read it, before the rest is checked: it has defaults for other keys. */
void job_settings_read (struct experiment *e, config_t *cf, struct problems *p);

/* Check it, when the rest was. */
void job_settings_check (const struct experiment *e, config_t *cf, struct problems *p);

void job_settings_free (struct job_settings *j);

/* Members of all roles; 0: it has none. */
int64_t job_members (const struct job_settings *j);

/* Of the roles the most that a member has: cores (else those of the experiment) and
 * GPUs.
 */
int64_t job_cpus (const struct experiment *e);
int64_t job_gpus (const struct job_settings *j);
