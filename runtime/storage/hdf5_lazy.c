/* SPDX-License-Identifier: Apache-2.0 */
/* Load libhdf5 when it is first needed.  The command dl links this file instead of
 * hdf5_linked.c.
 */
#define HDF5_TABLE_ONLY
#include "runtime/storage/hdf5_table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "config.h"
#include "runtime/base/symbols.h"

static struct lazy {
    struct hdf5_table table;
    herr_t (*dont_atexit) (void);
} lazy;

#define ENTRY(name) { #name, offsetof (struct hdf5_table, name) },
static const struct symbol entries[] = { HDF5_FUNCTIONS (ENTRY) HDF5_DATA (ENTRY){
                                             "H5dont_atexit", offsetof (struct lazy, dont_atexit) },
                                         { NULL } };

static void load_hdf5 (void)
{
    if (symbols_load (&lazy, dlopen (HDF5_SONAME, RTLD_LAZY | RTLD_LOCAL), entries)) {
        fprintf (stderr, "dl: HDF5 cannot be loaded: %s\n", dlerror ());
        _exit (127);
    }
    /* HDF5's exit handler crashes if a full disk kept it from closing a file */
    lazy.dont_atexit ();
}

const struct hdf5_table *hdf5 (void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once (&once, load_hdf5);
    return &lazy.table;
}
