/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 as a library that is loaded when it is first needed: for dl, in place of
 * hdf5_linked.c.
 */
#define HDF5_TABLE_ONLY
#include "runtime/storage/hdf5_table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

static struct hdf5_table table;

#define ENTRY(name) { #name, offsetof (struct hdf5_table, name) },
static const struct {
    const char *name;
    size_t at;
} entries[] = { HDF5_FUNCTIONS (ENTRY) HDF5_DATA (ENTRY) };

static void *find (void *library, const char *name)
{
    void *p = library ? dlsym (library, name) : NULL;

    if (!p) {
        fprintf (stderr, "dl: HDF5 cannot be loaded: %s\n", dlerror ());
        _exit (127);
    }
    return p;
}

static void load (void)
{
    void *library = dlopen (HDF5_SONAME, RTLD_LAZY | RTLD_LOCAL);
    void *p = find (library, "H5dont_atexit");
    herr_t (*dont_atexit) (void);

    /* at the end it crashes where a file could not be closed, on a full disk */
    memcpy (&dont_atexit, &p, sizeof (p));
    dont_atexit ();
    for (size_t i = 0; i < sizeof (entries) / sizeof (*entries); i++) {
        p = find (library, entries[i].name);
        memcpy ((char *)&table + entries[i].at, &p, sizeof (p));
    }
}

const struct hdf5_table *hdf5 (void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once (&once, load);
    return &table;
}
