/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the command that are left out where a value is absent. */
#pragma once

#include "launcher/config/diagnostics.h"

struct experiment;

/* Length of the group "[--momentum {momentum}]" that 'text' begins with, 0 if
 * it does not.  'start' is the beginning of the whole text.  A group begins a
 * word, neither a blank nor another bracket follows, it ends a word, and it
 * has a {name} that may be absent, or begins with '-' and has any: so no test,
 * pattern or list of the shell is one.
 */
size_t group_length (const struct experiment *e, const char *start, const char *text);

/* Add a problem for each hyperparameter that may be absent and stands outside
 * a group, and for a file in {resume_dir} that does, with the group that it
 * should be.
 */
void groups_check (const struct experiment *e, struct problems *p);
