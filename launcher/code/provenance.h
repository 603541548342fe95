/* SPDX-License-Identifier: Apache-2.0 */
/* The provenance of an experiment: the facts that are needed to run it again. */
#pragma once

#include "launcher/code/frozen_files.h"

/* Collect the command, the host, git's commit and diff, loaded modules, packages of the
 * entrypoint's Python, and the versions of CUDA and its driver.  Record nothing else of the
 * environment, and leave out facts that take more than seconds to find.  Returns JSON, which the
 * caller frees.
 */
char *provenance_collect (const struct experiment *e, const struct code_files *c);
