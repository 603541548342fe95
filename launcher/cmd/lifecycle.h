/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that change the state of an experiment. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Kill an experiment, and cancel its jobs, before it is removed. */
int kill_experiment (struct sweep *s);
