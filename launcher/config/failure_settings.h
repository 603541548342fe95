/* SPDX-License-Identifier: Apache-2.0 */
/* What dl does when a trial fails: the retry limits and log_policies. */
#pragma once

#include <libconfig.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/config/diagnostics.h"

struct experiment;

struct failure_settings {
    int64_t max_restarts;
    int64_t max_failed;          /* trials; -1: half of them */
    struct log_policy *policies; /* from log_policies, and the built-in ones */
    size_t npolicies;
};

/* Fill e->failures->policies from log_policies. */
void policies_read (struct experiment *e, config_t *cf, struct problems *p);
void policies_free (struct experiment *e);
