/* SPDX-License-Identifier: Apache-2.0 */
/* The site's policy: the arguments of the plugin's line in plugstack.conf. */
#pragma once

#include "runtime/rank/condition.h"
#include "spank/context.h"

/* Read the arguments in plugstack.conf that hold for the step, and the defaults
 * that may.  A wrong one holds for no step, and is given to 'reject' (NULL:
 * nobody).  No step gets a default of its option.  What follows a wrong
 * condition or an unknown argument, up to the next when=, holds for no step.
 */
void policy_read (struct site_policy *p, const struct step_facts *facts, int ac, char **av,
                  void (*reject) (const char *arg, const char *why));

bool policy_has (const struct site_policy *p, int row);

/* -1 and why if this site does not take a value that the option has. */
int policy_check (const struct site_policy *p, int row, const char *value, char *why, size_t size);
