/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive, loaded when it is first needed. */
#include "launcher/code/libarchive.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "config.h"
#include "runtime/base/symbols.h"

struct libarchive libarchive;
static bool loaded;

#define ENTRY(name) { #name, offsetof (struct libarchive, name) },
static const struct symbol entries[] = { LIBARCHIVE_FUNCTIONS (ENTRY){ NULL } };

static void load (void)
{
    loaded = !symbols_load (&libarchive, dlopen (ARCHIVE_SONAME, RTLD_LAZY | RTLD_LOCAL), entries);
}

int libarchive_load (struct slurmdl_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once (&once, load);
    if (loaded)
        return 0;
    errno = ELIBACC;
    return errorf (err, "frozen code needs libarchive (" ARCHIVE_SONAME "): install it");
}
