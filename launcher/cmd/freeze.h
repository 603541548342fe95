/* SPDX-License-Identifier: Apache-2.0 */
/* Freeze the code of an experiment and run trials from the frozen copy. */
#pragma once

#include "launcher/code/code.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/temporary_folder.h"

/* The code and provenance to store with a new experiment. */
struct code_of_run {
    struct code_files files;
    struct code_archive archive;
    struct frozen_code frozen;
    char *provenance;
};

/* Freeze the code of an experiment that will be created in 'experiments', and set
 * e->code->frozen.  If the code cannot be frozen, print why; trials then run directly
 * from the working directory.  Returns an exit status.
 */
int code_freeze (struct experiment *e, const char *experiments, struct code_of_run *r);
void code_of_run_free (struct code_of_run *r);

/* Print what would be frozen (dl run --dry-run). */
int code_preview (const struct experiment *e, const char *experiments);

/* Unpack the frozen code for the trials unless that is done already, so that the
 * workers do not all do it at once.  Prints errors and returns an exit status.
 */
int code_prepare (const struct sweep *s);

/* Make trials of this process and its children run in the copy of the frozen code.
 * With code.local, unpack a new copy into 'own', which the caller initializes to
 * zero and removes afterwards, even on failure.  Prints errors and returns an exit
 * status.
 */
int code_enter (struct sweep *s, struct scratch *own);

/* Collect what would be frozen from the working directory as it is now; a->data is
 * NULL if that is nothing.  Returns -1 with 'err' on failure.
 */
int code_now (const struct sweep *s, struct code_archive *a, struct slurmdl_error *err);

/* If the code changed and the experiment has no result yet, freeze it again and store
 * the digest for the event "resume"; otherwise store "".  If there are results, only
 * warn that the code changed.  Prints errors and returns an exit status.
 */
int code_mend (const struct sweep *s, char digest[DIGEST_SIZE]);
