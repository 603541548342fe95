/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to tell somebody: a command, a mail, a webhook. */
#pragma once

#include "launcher/config/experiment.h"

struct notice {
    const char *event; /* "end", "failure", "pattern" */
    const char *subject;
    const char *text; /* one line */
    char *json;       /* ASCII, one line */
};

/* By each way that the experiment has; what fails is said on standard error. */
void notice_send (const struct experiment *e, const struct notice *n);
