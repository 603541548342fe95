/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by many elements at a time. */
#include "launcher/sys/array.h"

#include <stdlib.h>
#include <string.h>

int array_reserve (
    void *array, size_t *capacity, size_t n, size_t more, size_t size)
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
