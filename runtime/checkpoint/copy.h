/* SPDX-License-Identifier: Apache-2.0 */
/* Copy much memory that is not read again soon. */
#pragma once

#include <stddef.h>

/* As memcpy(), but past the caches where the processor can: what is written is
 * not read from memory first, and pushes nothing out.
 */
void copy_past_caches (void *to, const void *from, size_t n);
