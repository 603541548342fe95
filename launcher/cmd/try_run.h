/* SPDX-License-Identifier: Apache-2.0 */
/* Run one trial here, in a folder of its own that is gone afterwards. */
#pragma once

#include <sys/types.h>

#include "launcher/sweep/attempt.h"
#include "launcher/sweep/sweep.h"
#include "launcher/trainer/log_socket.h"

struct code_archive;
struct trainer;

struct try_run {
    struct sweep sweep;
    struct sweep_trial *trial;    /* its point and length are the caller's */
    struct trial_attempt attempt; /* the first */
    struct log_socket socket;
    struct trainer *trainer;
    off_t shown; /* of the log */
    int status;  /* as of waitpid(2) */
    double seconds;
};

/* Make the folder in 'above' (NULL: $TMPDIR or /tmp), and the state of an
 * experiment with this trial.  Returns -1 with 'err' set; try_run_close() in
 * any case.
 */
int try_run_open (struct try_run *t, struct experiment *e, long number, const char *above,
                  struct slurmdl_error *err);

/* Unpack the frozen code there, of the folder 'root', which stays the caller's;
 * the trial runs in a working folder of its own.
 */
int try_run_take_code (struct try_run *t, const char *root, const struct code_archive *a,
                       struct slurmdl_error *err);

/* Print the command of the trial, without the shell or the step it runs in. */
void try_run_print_command (const struct try_run *t);

/* Train to attempt.length, with the output on standard output.  SIGINT and
 * SIGTERM ask the trainer to stop, as a preemption would.
 */
int try_run_train (struct try_run *t, struct slurmdl_error *err);
void try_run_close (struct try_run *t);
