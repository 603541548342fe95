/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the machines on which attempts ended. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Whether it is the machine that fails, if this trial's attempt has just
 * failed there: attempts of several trials did in a row while as many
 * succeeded elsewhere.  Never most of the machines.
 */
bool host_spoils (const struct sweep *s, const char *name, long trial);

/* Note the end of an attempt there. */
void host_succeeds (struct sweep *s, const char *name);
void host_fails (struct sweep *s, const char *name, long trial);

/* Apply an event: a host is excluded, or no more. */
int apply_exclude (struct sweep *s, const struct event *e, struct slurmdl_error *err);
