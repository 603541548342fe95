/* SPDX-License-Identifier: Apache-2.0 */
/* Check the group "searcher" of an experiment file. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"
#include "launcher/config/experiment.h"

/* Check the group "searcher" and finish e->search. */
void search_check (struct experiment *e, config_t *cf, struct problems *p);
