/* SPDX-License-Identifier: Apache-2.0 */
/* Where a {name} stands in a command. */
#pragma once

#include <stddef.h>

#define RESUME_DIR "resume_dir"

/* Length of the "{name}" that 'text' begins with, 0 if it does not; 'start' is
 * the beginning of the whole text.  Neither ${VARIABLE} nor awk's { print } is
 * one.
 */
size_t placeholder_length (const char *start, const char *text);
