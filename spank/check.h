/* SPDX-License-Identifier: Apache-2.0 */
/* Check the value of an option. */
#pragma once

#include <stddef.h>

/* -1 and why if the option does not take this value, whatever the site's policy
 * says.
 */
int option_check (int row, const char *value, char *why, size_t size);
