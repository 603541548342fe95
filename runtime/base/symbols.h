/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of functions of libraries that are loaded when they are needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct symbol {
    const char *name;
    size_t at; /* of its address in the table */
    bool optional;
};

/* Fill a table with the symbols, up to one without a name, of a library of
 * dlopen(), or NULL.  Returns NULL, or the name of the first that is missing.
 */
const char *symbols_load (void *table, void *library, const struct symbol *list);
