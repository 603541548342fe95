/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint, or the files, with which every trial of a fork begins. */
#pragma once

#include <stddef.h>

#include "launcher/config/experiment.h"
#include "runtime/base/error.h"

/* Put the checkpoint e->source_file, or copies of e->source_files, into a new
 * experiment's folder, as those of an attempt, and of e->source_shared, as those
 * of its trial; and that attempt's folder.
 */
int fork_source_publish (const struct experiment *e, const char *dir, struct slurmdl_error *err);
void fork_source_dir (char *buf, size_t size, const char *dir);

/* Before the first attempt of a trial runs: copy what the experiment 'dir' has
 * of {trial_dir} into the folder 'trial'.
 */
int fork_source_hand_on (const char *dir, const char *trial, struct slurmdl_error *err);

/* Add the paths of the files that all attempts of a trial share, in its folder
 * or that of a source.  Returns -1 with errno.
 */
int list_trial_files (const char *dir, char ***list);
