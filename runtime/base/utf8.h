/* SPDX-License-Identifier: Apache-2.0 */
/* Tell UTF-8 from other bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character with which a text begins; 0 if it is no UTF-8 (RFC
 * 3629), or the text is empty.
 */
size_t utf8_length (const char *text);

/* Whether all of a text is UTF-8. */
bool is_utf8 (const char *text);
