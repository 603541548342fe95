/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, strings, types and forks. */
#include "ext.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

PyObject *ext_error;
unsigned generation;

static void count_python_fork (void)
{
    generation++;
}

PyObject *raise_error (const struct slurmdl_error *err, const char *what)
{
    bool told = err && *err->text;
    int e = errno;
    PyObject *text = told ? PyUnicode_DecodeLocale (err->text, "surrogateescape")
                          : PyUnicode_FromFormat ("%s: %s", what, strerror (e));
    PyObject *number = PyLong_FromLong (e);
    PyObject *error = NULL;

    if (text && number)
        error = PyObject_CallFunctionObjArgs (ext_error, text, NULL);
    if (error && PyObject_SetAttrString (error, "errno", number) == 0)
        PyErr_SetObject (ext_error, error);
    Py_XDECREF (text);
    Py_XDECREF (number);
    Py_XDECREF (error);
    return NULL;
}

PyObject *none_or_error (int rv, const struct slurmdl_error *err, const char *what)
{
    if (rv < 0)
        return raise_error (err, what);
    Py_RETURN_NONE;
}

bool ext_is_open (const void *handle, unsigned of, const char *what)
{
    if (!handle)
        PyErr_Format (PyExc_ValueError, "the %s is closed", what);
    else if (of != generation)
        PyErr_Format (PyExc_RuntimeError,
                      "the %s belongs to the process that this one was forked from", what);
    return handle && of == generation;
}

void ext_lock (PyThread_type_lock lock)
{
    WITHOUT_GIL (PyThread_acquire_lock (lock, WAIT_LOCK));
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
    PyErr_Format (PyExc_ValueError, "%s must not contain NUL: %R", what, o);
    return NULL;
}

void empty_dict (PyObject *dict)
{
    if (dict)
        PyDict_Clear (dict);
}

void *ext_alloc (PyTypeObject *type)
{
    return ((allocfunc)PyType_GetSlot (type, Py_tp_alloc)) (type, 0);
}

void free_object (PyObject *o)
{
    PyTypeObject *type = Py_TYPE (o);
    freefunc release = (freefunc)PyType_GetSlot (type, Py_tp_free);

    release (o);
    Py_DECREF (type);
}

int ext_count_forks (void)
{
    if (pthread_atfork (NULL, NULL, count_python_fork) == 0)
        return 0;
    PyErr_NoMemory ();
    return -1;
}

PyTypeObject *ext_add_type (PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec (spec);

    /* on success, the module owns the reference */
    if (!type || PyModule_AddObject (module, strrchr (spec->name, '.') + 1, type) == 0)
        return (PyTypeObject *)type;
    Py_DECREF (type);
    return NULL;
}

static int import_error_type (void)
{
    PyObject *first = PyImport_ImportModule ("slurmdl._slurmdl");

    ext_error = first ? PyObject_GetAttrString (first, "Error") : NULL;
    Py_XDECREF (first);
    return ext_error ? 0 : -1;
}

PyObject *ext_module (struct PyModuleDef *definition, PyType_Spec *const *specs,
                      PyTypeObject **types)
{
    PyObject *module = PyModule_Create (definition);
    bool good = module && import_error_type () == 0 && ext_count_forks () == 0;

    for (int i = 0; good && specs[i]; i++)
        good = (types[i] = ext_add_type (module, specs[i])) != NULL;
    if (good)
        return module;
    Py_XDECREF (module);
    return NULL;
}
