/* SPDX-License-Identifier: Apache-2.0 */
/* The settings in which experiments differ. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Call 'f' for each key of the experiment file, and each hyperparameter, that
 * has not the same value in all; 'values' has one text an experiment, NULL:
 * it has none.  Returns -1 if out of memory.
 */
int differences_each (struct sweep *const *list,
                      size_t n,
                      void (*f) (const char *key,
                                 char *const *values,
                                 void *arg),
                      void *arg);
