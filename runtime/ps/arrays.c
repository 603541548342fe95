/* SPDX-License-Identifier: Apache-2.0 */
/* Map the arrays of a table to tensors of a checkpoint. */
#include <stdio.h>
#include <string.h>

#include "runtime/ps/save.h"

int pssave_arrays (const struct ps_copy *c, struct ps_array *a)
{
    bool dense = c->spec.n > 0;
    uint64_t rows = dense ? c->n : c->rows;
    uint64_t width = dense ? 0 : c->width;
    int n = 0;

    for (unsigned i = 0; i <= c->slots; i++, n++) {
        a[n] = (struct ps_array){ "values", SLURMDL_F32, c->value[i],
                                  rows,     width,       sizeof (float) };
        if (i)
            snprintf (a[n].field, sizeof (a[n].field), "slot%u", i);
    }
    a[n++] = (struct ps_array){ "times", SLURMDL_U32, c->times,
                                c->rows, 0,           sizeof (*c->times) };
    if (!dense)
        a[n++] = (struct ps_array){ "ids",   SLURMDL_U64, c->ids,
                                    c->rows, 0,           sizeof (*c->ids) };
    return n;
}

void pssave_describe (const struct ps_spec *spec,
                      const struct ps_array *a,
                      struct slurmdl_tensor *t)
{
    memset (t, 0, sizeof (*t));
    snprintf (t->name, sizeof (t->name), "ps/%s/%s", spec->name, a->field);
    t->type = a->type;
    t->ndims = a->width ? 2 : 1;
    t->dims[0] = a->rows;
    t->dims[1] = a->width;
}
