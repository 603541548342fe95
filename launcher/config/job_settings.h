/* SPDX-License-Identifier: Apache-2.0 */
/* The group "job" of an experiment file. */
#pragma once

#include "launcher/config/experiment.h"

/* The table of RESTART_EXIT_CODE where nobody gives one: 128 and above (signals)
 * begins again, 1 to 127 does not.  Ended by .last 0.
 */
extern const struct exit_range exit_ranges[];

/* Read it, before the rest is checked: it has defaults for other keys. */
void job_settings_read (struct experiment *e, config_t *cf, struct problems *p);

/* Check it, when the rest was. */
void job_settings_check (const struct experiment *e, config_t *cf, struct problems *p);

void job_settings_free (struct job_settings *j);
