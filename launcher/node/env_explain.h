/* SPDX-License-Identifier: Apache-2.0 */
/* The rank environment of this process, explained. */
#pragma once

#include <stdbool.h>

/* Print which variables the plugin has set, which are the user's, and what
 * contradicts what.  Returns an exit status: EXIT_FAILED if something does,
 * EXIT_USAGE in no step.
 */
int explain_print (bool json);
