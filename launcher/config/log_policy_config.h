/* SPDX-License-Identifier: Apache-2.0 */
/* Read log_policies from the experiment file. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"
#include "launcher/config/experiment.h"

/* Fill e->policies from log_policies. */
void policies_read (struct experiment *e, config_t *cf, struct problems *p);
void policies_free (struct experiment *e);
