/* SPDX-License-Identifier: Apache-2.0 */
/* Whom to notify, how, and of what (launcher/worker/worker.h). */
#pragma once

#include <stdint.h>

struct notify_settings {
    char *command;
    char *mail;      /* an address */
    char *webhook;   /* file that contains the URL, or "$NAME" for an environment variable */
    char **on;       /* "end", "failure", NULL-terminated; NULL: both */
    char **patterns; /* regular expressions that match lines of a log */
    int64_t timeout; /* seconds, for each of command, mail and webhook */
};
