/* SPDX-License-Identifier: Apache-2.0 */
/* The type Elastic: a world of ranks that may die, leave and join. */
#include "comm.h"

#include <errno.h>
#include <stdlib.h>

struct elastic {
    PyObject_HEAD struct slurmdl_elastic *e; /* NULL: closed */
    PyObject *comm;                          /* of the current world, or NULL */
    PyObject *kept;                          /* dict: name to the owner of the protected memory */
    unsigned generation;
};

static struct slurmdl_elastic *elastic_of (PyObject *o)
{
    struct elastic *self = (struct elastic *)o;

    if (self->e && self->generation == generation)
        return self->e;
    PyErr_SetString (PyExc_ValueError, "the elastic world is closed");
    return NULL;
}

static PyObject *elastic_new (PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = { "dir", "min", "max", "settle", "timeout", NULL };
    struct slurmdl_elastic_options o = { 0 };
    struct slurmdl_error err = { "" };
    struct elastic *self;

    if (!PyArg_ParseTupleAndKeywords (args, kw, "|zlldd:Elastic", names, &o.dir, &o.min, &o.max,
                                      &o.settle, &o.timeout)
        || !(self = ext_alloc (type)))
        return NULL;
    self->generation = generation;
    self->kept = PyDict_New ();
    WITHOUT_GIL (self->e = slurmdl_elastic_open (&o, &err));
    if (self->e && self->kept)
        return (PyObject *)self;
    raise_error (&err, "slurmdl.elastic");
    Py_DECREF (self);
    return NULL;
}

/* Detach the Comm of the last world.  The library closes its communicator, so wait for the
 * calls in progress first.
 */
static void expire (struct elastic *self)
{
    if (self->comm)
        comm_expire (self->comm);
    Py_CLEAR (self->comm);
}

static int close_elastic (struct elastic *self)
{
    struct slurmdl_elastic *e = self->e;
    int rv = 0;

    expire (self);
    self->e = NULL;
    if (!e || self->generation != generation)
        return 0;
    WITHOUT_GIL (rv = slurmdl_elastic_close (e));
    return rv;
}

static PyObject *elastic_close (PyObject *o, PyObject *unused)
{
    struct elastic *self = (struct elastic *)o;
    int rv = close_elastic (self);

    PyDict_Clear (self->kept);
    return none_or_error (rv, NULL, "slurmdl.elastic");
}

static int elastic_traverse (PyObject *o, visitproc visit, void *arg)
{
    struct elastic *self = (struct elastic *)o;

    EXT_VISIT_TYPE (o);
    Py_VISIT (self->comm);
    Py_VISIT (self->kept);
    return 0;
}

static int elastic_clear (PyObject *o)
{
    struct elastic *self = (struct elastic *)o;

    close_elastic (self);
    empty_dict (self->kept);
    return 0;
}

static void elastic_dealloc (PyObject *o)
{
    PyObject_GC_UnTrack (o);
    elastic_clear (o);
    Py_XDECREF (((struct elastic *)o)->kept);
    free_object (o);
}

/* Argument: the type of the communicator to return, Comm or a subclass. */
static PyObject *elastic_form (PyObject *o, PyObject *type)
{
    struct elastic *self = (struct elastic *)o;
    struct slurmdl_elastic *e = elastic_of (o);
    struct slurmdl_error err = { "" };
    struct slurmdl_comm *c;

    if (!e)
        return NULL;
    if (!PyType_Check (type) || !PyType_IsSubtype ((PyTypeObject *)type, comm_type))
        return PyErr_Format (PyExc_TypeError, "expected a subclass of Comm, not %R", type);
    expire (self);
    WITHOUT_GIL (c = slurmdl_elastic_form (e, &err));
    if (!c)
        return raise_error (&err, "slurmdl.elastic");
    self->comm = comm_around ((PyTypeObject *)type, c);
    Py_XINCREF (self->comm);
    return self->comm;
}

/* Replace the owner of the name's memory.  By now the library no longer uses the memory
 * of the old owner.
 */
