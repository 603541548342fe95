/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: what the public functions need of the engine. */
#pragma once

#include "runtime/comm/engine/engine.h"

/* The communicator's engine, which stays until engine_leave(); NULL without
 * one.  With 'start' it is made if there is none: NULL is a failure.
 */
struct engine *engine_enter (struct slurmdl_comm *c, bool start, struct slurmdl_error *err);
void engine_leave (struct engine *e);
