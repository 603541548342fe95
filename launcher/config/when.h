/* SPDX-License-Identifier: Apache-2.0 */
/* Read for which values a hyperparameter is active, and its default. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"

struct experiment;

/* Read the keys "when" and "default" of all, once the space is known. */
void when_read (struct experiment *e, config_setting_t *group, struct problems *p);
void presets_read (struct experiment *e, config_setting_t *group, struct problems *p);
