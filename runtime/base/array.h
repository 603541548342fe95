/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, by one element or by many at a time. */
#pragma once

#include <stddef.h>

/* Make space in an array of 'n' elements of 'size' bytes for one more; NULL
 * and 0 begin one.  Its capacity is the next power of two, so that nobody has
 * to keep it: an array that grows by this function grows by no other.
 *
 * Returns the array, which may have moved, or NULL with ENOMEM, and then the
 * old one is as it was.
 */
void *array_grow (void *array, size_t n, size_t size);

/* As array_grow(), for 'more' elements at once; the caller keeps the capacity.
 * Returns -1 with ENOMEM; '*array' is then as it was.
 */
int array_reserve (void *array, size_t *capacity, size_t n, size_t more, size_t size);

/* Of two doubles, upwards, for qsort(). */
int compare_doubles (const void *a, const void *b);
