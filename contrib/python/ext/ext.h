/* SPDX-License-Identifier: Apache-2.0 */
/* What the modules _slurmdl and _slurmdl_comm share; each has its own copy.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pythread.h>
#include <stdbool.h>
#include <stdint.h>

#include <slurmdl.h>

/* Python's methods have parameters that few of ours need. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Before Python 3.9 an object of a type of ours did not own it. */
#if PY_VERSION_HEX >= 0x03090000
#define EXT_VISIT_TYPE(o) Py_VISIT (Py_TYPE (o))
#else
#define EXT_VISIT_TYPE(o)
#endif

/* A statement that waits. */
#define WITHOUT_GIL(statement)                                                                     \
    do {                                                                                           \
        Py_BEGIN_ALLOW_THREADS;                                                                    \
        statement;                                                                                 \
        Py_END_ALLOW_THREADS;                                                                      \
    } while (0)

/* ---- common.c ---- */

extern PyObject *ext_error; /* slurmdl.Error */

/* One more in each child of fork(), which leaves the parent's runs alone. */
extern unsigned generation;

/* Raise slurmdl.Error with the text of 'err', else that of errno; NULL. */
PyObject *raise_error (const struct slurmdl_error *err, const char *what);

/* None; the same for a negative 'rv'. */
PyObject *none_or_error (int rv, const struct slurmdl_error *err, const char *what);

/* Whether a handle is open in the process that opened it, or an error: "the
 * WHAT is closed".
 */
bool ext_is_open (const void *handle, unsigned of, const char *what);

/* Take a lock without the GIL. */
void ext_lock (PyThread_type_lock lock);

/* A text as UTF-8, which lives as long as 'o'; NULL with TypeError. */
const char *text_of (PyObject *o, const char *what);

/* What tp_clear does to a dict of an object: it is empty, and stays until the
 * object goes, as others of the cycle may still call the object.
 */
void empty_dict (PyObject *dict);

/* A new object of a type of ours, of zeros. */
void *ext_alloc (PyTypeObject *type);

/* The end of a dealloc of a type of ours. */
void free_object (PyObject *o);

/* Count forks from now on; -1 with an error. */
int ext_count_forks (void);

/* A type of ours in a module: borrowed, or NULL with an error. */
PyTypeObject *ext_add_type (PyObject *module, PyType_Spec *spec);

/* The same for a module beside slurmdl._slurmdl, whose Error it raises. */
PyObject *ext_module (struct PyModuleDef *definition, PyType_Spec *const *specs,
                      PyTypeObject **types);

/* PyType_Spec KIND_spec of struct KIND: its slots are KIND_new, KIND_dealloc,
 * KIND_methods, and what follows 'more', flags besides the default.
 */
#define EXT_TYPE(kind, text, doc, more, ...)                                                       \
    static PyType_Slot kind##_slots[] = {                                                          \
        { Py_tp_doc, doc },                                                                        \
        { Py_tp_new, kind##_new },                                                                 \
        { Py_tp_dealloc, kind##_dealloc },                                                         \
        { Py_tp_methods, kind##_methods },                                                         \
        __VA_ARGS__{ 0 },                                                                          \
    };                                                                                             \
    PyType_Spec kind##_spec = { .name = EXT_MODULE "." text,                                       \
                                .basicsize = sizeof (struct kind),                                 \
                                .flags = Py_TPFLAGS_DEFAULT | (more),                              \
                                .slots = kind##_slots }

/* ---- memory.c ---- */

/* Memory that Python lent: of an object with a buffer, or an address. */
struct lent {
    Py_buffer view;
    bool has_view;
    void *data;
    size_t bytes; /* SIZE_MAX where only an address is known */
};

int lent_take (struct lent *l, PyObject *o, bool writable);
void lent_return (struct lent *l);

/* "f32" to SLURMDL_F32; -1 with ValueError. */
int type_of_name (const char *name);
const char *name_of_type (enum slurmdl_type type);

/* Bytes of 'n' elements; SIZE_MAX where that is no number of bytes. */
size_t size_of_array (int type, Py_ssize_t n);

/* At most SLURMDL_DIMS_MAX numbers of a tuple; their count or -1. */
int dims_of (PyObject *tuple, uint64_t *dims);
PyObject *tuple_of (const uint64_t *dims, int n);

/* Bytes of a tensor; -1 with ValueError if 'l' has less. */
int lent_fits (const struct lent *l, enum slurmdl_type type, int ndims, const uint64_t *dims);

PyObject *format_of (PyObject *module, PyObject *o);
PyObject *has_cuda (PyObject *module, PyObject *unused);
PyObject *item_size (PyObject *module, PyObject *name);

/* What protect() and protect_shard() are given: (name, type, shape, memory,
 * owner), and of a slab three shapes: of the tensor, where it is, its own.
 */
struct protect_args {
    const char *name;
    enum slurmdl_type type;
    int ndims;
    uint64_t dims[SLURMDL_DIMS_MAX];
    uint64_t at[SLURMDL_DIMS_MAX], part[SLURMDL_DIMS_MAX]; /* of a slab */
    struct lent memory;                                    /* lent_return() it */
    PyObject *owner;
};

/* -1 with an error, and nothing is lent. */
int protect_args_of (PyObject *args, struct protect_args *p);
int protect_slab_of (PyObject *args, struct protect_args *p);
