/* SPDX-License-Identifier: Apache-2.0 */
/* The same over PMIx, where srun --mpi=pmix has started the ranks. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"

enum { WAIT_S = 60 };
static const char key[] = "slurmdl.spread";

static int put (void *data, size_t n)
{
    pmix_value_t value = { .type = PMIX_BYTE_OBJECT };

    value.data.bo.bytes = data;
    value.data.bo.size = n;
    return PMIx_Put (PMIX_GLOBAL, key, &value) == PMIX_SUCCESS
                   && PMIx_Commit () == PMIX_SUCCESS
               ? 0
               : -1;
}

static int fence (void)
{
    pmix_info_t info;
    bool yes = true;

    PMIX_INFO_CONSTRUCT (&info);
    PMIX_INFO_LOAD (&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    return PMIx_Fence (NULL, 0, &info, 1) == PMIX_SUCCESS ? 0 : -1;
}

static int get (const pmix_proc_t *self, void *data, size_t n)
{
    pmix_value_t *value = NULL;
    pmix_proc_t root;
    pmix_info_t info;
    int wait = WAIT_S;
    int rv = -1;

    PMIX_LOAD_PROCID (&root, self->nspace, 0);
    PMIX_INFO_CONSTRUCT (&info);
    PMIX_INFO_LOAD (&info, PMIX_TIMEOUT, &wait, PMIX_INT);
    if (PMIx_Get (&root, key, &info, 1, &value) == PMIX_SUCCESS
        && value->type == PMIX_BYTE_OBJECT && value->data.bo.size == n) {
        memcpy (data, value->data.bo.bytes, n);
        rv = 0;
    }
    if (value)
        PMIX_VALUE_RELEASE (value);
    return rv;
}

int spread_pmix (const struct place *p, void *data, size_t n)
{
    pmix_proc_t self;
    int rv = -1;

    /* without srun's server PMIx_Init() would only fail */
    if (!getenv ("PMIX_NAMESPACE"))
        return 1;
    if (PMIx_Init (&self, NULL, 0) != PMIX_SUCCESS)
        return 1;
    if ((p->rank > 0 || put (data, n) == 0) && fence () == 0)
        rv = p->rank > 0 ? get (&self, data, n) : 0;
    PMIx_Finalize (NULL, 0);
    if (rv < 0)
        fprintf (stderr, "allreduce: rank %d: PMIx does not spread\n", p->rank);
    return rv;
}
