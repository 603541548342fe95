/* SPDX-License-Identifier: Apache-2.0 */
/* The frozen code of an experiment, for those that start something. */
#pragma once

#include "launcher/code/archive.h"
#include "launcher/code/frozen_files.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/temporary_folder.h"

/* What a new experiment takes along. */
struct code_of_run {
    struct code_files files;
    struct code_archive archive;
    struct frozen_code frozen;
    char *provenance;
};

/* Freeze the code of an experiment that will be in the folder 'experiments',
 * and set e->frozen_code; where that cannot be, a line says so, and the trials
 * run what is in the folder.  Returns an exit status.
 */
int code_freeze (struct experiment *e, const char *experiments, struct code_of_run *r);
void code_of_run_free (struct code_of_run *r);

/* Say what would be frozen (dl run --dry-run). */
int code_preview (const struct experiment *e, const char *experiments);

/* Make the copy of the frozen code that the trials run, if it is absent, before
 * many workers would each do that.  Returns an exit status, after a line.
 */
int code_prepare (const struct sweep *s);

/* Let trials of this process, or of its children, run the frozen code: the
 * folder of the trials becomes that of its copy; with code.local a new one in
 * 'own', which the caller has zeroed and removes in any case.  Returns an exit
 * status, after a line.
 */
int code_enter (struct sweep *s, struct scratch *own);

/* What would be frozen of an experiment's folder as it is now; a->data is NULL
 * if nothing would.  Returns -1 with 'err'.
 */
int code_now (const struct sweep *s, struct code_archive *a, struct slurmdl_error *err);

/* Of an experiment that has no result yet: freeze its code again if that has
 * changed, and write the digest for the event "resume"; "": it has not.  If
 * there are results, a line says that it has changed.  Returns an exit status,
 * after a line.
 */
int code_mend (const struct sweep *s, char digest[DIGEST_SIZE]);
