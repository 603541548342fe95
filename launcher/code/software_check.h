/* SPDX-License-Identifier: Apache-2.0 */
/* Look whether the container and environment of the trials are there. */
#pragma once

#include "launcher/config/diagnostics.h"
#include "launcher/config/experiment.h"
#include "runtime/base/error.h"

/* With 'loads' load what the trials will have, which runs code that the file
 * names, and look for the image; what fails is a line each in 'p'.  With
 * 'local' the runtime must be on this machine, too.
 */
void software_check (struct experiment *e, bool local, bool loads, struct problems *p);

/* Before the first trial of this process: load it, and find out what starts the
 * containers.  Returns -1 with errno, EINVAL for what is not there.
 */
int software_enter (struct experiment *e, struct slurmdl_error *err);
