/* SPDX-License-Identifier: Apache-2.0 */
/* Seal a checkpoint that was written, read it back, and give it its name. */
#pragma once

#include <stdint.h>

#include "runtime/base/error.h"

struct draft;

/* Files up to this are read back whole before they get their name. */
enum { SMALL_FILE = 16 << 20 };

/* The names of a checkpoint while it is made and then (PATH_MAX each). */
int finish_paths (const char *dir, int64_t step, char *tmp, char *path, struct slurmdl_error *err);

/* Name a finished file; what is of this name already is out of date. */
int finish_name (const char *tmp, const char *path);
