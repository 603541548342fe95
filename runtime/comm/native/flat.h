/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in which all ranks of a mesh are alike: nodes do not matter. */
#pragma once

#include "runtime/comm/mesh/collective.h"
#include "runtime/comm/mesh/mesh.h"

/* Run any collective, also with a single rank. */
int flat_run (struct mesh *m, const struct collective *c, struct slurmdl_error *err);
