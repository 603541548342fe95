/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, by one element or by many at a time. */
#ifndef LAUNCHER_SYS_ARRAY_H
#define LAUNCHER_SYS_ARRAY_H

#include <stddef.h>

#include "runtime/base/array.h"

/* As array_grow(), for 'more' elements at once; the caller keeps the capacity.
 * Returns -1 with ENOMEM; '*array' is then as it was.
 */
int array_reserve (
    void *array, size_t *capacity, size_t n, size_t more, size_t size);

/* Of two doubles, upwards, for qsort(). */
int compare_doubles (const void *a, const void *b);

#endif
