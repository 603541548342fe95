/* SPDX-License-Identifier: Apache-2.0 */
/* Tell UTF-8 from other bytes. */
#pragma once

#include <stdbool.h>

/* Whether a text is UTF-8 (RFC 3629). */
bool is_utf8 (const char *text);
