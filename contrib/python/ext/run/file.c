/* SPDX-License-Identifier: Apache-2.0 */
/* The types Checkpoint and Writer: checkpoint files without a run. */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Checkpoint ---- */

struct checkpoint {
    PyObject_HEAD struct slurmdl_checkpoint *file;
};

static PyObject *checkpoint_new (PyTypeObject *type, PyObject *args, PyObject *kw)
{
    struct slurmdl_error err = { "" };
    struct checkpoint *self;
    const char *path;

    if (!PyArg_ParseTuple (args, "s:Checkpoint", &path) || !(self = ext_alloc (type)))
        return NULL;
    WITHOUT_GIL (self->file = slurmdl_checkpoint_open (path, &err));
    if (self->file)
        return (PyObject *)self;
    raise_error (&err, path);
    Py_DECREF (self);
    return NULL;
}

static void checkpoint_dealloc (PyObject *o)
{
    slurmdl_checkpoint_close (((struct checkpoint *)o)->file);
    free_object (o);
}

static PyObject *checkpoint_step (PyObject *o, void *unused)
{
    return PyLong_FromLongLong (slurmdl_checkpoint_step (((struct checkpoint *)o)->file));
}

PyObject *origin_tuple (const struct slurmdl_origin *from)
{
    PyObject *path = PyUnicode_DecodeFSDefault (from->path);

    if (!path)
        return NULL;
    return Py_BuildValue ("(NkN)", path, (unsigned long)from->owner, PyBool_FromLong (from->own));
}

static PyObject *checkpoint_origin (PyObject *o, PyObject *unused)
{
    struct slurmdl_origin from;

    if (slurmdl_checkpoint_origin (((struct checkpoint *)o)->file, &from) < 0)
        return raise_error (NULL, "checkpoint");
    return origin_tuple (&from);
}

/* Return a list of (name, type, shape, whether it is a state). */
static PyObject *checkpoint_tensors (PyObject *o, PyObject *unused)
{
    struct slurmdl_checkpoint *file = ((struct checkpoint *)o)->file;
    size_t n = slurmdl_checkpoint_count (file);
    PyObject *list = PyList_New (0);
    struct slurmdl_tensor t;

    for (size_t i = 0; list && i < n; i++) {
        PyObject *row = NULL;
        if (slurmdl_checkpoint_info (file, i, &t) == 0)
            row = Py_BuildValue ("(ssNi)", t.name, name_of_type (t.type),
                                 tuple_of (t.dims, t.ndims), t.state != 0);
        if (!row || PyList_Append (list, row) < 0)
            Py_CLEAR (list);
        Py_XDECREF (row);
    }
    return list;
}

