/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive, loaded when it is first needed. */
#define LIBARCHIVE_TABLE_ONLY
#include "launcher/code/libarchive.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "config.h"

struct libarchive libarchive;
static bool loaded;

#define ENTRY(name) { #name, offsetof (struct libarchive, name) },
static const struct {
    const char *name;
    size_t at;
} entries[] = { LIBARCHIVE_FUNCTIONS (ENTRY) };

static void load (void)
{
    void *library = dlopen (ARCHIVE_SONAME, RTLD_LAZY | RTLD_LOCAL);
    bool all = library != NULL;

    for (size_t i = 0; all && i < sizeof (entries) / sizeof (*entries); i++) {
        void *f = dlsym (library, entries[i].name);
        memcpy ((char *)&libarchive + entries[i].at, &f, sizeof (f));
        all = f != NULL;
    }
    loaded = all;
}

int libarchive_load (struct slurmdl_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once (&once, load);
    if (loaded)
        return 0;
    errno = ELIBACC;
    return errorf (
        err, "frozen code needs libarchive (" ARCHIVE_SONAME "): install it");
}
