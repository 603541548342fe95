/* SPDX-License-Identifier: Apache-2.0 */
/* Tell UTF-8 from other bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Length in bytes of the first character of a text; 0 if it is not UTF-8 (RFC
 * 3629) or the text is empty.
 */
size_t utf8_length (const char *text);

/* Whether a text is UTF-8. */
bool is_utf8 (const char *text);
