/* SPDX-License-Identifier: Apache-2.0 */
/* Protecting the memory of Python objects in a run. */
#include "run.h"

#include <errno.h>

/* Replace the owner of the name's memory.  By now the library no longer uses the memory
 * of the old owner, so that may be freed.
 */
static PyObject *keep_region_owner (struct run *self, const char *name, PyObject *owner)
{
    if (PyDict_SetItemString (self->kept, name, owner) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *end_protect (struct run *self, struct protect_args *p, bool entered, int rv)
{
    int e = errno;

    if (entered)
        run_leave (self);
    lent_return (&p->memory);
    errno = e;
    if (entered && rv < 0 && errno == EINVAL)
        PyErr_Format (PyExc_ValueError,
                      "'%.140s': the name of a tensor must be 1 to 127 bytes of UTF-8, not "
                      "'/...', '.../', 'manifest', 'shards' or 'state', and a slab must lie "
                      "within its tensor",
                      p->name);
    else if (entered && rv < 0)
        raise_error (NULL, p->name);
    return entered && rv == 0 ? keep_region_owner (self, p->name, p->owner) : NULL;
}

PyObject *run_protect (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    struct protect_args p;
    struct slurmdl *run;
    int rv = -1;

    if (protect_args_of (args, &p) < 0)
        return NULL;
    if ((run = run_enter (self)))
        rv = slurmdl_protect (run, p.name, p.type, p.ndims, p.dims, p.memory.data);
    return end_protect (self, &p, run, rv);
}

PyObject *run_protect_shard (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    struct protect_args p;
    struct slurmdl *run;
    int rv = -1;

    if (protect_slab_of (args, &p) < 0)
        return NULL;
    if ((run = run_enter (self)))
        rv = slurmdl_protect_shard (run, p.name, p.type, p.ndims, p.dims, p.at, p.part,
                                    p.memory.data);
    return end_protect (self, &p, run, rv);
}

/* Argument: a name, or None for all. */
PyObject *run_unprotect (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    const char *name = NULL;
    struct slurmdl *run;
    int rv;

    if (!PyArg_ParseTuple (args, "z:forget", &name) || !(run = run_enter (self)))
        return NULL;
    rv = slurmdl_unprotect (run, name);
    run_leave (self);
    if (rv < 0)
        return raise_error (NULL, name ? name : "unprotect");
    if (!name)
        PyDict_Clear (self->kept);
    else if (PyDict_DelItemString (self->kept, name) < 0)
        PyErr_Clear ();
    Py_RETURN_NONE;
}
