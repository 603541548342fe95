/* SPDX-License-Identifier: Apache-2.0 */
/* Valid names and shapes of tensors in a checkpoint. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* Whether HDF5 accepts the name and it is not reserved ("manifest"). */
bool tensor_name_ok (const char *name);

/* Elements times size; -1 with EINVAL, EOVERFLOW. */
int tensor_bytes (enum slurmdl_type type, int ndims, const uint64_t *dims, uint64_t *bytes);
