/* SPDX-License-Identifier: Apache-2.0 */
/* Whom an experiment tells of what (launcher/worker/notify.h). */
#pragma once

#include <stdint.h>

struct notify_settings {
    char *command;
    char *mail;      /* an address */
    char *webhook;   /* a file with the URL, or "$NAME": a variable */
    char **on;       /* "end", "failure", NULL-ended; NULL: both */
    char **patterns; /* expressions for lines of a log */
    int64_t timeout; /* s, of each way */
};
