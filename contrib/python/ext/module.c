/* SPDX-License-Identifier: Apache-2.0 */
/* The module slurmdl._slurmdl: libslurmdl for Python. */
#include "ext.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

struct types types;
unsigned generation;

static void count_fork (void)
{
    generation++;
}

PyObject *raise_error (const struct slurmdl_error *err, const char *what)
{
    bool told = err && *err->text;
    int e = errno;
    PyObject *text = told
                         ? PyUnicode_DecodeLocale (err->text, "surrogateescape")
                         : PyUnicode_FromFormat ("%s: %s", what, strerror (e));
    PyObject *number = PyLong_FromLong (e);
    PyObject *error = NULL;

    if (text && number)
        error = PyObject_CallFunctionObjArgs (types.error, text, NULL);
    if (error && PyObject_SetAttrString (error, "errno", number) == 0)
        PyErr_SetObject (types.error, error);
    Py_XDECREF (text);
    Py_XDECREF (number);
    Py_XDECREF (error);
    return NULL;
}

const char *text_of (PyObject *o, const char *what)
{
    const char *text;
    Py_ssize_t n;

    if (!PyUnicode_Check (o)) {
        PyErr_Format (PyExc_TypeError, "%s must be a string, not %R", what, o);
        return NULL;
    }
    if (!(text = PyUnicode_AsUTF8AndSize (o, &n)) || strlen (text) == (size_t)n)
        return text;
    PyErr_Format (PyExc_ValueError, "%s has no NUL: %R", what, o);
    return NULL;
}

void free_object (PyObject *o)
{
    PyTypeObject *type = Py_TYPE (o);
    freefunc release = (freefunc)PyType_GetSlot (type, Py_tp_free);

    release (o);
    Py_DECREF (type);
}

static int add (PyObject *module, const char *name, PyObject *o)
{
    Py_XINCREF (o);
    if (o && PyModule_AddObject (module, name, o) == 0)
        return 0;
    Py_XDECREF (o);
    return -1;
}

static int add_type (PyObject *module, PyType_Spec *spec, PyTypeObject **type)
{
    PyObject *o = PyType_FromSpec (spec);

    *type = (PyTypeObject *)o;
    return add (module, strrchr (spec->name, '.') + 1, o);
}

static PyMethodDef functions[] = {
    { "read_rows", read_rows, METH_VARARGS, NULL },
    { "read_records", read_records, METH_VARARGS, NULL },
    { "find_checkpoint", find_checkpoint, METH_VARARGS, NULL },
    { "format_of", format_of, METH_O, NULL },
    { "has_cuda", has_cuda, METH_NOARGS, NULL },
    { "item_size", item_size, METH_O, NULL },
    { NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "slurmdl._slurmdl",
    .m_doc = "libslurmdl for Python; use the package slurmdl.",
    .m_size = -1,
    .m_methods = functions,
};

/* before Python 3.9 its macro did not say so */
__attribute__ ((visibility ("default"))) PyMODINIT_FUNC PyInit__slurmdl (void);
PyMODINIT_FUNC PyInit__slurmdl (void)
{
    PyObject *module = PyModule_Create (&definition);

    if (!module)
        return NULL;
    types.error = PyErr_NewExceptionWithDoc (
        "slurmdl.Error",
        "What libslurmdl cannot do, in one line; errno says why.",
        PyExc_RuntimeError,
        NULL);
    if (add (module, "Error", types.error) == 0
        && add_type (module, &run_spec, &types.run) == 0
        && add_type (module, &metric_spec, &types.metric) == 0
        && add_type (module, &checkpoint_spec, &types.checkpoint) == 0
        && add_type (module, &writer_spec, &types.writer) == 0
        && add_type (module, &comm_spec, &types.comm) == 0
        && add_type (module, &elastic_spec, &types.elastic) == 0
        && add_type (module, &ps_spec, &types.ps) == 0
        && pthread_atfork (NULL, NULL, count_fork) == 0)
        return module;
    Py_DECREF (module);
    return NULL;
}