/* Arguments: name, memory.  Reads the whole tensor. */
static PyObject *checkpoint_read (PyObject *o, PyObject *args)
{
    struct slurmdl_checkpoint *file = ((struct checkpoint *)o)->file;
    struct slurmdl_error err = { "" };
    struct slurmdl_tensor t;
    PyObject *memory;
    const char *name;
    struct lent l;
    int64_t i;
    int rv;

    if (!PyArg_ParseTuple (args, "sO:read", &name, &memory))
        return NULL;
    if ((i = slurmdl_checkpoint_find_tensor (file, name)) < 0
        || slurmdl_checkpoint_info (file, (size_t)i, &t) < 0)
        return raise_error (NULL, name);
    if (lent_take (&l, memory, true) < 0)
        return NULL;
    if ((rv = lent_fits (&l, t.type, t.ndims, t.dims)) == 0) {
        WITHOUT_GIL (rv = slurmdl_checkpoint_read (file, name, NULL, NULL, l.data, &err));
        if (rv < 0)
            raise_error (&err, name);
    }
    lent_return (&l);
    if (rv < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef checkpoint_methods[] = {
    { "origin", checkpoint_origin, METH_NOARGS, NULL },
    { "tensors", checkpoint_tensors, METH_NOARGS, NULL },
    { "read", checkpoint_read, METH_VARARGS, NULL },
    { NULL },
};

static PyGetSetDef checkpoint_facts[] = {
    { "step", checkpoint_step, NULL, "Step at which it was saved.", NULL },
    { NULL },
};

EXT_TYPE (checkpoint, "Checkpoint", "Reads a checkpoint; slurmdl.load() is simpler.", 0,
          { Py_tp_getset, checkpoint_facts }, );

/* ---- Writer ---- */

struct writer {
    PyObject_HEAD struct slurmdl_writer *file; /* NULL: committed or aborted */
    PyThread_type_lock lock;                   /* serializes calls */
    unsigned generation;
};

static PyObject *writer_new (PyTypeObject *type, PyObject *args, PyObject *kw)
{
    struct slurmdl_error err = { "" };
    struct writer *self;
    const char *path;
    long long step;

    if (!PyArg_ParseTuple (args, "sL:Writer", &path, &step) || !(self = ext_alloc (type)))
        return NULL;
    self->generation = generation;
    if (!(self->lock = PyThread_allocate_lock ())) {
        Py_DECREF (self);
        return PyErr_NoMemory ();
    }
    WITHOUT_GIL (self->file = slurmdl_writer_open (path, step, &err));
    if (self->file)
        return (PyObject *)self;
    raise_error (&err, path);
    Py_DECREF (self);
    return NULL;
}

/* Acquire the lock and return the file, or NULL with an exception. */
static struct slurmdl_writer *writer_enter (struct writer *self)
{
    if (!ext_is_open (self->file, self->generation, "file"))
        return NULL;
    ext_lock (self->lock);
    if (self->file)
        return self->file;
    PyThread_release_lock (self->lock);
    ext_is_open (NULL, generation, "file");
    return NULL;
}

static PyObject *writer_abort (PyObject *o, PyObject *unused)
{
    struct writer *self = (struct writer *)o;

    if (!self->file || self->generation != generation)
        Py_RETURN_NONE;
    ext_lock (self->lock);
    slurmdl_writer_abort (self->file);
    self->file = NULL;
    PyThread_release_lock (self->lock);
    Py_RETURN_NONE;
}

static void writer_dealloc (PyObject *o)
{
    struct writer *self = (struct writer *)o;

    /* in a child of fork(), leave the parent's file alone */
    if (self->generation == generation)
        slurmdl_writer_abort (self->file);
    if (self->lock)
        PyThread_free_lock (self->lock);
    free_object (o);
}

static int writer_add_tensor (struct writer *self, const struct slurmdl_tensor *t,
                              const struct lent *l)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_writer *file;
    int rv;

    if (lent_fits (l, t->type, t->ndims, t->dims) < 0 || !(file = writer_enter (self)))
        return -1;
    WITHOUT_GIL (rv = slurmdl_writer_add (file, t, l->data, &err));
    PyThread_release_lock (self->lock);
    if (rv < 0)
        raise_error (&err, t->name);
    return rv;
}

/* Arguments: name, type, shape, memory, whether it is a state. */
static PyObject *writer_add (PyObject *o, PyObject *args)
{
    struct writer *self = (struct writer *)o;
    struct slurmdl_tensor t = { .state = 0 };
    const char *name, *type_name;
    PyObject *shape, *memory;
    struct lent l;
    int type, rv;

    if (!PyArg_ParseTuple (args, "ssOOp:add", &name, &type_name, &shape, &memory, &t.state)
        || (type = type_of_name (type_name)) < 0 || (t.ndims = dims_of (shape, t.dims)) < 0
        || lent_take (&l, memory, false) < 0)
        return NULL;
    t.type = (enum slurmdl_type)type;
    if (snprintf (t.name, sizeof (t.name), "%s", name) < (int)sizeof (t.name))
        rv = writer_add_tensor (self, &t, &l);
    else {
        PyErr_Format (PyExc_ValueError,
                      "'%.140s...': a name in a checkpoint must be at most %zu bytes", name,
                      sizeof (t.name) - 1);
        rv = -1;
    }
    lent_return (&l);
    if (rv < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *writer_commit (PyObject *o, PyObject *unused)
{
    struct writer *self = (struct writer *)o;
    struct slurmdl_writer *file = writer_enter (self);
    struct slurmdl_error err = { "" };
    int rv;

    if (!file)
        return NULL;
    WITHOUT_GIL (rv = slurmdl_writer_commit (file, &err));
    self->file = NULL;
    PyThread_release_lock (self->lock);
    return none_or_error (rv, &err, "commit");
}

static PyMethodDef writer_methods[] = {
    { "add", writer_add, METH_VARARGS, NULL },
    { "commit", writer_commit, METH_NOARGS, NULL },
    { "abort", writer_abort, METH_NOARGS, NULL },
    { NULL },
};

EXT_TYPE (writer, "Writer", "Writes a checkpoint; slurmdl.dump() is simpler.", 0, );

/* ---- find, remove ---- */

PyObject *remove_checkpoint (PyObject *module, PyObject *path_object)
{
    const char *path = text_of (path_object, "path");
    struct slurmdl_error err = { "" };
    int rv;

    if (!path)
        return NULL;
    WITHOUT_GIL (rv = slurmdl_checkpoint_remove (path, &err));
    return none_or_error (rv, &err, path);
}

/* Arguments: dir, max_step, prefer.  Returns (path, step), or None. */
PyObject *find_checkpoint (PyObject *module, PyObject *args)
{
    long long max_step;
    const char *dir;
    PyObject *result;
    int64_t step;
    char *path;
    long prefer;

    if (!PyArg_ParseTuple (args, "sLl:find_checkpoint", &dir, &max_step, &prefer))
        return NULL;
    WITHOUT_GIL (path = slurmdl_checkpoint_find (dir, max_step, prefer, &step));
    if (!path)
        Py_RETURN_NONE;
    result = Py_BuildValue ("(NL)", PyUnicode_DecodeFSDefault (path), (long long)step);
    free (path);
    return result;
}
