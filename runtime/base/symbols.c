/* SPDX-License-Identifier: Apache-2.0 */
/* Fill a table of function pointers from a library loaded at run time. */
#include "runtime/base/symbols.h"

#include <dlfcn.h>
#include <string.h>

const char *symbols_load (void *table, void *library, const struct symbol *list)
{
    for (; list->name; list++) {
        void *p = library ? dlsym (library, list->name) : NULL;
        if (!p && !list->optional)
            return list->name;
        memcpy ((char *)table + list->at, &p, sizeof (p));
    }
    return NULL;
}
