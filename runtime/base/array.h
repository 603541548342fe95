/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, by one element or by many at a time. */
#pragma once

#include <stddef.h>

/* Grow an array of 'n' elements of 'size' bytes by one element; NULL and 0
 * start a new one.  Its capacity is the next power of two, so that nobody has
 * to store it: grow such an array with this function only.
 *
 * Returns the array, which may have moved, or NULL with ENOMEM, and then the
 * old array is unchanged.
 */
void *array_grow (void *array, size_t n, size_t size);

/* As array_grow(), for 'more' elements at once; the caller stores the capacity.
 * Returns -1 with ENOMEM and leaves '*array' unchanged.
 */
int array_reserve (void *array, size_t *capacity, size_t n, size_t more, size_t size);

/* Compare two doubles, ascending, for qsort(). */
int compare_doubles (const void *a, const void *b);
