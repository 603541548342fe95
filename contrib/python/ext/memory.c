/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of Python objects, and its type and shape. */
#include "ext.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- types ---- */

struct type_row {
    enum slurmdl_type type;
    const char *name;   /* in checkpoints and in slurmdl's Python modules */
    const char *format; /* of a Python buffer; NULL if Python has none */
    size_t size;
};

/* clang-format off */
static const struct type_row type_rows[] = {
    { SLURMDL_I8,      "i8",      "b",  1 },
    { SLURMDL_U8,      "u8",      "B",  1 },
    { SLURMDL_I16,     "i16",     "h",  2 },
    { SLURMDL_U16,     "u16",     "H",  2 },
    { SLURMDL_I32,     "i32",     "i",  4 },
    { SLURMDL_U32,     "u32",     "I",  4 },
    { SLURMDL_I64,     "i64",     "q",  8 },
    { SLURMDL_U64,     "u64",     "Q",  8 },
    { SLURMDL_F16,     "f16",     "e",  2 },
    { SLURMDL_F32,     "f32",     "f",  4 },
    { SLURMDL_F64,     "f64",     "d",  8 },
    { SLURMDL_BF16,    "bf16",    NULL, 2 },
    { SLURMDL_BOOL,    "bool",    "?",  1 },
    { SLURMDL_C64,     "c64",     "Zf", 8 },
    { SLURMDL_C128,    "c128",    "Zd", 16 },
    { SLURMDL_F8_E4M3, "f8_e4m3", NULL, 1 },
    { SLURMDL_F8_E5M2, "f8_e5m2", NULL, 1 },
};
/* clang-format on */
enum { TYPES = sizeof (type_rows) / sizeof (*type_rows) };

int type_of_name (const char *name)
{
    for (int i = 0; i < TYPES; i++)
        if (!strcmp (type_rows[i].name, name))
            return (int)type_rows[i].type;
    PyErr_Format (PyExc_ValueError, "unknown element type '%s'", name);
    return -1;
}

const char *name_of_type (enum slurmdl_type type)
{
    for (int i = 0; i < TYPES; i++)
        if (type_rows[i].type == type)
            return type_rows[i].name;
    return "?";
}

static size_t size_of_type (enum slurmdl_type type)
{
    for (int i = 0; i < TYPES; i++)
        if (type_rows[i].type == type)
            return type_rows[i].size;
    return 0;
}

PyObject *item_size (PyObject *module, PyObject *name)
{
    const char *text = text_of (name, "type");
    int type = text ? type_of_name (text) : -1;

    return type < 0 ? NULL : PyLong_FromSize_t (size_of_type ((enum slurmdl_type)type));
}

size_t size_of_array (int type, Py_ssize_t n)
{
    size_t bytes;

    if (n < 0 || __builtin_mul_overflow ((size_t)n, size_of_type ((enum slurmdl_type)type), &bytes))
        return SIZE_MAX;
    return bytes;
}

/* A format of "l" has 4 or 8 bytes, depending on the platform and on "=" or "<". */
static const char *name_of_format (const char *format, Py_ssize_t size)
{
    if (!format)
        format = "B";
    if (*format == '@' || *format == '=' || *format == '<')
        format++;
    if (!strcmp (format, "l"))
        format = size == 8 ? "q" : "i";
    if (!strcmp (format, "L"))
        format = size == 8 ? "Q" : "I";
    for (int i = 0; i < TYPES; i++)
        if (type_rows[i].format && !strcmp (type_rows[i].format, format))
            return type_rows[i].name;
    return NULL;
}

/* ---- borrowed memory ---- */

int lent_take (struct lent *l, PyObject *o, bool writable)
{
    *l = (struct lent){ .bytes = SIZE_MAX };
    if (PyLong_Check (o)) {
        l->data = PyLong_AsVoidPtr (o);
        return PyErr_Occurred () ? -1 : 0;
    }
    if (PyObject_GetBuffer (o, &l->view,
                            PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0))
        < 0)
        return -1;
    l->has_view = true;
    l->data = l->view.buf;
    l->bytes = (size_t)l->view.len;
    return 0;
}

void lent_return (struct lent *l)
{
    if (l->has_view)
        PyBuffer_Release (&l->view);
}

int lent_fits (const struct lent *l, enum slurmdl_type type, int ndims, const uint64_t *dims)
{
    uint64_t bytes = size_of_type (type);

    for (int i = 0; i < ndims; i++)
        if (__builtin_mul_overflow (bytes, dims[i], &bytes))
            bytes = UINT64_MAX;
    if (bytes <= l->bytes)
        return 0;
    PyErr_SetString (PyExc_ValueError, "the memory is smaller than its shape requires");
    return -1;
}

