/* SPDX-License-Identifier: Apache-2.0 */
/* The folders that a container sees. */
#pragma once

#include "runtime/base/error.h"

/* Add to a NULL-ended list 'dir', the 'folders', and what processes of a step
 * need; not what the runtime 'shared' anyway (NULL: nothing).  Returns -1 with
 * 'err'.
 */
int container_binds (char ***binds, const char *dir, char *const *folders,
                     const char *const *shared, struct slurmdl_error *err);
