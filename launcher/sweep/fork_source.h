/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint, or the files, with which every trial of a fork begins. */
#pragma once

#include <stddef.h>

#include "launcher/config/experiment.h"
#include "runtime/slurmdl.h"

/* Put the checkpoint e->source_file, or copies of e->source_files, into a new
 * experiment's folder, as those of an attempt; and that attempt's folder.
 */
int fork_source_publish (const struct experiment *e, const char *dir, struct slurmdl_error *err);
void fork_source_dir (char *buf, size_t size, const char *dir);
