/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of functions from libraries that are loaded on demand. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct symbol {
    const char *name;
    size_t at; /* offset of the address in the table */
    bool optional;
};

/* Fill in a table with the symbols of a library from dlopen(), or NULL for this
 * process; the last symbol has no name.  Returns NULL, or the name of the first
 * missing symbol.
 */
const char *symbols_load (void *table, void *library, const struct symbol *list);
