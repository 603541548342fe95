/* SPDX-License-Identifier: Apache-2.0 */
/* The module slurmdl._slurmdl: libslurmdl for Python. */
#include "run.h"

PyTypeObject *metric_type;

static PyMethodDef functions[] = {
    { "read_rows", read_rows, METH_VARARGS, NULL },
    { "read_records", read_records, METH_VARARGS, NULL },
    { "find_checkpoint", find_checkpoint, METH_VARARGS, NULL },
    { "remove_checkpoint", remove_checkpoint, METH_O, NULL },
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

/* PyMODINIT_FUNC exports the function only since Python 3.9 */
__attribute__ ((visibility ("default"))) PyMODINIT_FUNC PyInit__slurmdl (void);
PyMODINIT_FUNC PyInit__slurmdl (void)
{
    PyObject *module = PyModule_Create (&definition);

    if (!module)
        return NULL;
    ext_error = PyErr_NewExceptionWithDoc (
        "slurmdl.Error", "An error of libslurmdl, in one line; errno is its cause.",
        PyExc_RuntimeError, NULL);
    Py_XINCREF (ext_error);
    if (ext_error && PyModule_AddObject (module, "Error", ext_error) == 0
        && ext_add_type (module, &run_spec) && (metric_type = ext_add_type (module, &metric_spec))
        && ext_add_type (module, &checkpoint_spec) && ext_add_type (module, &writer_spec)
        && ext_count_forks () == 0)
        return module;
    Py_DECREF (module);
    return NULL;
}
