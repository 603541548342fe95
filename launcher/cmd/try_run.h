/* SPDX-License-Identifier: Apache-2.0 */
/* Run one trial on this host, in a temporary directory. */
#pragma once

#include <sys/types.h>

#include "launcher/sweep/attempt.h"
#include "launcher/sweep/sweep.h"
#include "launcher/trainer/trainer.h"

struct code_archive;
struct trainer;

struct try_run {
    struct sweep sweep;
    struct sweep_trial *trial;    /* the caller sets its point and length */
    struct trial_attempt attempt; /* the first */
    struct log_socket socket;
    struct trainer *trainer;
    off_t shown; /* bytes of the log already shown */
    int status;  /* as of waitpid(2) */
    double seconds;
};

/* Create the directory in 'above' ($TMPDIR or /tmp if NULL) and the state of an
 * experiment with this one trial.  Returns -1 with 'err' on failure.  Call
 * try_run_close() in every case.
 */
int try_run_open (struct try_run *t, struct experiment *e, long number, const char *above,
                  struct slurmdl_error *err);

/* Unpack the frozen code of the directory 'root' so that the trial runs in its own
 * working directory.  The caller keeps ownership of 'root'.
 */
int try_run_take_code (struct try_run *t, const char *root, const struct code_archive *a,
                       struct slurmdl_error *err);

/* Print the trial's command without the shell or srun that wraps it. */
void try_run_print_command (const struct try_run *t);

/* Train to attempt.length and copy the output to standard output.  On SIGINT or
 * SIGTERM, ask the trainer to stop, as a preemption would.
 */
int try_run_train (struct try_run *t, struct slurmdl_error *err);
void try_run_close (struct try_run *t);
