/* SPDX-License-Identifier: Apache-2.0 */
/* The site's policy: the arguments of the plugin's line in plugstack.conf. */
#ifndef SPANK_POLICY_H
#define SPANK_POLICY_H

#include "spank/context.h"

/* Read the arguments in plugstack.conf.  A wrong one is reported, unless on a
 * node, and ignored.
 */
void policy_read (struct site_policy *p, int ac, char **av);

bool policy_has (const struct site_policy *p, int row);

/* -1 and why if this site does not take a value that the option has. */
int policy_check (const struct site_policy *p,
                  int row,
                  const char *value,
                  char *why,
                  size_t size);

#endif
