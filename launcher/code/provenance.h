/* SPDX-License-Identifier: Apache-2.0 */
/* Where an experiment comes from: what is needed to run it again. */
#pragma once

#include "launcher/code/frozen_files.h"

/* JSON that the caller frees: command, host, git commit and difference, loaded
 * modules, packages of the entrypoint's Python, versions of CUDA and its
 * driver; of the environment nothing else.  What cannot be known within seconds
 * is left out.  NULL if out of memory.
 */
char *provenance_collect (const struct experiment *e, const struct code_files *c);
