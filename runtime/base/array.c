/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by one element at a time. */
#include "runtime/base/array.h"

#include <stdlib.h>

void *array_grow (void *array, size_t n, size_t size)
{
    if ((n & (n - 1)) != 0)
        return array;
    return reallocarray (array, n ? 2 * n : 1, size);
}