static PyObject *keep_named_owner (PyObject *o, int rv, const struct slurmdl_error *err,
                                   const char *name, PyObject *owner)
{
    if (rv < 0)
        return raise_error (err, name);
    if (PyDict_SetItemString (((struct elastic *)o)->kept, name, owner) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *elastic_protect (PyObject *o, PyObject *args)
{
    struct slurmdl_elastic *e = elastic_of (o);
    struct slurmdl_error err = { "" };
    struct protect_args p;
    int rv;

    if (!e || protect_args_of (args, &p) < 0)
        return NULL;
    rv = slurmdl_elastic_protect (e, p.name, p.type, p.ndims, p.dims, p.memory.data, &err);
    lent_return (&p.memory);
    return keep_named_owner (o, rv, &err, p.name, p.owner);
}

static PyObject *elastic_protect_shard (PyObject *o, PyObject *args)
{
    struct slurmdl_elastic *e = elastic_of (o);
    struct slurmdl_error err = { "" };
    struct protect_args p;
    int rv;

    if (!e || protect_slab_of (args, &p) < 0)
        return NULL;
    rv = slurmdl_elastic_protect_shard (e, p.name, p.type, p.ndims, p.dims, p.at, p.part,
                                        p.memory.data, &err);
    lent_return (&p.memory);
    return keep_named_owner (o, rv, &err, p.name, p.owner);
}

static PyObject *elastic_state (PyObject *o, PyObject *args)
{
    struct slurmdl_error err = { "" };
    const char *name;
    Py_buffer bytes;
    int rv = -1;

    if (!PyArg_ParseTuple (args, "sy*:state", &name, &bytes))
        return NULL;
    if (elastic_of (o)) {
        rv = slurmdl_elastic_state (elastic_of (o), name, bytes.buf, (size_t)bytes.len, &err);
        if (rv < 0)
            raise_error (&err, name);
    }
    PyBuffer_Release (&bytes);
    if (rv < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *elastic_read_state (PyObject *o, PyObject *name_object)
{
    const char *name = text_of (name_object, "name");
    struct slurmdl_elastic *e = name ? elastic_of (o) : NULL;
    PyObject *result;
    void *bytes = NULL;
    size_t n = 0;

    if (!e)
        return NULL;
    if (slurmdl_elastic_read_state (e, name, &bytes, &n) < 0) {
        if (errno == ENOENT)
            Py_RETURN_NONE;
        return raise_error (NULL, name);
    }
    result = PyBytes_FromStringAndSize (bytes, (Py_ssize_t)n);
    free (bytes);
    return result;
}

static PyObject *elastic_commit (PyObject *o, PyObject *step_object)
{
    int64_t step = PyLong_AsLongLong (step_object);
    struct slurmdl_elastic *e = elastic_of (o);
    struct slurmdl_error err = { "" };
    int rv;

    if (!e || (step == -1 && PyErr_Occurred ()))
        return NULL;
    WITHOUT_GIL (rv = slurmdl_elastic_commit (e, step, &err));
    return rv < 0 ? raise_error (&err, "commit") : PyBool_FromLong (rv);
}

static PyObject *elastic_restore (PyObject *o, PyObject *unused)
{
    struct slurmdl_elastic *e = elastic_of (o);
    struct slurmdl_error err = { "" };
    int64_t step = 0;
    int rv;

    if (!e)
        return NULL;
    WITHOUT_GIL (rv = slurmdl_elastic_restore (e, &step, &err));
    if (rv < 0)
        return raise_error (&err, "restore");
    if (rv == 0)
        Py_RETURN_NONE;
    return PyLong_FromLongLong (step);
}

static PyObject *elastic_world (PyObject *o, PyObject *unused)
{
    struct slurmdl_elastic *e = elastic_of (o);
    struct slurmdl_elastic_world w;

    if (!e)
        return NULL;
    slurmdl_elastic_world (e, &w);
    /* clang-format off */
    return Py_BuildValue (
        "{sLslslslslsd}",
        "generation", (long long)w.generation,
        "size", w.size,
        "kept", w.kept,
        "lost", w.lost,
        "left", w.left,
        "seconds", w.seconds);
    /* clang-format on */
}

/* clang-format off */
static PyMethodDef elastic_methods[] = {
    { "form_world",     elastic_form,          METH_O,       NULL },
    { "protect_memory", elastic_protect,       METH_VARARGS, NULL },
    { "protect_slab",   elastic_protect_shard, METH_VARARGS, NULL },
    { "state", elastic_state, METH_VARARGS,
      "state($self, name, data, /)\n--\n\nAdd a copy of these bytes to later commits." },
    { "read_state", elastic_read_state, METH_O,
      "read_state($self, name, /)\n--\n\nRead these bytes from the restored commit; None if there are none." },
    { "commit", elastic_commit, METH_O,
      "commit($self, step, /)\n--\n\nCopy the state to memory.  Returns whether to form a new world because ranks join or leave." },
    { "restore", elastic_restore, METH_NOARGS,
      "restore($self, /)\n--\n\nFill the state from the newest commit.  Returns its step, or None if there is none." },
    { "world", elastic_world, METH_NOARGS,
      "world($self, /)\n--\n\nThe current world and how it was formed, as a dict." },
    { "close", elastic_close, METH_NOARGS,
      "close($self, /)\n--\n\nClose it on all ranks, after the last commit." },
    { NULL },
};
/* clang-format on */

EXT_TYPE (elastic, "Elastic", "Base class of slurmdl.elastic.Elastic.",
          Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, { Py_tp_traverse, elastic_traverse },
          { Py_tp_clear, elastic_clear }, );
