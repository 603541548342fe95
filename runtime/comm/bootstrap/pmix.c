/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 publishes its address through PMIx: srun --mpi=pmix, or mpirun. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/symbols.h"
#include "runtime/comm/bootstrap/method.h"

static bool pmix_is_there (void)
{
    return getenv ("PMIX_RANK") && getenv ("PMIX_NAMESPACE");
}

#ifdef HAVE_PMIX
#include <pmix.h>

/* The library that the program has loaded, or the installed one. */
static struct pmix {
    void *library;
    pmix_status_t (*init) (pmix_proc_t *, pmix_info_t *, size_t);
    pmix_status_t (*finalize) (const pmix_info_t *, size_t);
    pmix_status_t (*put) (pmix_scope_t, const char *, pmix_value_t *);
    pmix_status_t (*commit) (void);
    pmix_status_t (*get) (const pmix_proc_t *, const char *, const pmix_info_t *, size_t,
                          pmix_value_t **);
    const char *(*text) (pmix_status_t);
} pmix;

#define AT(member) offsetof (struct pmix, member)
static const struct symbol pmix_symbols[] = {
    { "PMIx_Init", AT (init) },
    { "PMIx_Finalize", AT (finalize) },
    { "PMIx_Put", AT (put) },
    { "PMIx_Commit", AT (commit) },
    { "PMIx_Get", AT (get) },
    { "PMIx_Error_string", AT (text) },
    { NULL },
};

static int load_pmix (struct slurmdl_error *err)
{
    const char *missing;

    if (pmix.library)
        return 0;
    errno = ENOTSUP;
    if (!(pmix.library = dlopen ("libpmix.so.2", RTLD_NOW | RTLD_LOCAL)))
        return errorf (err,
                       "this step has PMIx (srun --mpi=pmix), but it cannot be loaded: %s: install "
                       "libpmix2, or use srun --mpi=none, "
                       "--mpi=pmi2, or DL_COMM_BOOTSTRAP=tcp",
                       dlerror ());
    missing = symbols_load (&pmix, pmix.library, pmix_symbols);
    if (!missing)
        return 0;
    pmix.library = NULL;
    errno = ENOTSUP;
    return errorf (err, "PMIx: no %s in libpmix.so.2", missing);
}

static int pmix_failure (pmix_status_t s, const char *what, struct slurmdl_error *err)
{
    errno = s == PMIX_ERR_TIMEOUT ? ETIMEDOUT : EIO;
    return errorf (err, "PMIx: %s: %s", what, pmix.text (s));
}

/* Each bootstrap has its own key, because published values remain. */
static void next_key (char *key, size_t size)
{
    static atomic_uint turn;

    snprintf (key, size, "slurmdl.boot.%u", atomic_fetch_add (&turn, 1));
}

static int find_size (const pmix_proc_t *self, struct boot_place *p, struct slurmdl_error *err)
{
    pmix_proc_t all = *self;
    pmix_value_t *v = NULL;
    pmix_status_t s;

    all.rank = PMIX_RANK_WILDCARD;
    s = pmix.get (&all, PMIX_JOB_SIZE, NULL, 0, &v);
    if (s != PMIX_SUCCESS)
        return pmix_failure (s, "size of the job", err);
    p->rank = (long)self->rank;
    p->size = (long)v->data.uint32;
    free (v);
    return 0;
}

static int pmix_put (struct boot_place *p, const char *key, struct slurmdl_error *err)
{
    char notice[BOOT_NOTICE];
    pmix_value_t v = { .type = PMIX_STRING };
    struct slurmdl_error why = { "" };
    pmix_status_t s;
    bool failed = boot_prepare (p, &why) < 0;

    if (failed) {
        errorf (err, "rank 0 (%s) cannot listen: %s", p->own, why.text);
        boot_compose_failure (err ? err->text : why.text, notice);
    } else
        boot_compose (p, notice);
    v.data.string = notice;
    s = pmix.put (PMIX_GLOBAL, key, &v);
    if (s == PMIX_SUCCESS)
        s = pmix.commit ();
    if (s != PMIX_SUCCESS)
        return pmix_failure (s, "put", err);
    return failed ? -1 : 0;
}

/* Do not use a fence, which would wait for missing ranks without naming them. */
static int pmix_get (const pmix_proc_t *self, struct boot_place *p, const char *key,
                     struct slurmdl_error *err)
{
    pmix_proc_t first = *self;
    pmix_value_t *v = NULL;
    pmix_info_t wait;
    double deadline = monotonic () + p->timeout;
    struct timespec pause = { 0, 10000000 };
    pmix_status_t s;
    int rv = -1;

    memset (&wait, 0, sizeof (wait));
    strcpy (wait.key, PMIX_TIMEOUT);
    wait.value.type = PMIX_INT;
    wait.value.data.integer = (int)(p->timeout + 0.999);
    first.rank = 0;
    /* some servers wait for the key; others report that they do not know it yet */
    while ((s = pmix.get (&first, key, &wait, 1, &v)) != PMIX_SUCCESS && s != PMIX_ERR_UNREACH
           && monotonic () < deadline)
        nanosleep (&pause, NULL);
    if (s != PMIX_SUCCESS) {
        pmix_failure (s, "rank 0 did not come", err);
        errno = ETIMEDOUT;
        return -1;
    }
    if (v->type == PMIX_STRING && v->data.string)
        rv = boot_parse (p, v->data.string, err);
    if (v->type == PMIX_STRING)
        free (v->data.string);
    free (v);
    return rv;
}

static int pmix_find (struct boot_place *p, const struct slurmdl_comm_options *o,
                      struct slurmdl_error *err)
{
    pmix_proc_t self;
    pmix_status_t s;
    char key[64];
    int rv;

    (void)o;
    if (load_pmix (err) < 0)
        return -1;
    memset (&self, 0, sizeof (self));
    if ((s = pmix.init (&self, NULL, 0)) != PMIX_SUCCESS)
        return pmix_failure (s, "PMIx_Init", err);
    next_key (key, sizeof (key));
    rv = find_size (&self, p, err);
    if (rv == 0 && p->size > 1)
        rv = p->rank == 0 ? pmix_put (p, key, err) : pmix_get (&self, p, key, err);
    if (rv < 0)
        pmix.finalize (NULL, 0);
    return rv;
}

static void pmix_leave (void)
{
    pmix.finalize (NULL, 0);
}

#else

static int pmix_find (struct boot_place *p, const struct slurmdl_comm_options *o,
                      struct slurmdl_error *err)
{
    (void)p;
    (void)o;
    errno = ENOTSUP;
    return errorf (err,
                   "this step has PMIx (srun --mpi=pmix), but libslurmdl-comm was built without "
                   "it: build it where libpmix-dev is installed, or use srun --mpi=none, "
                   "--mpi=pmi2, or DL_COMM_BOOTSTRAP=tcp");
}

static void pmix_leave (void)
{
}

#endif

const struct boot_method boot_pmix = { "pmix", pmix_is_there, pmix_find, pmix_leave };
