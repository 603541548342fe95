/* SPDX-License-Identifier: Apache-2.0 */
/* The archive of an experiment, shared between experiments with the same code.
 */
#ifndef LAUNCHER_CODE_STORE_H
#define LAUNCHER_CODE_STORE_H

#include "launcher/code/archive.h"

/* Put the archive into the folder of a new experiment, as code.tar.zst.  Beside
 * the experiments, .dl-code/DIGEST has the same file under another name, from
 * which the next experiment with the same code has it, too.
 */
int store_put (const char *dir,
               const struct code_archive *a,
               struct slurmdl_error *err);

/* Read the archive of an experiment.  One that has not this digest is refused:
 * EBADMSG.
 */
int store_get (const char *dir,
               const char *digest,
               struct code_archive *a,
               struct slurmdl_error *err);

/* Remove what no experiment beside 'dir' has any more: that is removed. */
void store_clean (const char *dir);

#endif
