/* SPDX-License-Identifier: Apache-2.0 */
/* Make the folder of a new experiment. */
#pragma once

#include <stddef.h>

#include "launcher/config/experiment.h"
#include "runtime/base/error.h"

/* What the trials run, and where it comes from (e->frozen_code). */
struct frozen_code {
    const struct code_archive *archive; /* NULL: it is not frozen */
    const char *root;
    const char *provenance; /* JSON */
};

/* Make a new experiment from 'e', which stays the caller's: the folder
 * ROOT/NAME-0001 (or the first number that is free) with a copy of the file
 * and the first log entry.  Its path is written to 'dir', the id that its log
 * has to 'id'.
 */
enum { SWEEP_ID_SIZE = 33 };
int sweep_create (const struct experiment *e, const char *root, char *dir, size_t size,
                  char id[SWEEP_ID_SIZE], struct slurmdl_error *err);
