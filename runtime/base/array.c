/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, by one element or by many at a time. */
#include "runtime/base/array.h"

#include <stdlib.h>
#include <string.h>

void *array_grow (void *array, size_t n, size_t size)
{
    if ((n & (n - 1)) != 0)
        return array;
    return reallocarray (array, n ? 2 * n : 1, size);
}

int array_reserve (void *array, size_t *capacity, size_t n, size_t more, size_t size)
{
    size_t wanted = *capacity ? *capacity : 16;
    void *old, *moved;

    if (n + more <= *capacity)
        return 0;
    while (wanted < n + more)
        wanted *= 2;
    memcpy (&old, array, sizeof (old));
    if (!(moved = reallocarray (old, wanted, size)))
        return -1;
    memcpy (array, &moved, sizeof (moved));
    *capacity = wanted;
    return 0;
}

int compare_doubles (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}
