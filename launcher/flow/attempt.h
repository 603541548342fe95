/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command of a step, and take what it has left. */
#pragma once

#include "launcher/flow/values.h"

/* How the command of an attempt has ended. */
struct attempt_end {
    int status;      /* exit status, 128 + signal */
    int told;        /* the signal by which this process was told to end, 0 */
    json_t *outputs; /* of one that succeeded, ... */
    json_t *values;  /* ... else NULL; the caller's */
};

/* Run it in the scope's folder, which is there and empty.  Returns 0, or -1
 * with 'err', the reason for people, if it failed or has not left what it is
 * to leave.
 */
int attempt_run (const struct flow_scope *c, struct attempt_end *end, struct slurmdl_error *err);

/* Signals that end this process are passed on to the command. */
void attempt_signals (void);

/* The folder in which commands run: that of the flow file, or its frozen copy,
 * which is made if it is absent.
 */
int attempt_directory (const struct flow_run *r, char path[PATH_MAX], struct slurmdl_error *err);
