/* SPDX-License-Identifier: Apache-2.0 */
/* The site's policy: the arguments of the plugin's line in plugstack.conf. */
#pragma once

#include "runtime/rank/condition.h"
#include "spank/context.h"

/* Read the arguments in plugstack.conf that apply to the step, and the defaults
 * that may.  An invalid argument applies to no step, and is passed to 'reject' (may
 * be NULL); its option then has no default in any step.  Arguments after an invalid
 * condition or an unknown argument, up to the next when=, apply to no step either.
 */
void policy_read (struct site_policy *p, const struct step_facts *facts, int ac, char **av,
                  void (*reject) (const char *arg, const char *why));

bool policy_has (const struct site_policy *p, int row);

/* Returns -1 and the reason if this site forbids a valid value of the option. */
int policy_check (const struct site_policy *p, int row, const char *value, char *why, size_t size);