/* Return (type, shape, memoryview) of an object with a buffer.  The view keeps the memory. */
PyObject *format_of (PyObject *module, PyObject *o)
{
    struct lent l;
    uint64_t dims[SLURMDL_DIMS_MAX] = { 0 };
    const char *name;
    PyObject *result = NULL;

    if (lent_take (&l, o, false) < 0)
        return NULL;
    name = l.has_view ? name_of_format (l.view.format, l.view.itemsize) : NULL;
    for (int i = 0; name && i < l.view.ndim && i < SLURMDL_DIMS_MAX; i++)
        dims[i] = (uint64_t)l.view.shape[i];
    if (!name || l.view.ndim > SLURMDL_DIMS_MAX)
        PyErr_Format (PyExc_TypeError,
                      "%s: not an array of numbers in native byte order with at most 8 dimensions",
                      l.has_view && l.view.format ? l.view.format : "an int");
    else
        result = Py_BuildValue ("(sNN)", name, tuple_of (dims, l.view.ndim),
                                PyMemoryView_FromObject (o));
    lent_return (&l);
    return result;
}

/* Whether the library can copy memory of a CUDA device.  Without its CUDA module, it
 * would read a device address as if it were host memory.
 */
PyObject *has_cuda (PyObject *module, PyObject *unused)
{
    const char *dir = getenv ("DL_BACKEND_DIR");
    char path[PATH_MAX];
    void *h;

    snprintf (path, sizeof (path), "%s/slurmdl-cuda.so", dir && *dir ? dir : PKGLIBDIR);
    h = dlopen (path, RTLD_NOW | RTLD_LOCAL);
    return PyBool_FromLong (h && dlsym (h, "slurmdl_memory_cuda"));
}

/* ---- shapes ---- */

int dims_of (PyObject *tuple, uint64_t *dims)
{
    Py_ssize_t n = PyTuple_Check (tuple) ? PyTuple_Size (tuple) : -1;

    if (n < 0 || n > SLURMDL_DIMS_MAX) {
        PyErr_SetString (PyExc_ValueError, "a shape must be a tuple of at most 8 numbers");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        dims[i] = PyLong_AsUnsignedLongLong (PyTuple_GetItem (tuple, i));
        if (PyErr_Occurred ())
            return -1;
    }
    return (int)n;
}

PyObject *tuple_of (const uint64_t *dims, int n)
{
    PyObject *tuple = PyTuple_New (n);

    for (int i = 0; tuple && i < n; i++) {
        PyObject *d = PyLong_FromUnsignedLongLong (dims[i]);
        if (!d || PyTuple_SetItem (tuple, i, d) < 0) {
            Py_DECREF (tuple);
            return NULL;
        }
    }
    return tuple;
}

/* ---- protected memory ---- */

static int take_memory (struct protect_args *p, PyObject *memory, const uint64_t *dims)
{
    if (lent_take (&p->memory, memory, true) < 0)
        return -1;
    if (lent_fits (&p->memory, p->type, p->ndims, dims) == 0)
        return 0;
    lent_return (&p->memory);
    return -1;
}

static int set_protect_type (struct protect_args *p, const char *type_name)
{
    int type = type_of_name (type_name);

    p->type = (enum slurmdl_type)type;
    return type < 0 ? -1 : 0;
}

int protect_args_of (PyObject *args, struct protect_args *p)
{
    const char *type_name;
    PyObject *shape, *memory;

    if (!PyArg_ParseTuple (args, "ssOOO:protect", &p->name, &type_name, &shape, &memory, &p->owner)
        || set_protect_type (p, type_name) < 0 || (p->ndims = dims_of (shape, p->dims)) < 0)
        return -1;
    return take_memory (p, memory, p->dims);
}

int protect_slab_of (PyObject *args, struct protect_args *p)
{
    const char *type_name;
    PyObject *global, *offset, *local, *memory;

    if (!PyArg_ParseTuple (args, "ssOOOOO:protect_shard", &p->name, &type_name, &global, &offset,
                           &local, &memory, &p->owner)
        || set_protect_type (p, type_name) < 0 || (p->ndims = dims_of (global, p->dims)) < 0
        || dims_of (offset, p->at) < 0 || dims_of (local, p->part) < 0)
        return -1;
    if (PyTuple_Size (offset) == p->ndims && PyTuple_Size (local) == p->ndims)
        return take_memory (p, memory, p->part);
    PyErr_Format (PyExc_ValueError,
                  "%s: the offset and shape of a slab must have as many dimensions as the tensor",
                  p->name);
    return -1;
}
