/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the modules _slurmdl and _slurmdl_comm.  Each module links its own copy. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pythread.h>
#include <stdbool.h>
#include <stdint.h>

#include <slurmdl.h>

/* CPython prescribes the parameters of methods; few of ours use them all. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Since Python 3.9, tp_traverse of a heap type must visit the type itself. */
#if PY_VERSION_HEX >= 0x03090000
#define EXT_VISIT_TYPE(o) Py_VISIT (Py_TYPE (o))
#else
#define EXT_VISIT_TYPE(o)
#endif

/* Run a statement that may block, so that other Python threads can run meanwhile. */
#define WITHOUT_GIL(statement)                                                                     \
    do {                                                                                           \
        Py_BEGIN_ALLOW_THREADS;                                                                    \
        statement;                                                                                 \
        Py_END_ALLOW_THREADS;                                                                      \
    } while (0)

/* ---- common.c ---- */

extern PyObject *ext_error; /* slurmdl.Error */

/* The number of forks from the process that loaded the module to this one.  A handle
 * with another generation belongs to an ancestor, so leave it alone.
 */
extern unsigned generation;

/* Raise slurmdl.Error with the text of 'err', or with that of errno if 'err' is NULL
 * or empty.  Returns NULL.
 */
PyObject *raise_error (const struct slurmdl_error *err, const char *what);

/* Return None, or raise_error() if 'rv' is negative. */
PyObject *none_or_error (int rv, const struct slurmdl_error *err, const char *what);

/* Whether a handle is open, and this process opened it.  If not, set an exception, such
 * as "the WHAT is closed".
 */
bool ext_is_open (const void *handle, unsigned of, const char *what);

/* Acquire a lock; releases the GIL while it waits. */
void ext_lock (PyThread_type_lock lock);

/* Return a str as UTF-8, valid as long as 'o'.  Returns NULL with an exception if 'o' is
 * no str or contains NUL.
 */
const char *text_of (PyObject *o, const char *what);

/* Clear an object's dict in tp_clear.  Keep the empty dict until the object is
 * deallocated, because other objects in the cycle may still call its methods.
 */
void empty_dict (PyObject *dict);

/* Allocate a zeroed object of one of our types. */
void *ext_alloc (PyTypeObject *type);

/* Free the object and drop its reference to its type.  Call it last in tp_dealloc. */
void free_object (PyObject *o);

/* Update 'generation' in each child of fork() from now on.  Returns -1 with an exception. */
int ext_count_forks (void);

/* Create a type and add it to the module.  Returns a borrowed reference, or NULL with an
 * exception.
 */
PyTypeObject *ext_add_type (PyObject *module, PyType_Spec *spec);

/* Create a module other than slurmdl._slurmdl, with its types.  It raises the Error of
 * slurmdl._slurmdl.
 */
PyObject *ext_module (struct PyModuleDef *definition, PyType_Spec *const *specs,
                      PyTypeObject **types);

/* Define KIND_spec for the type of struct KIND, with the slots KIND_new, KIND_dealloc,
 * KIND_methods and those after 'more', which is flags to add to the default.
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

/* Memory borrowed from Python: an object's buffer, or a bare address. */
struct lent {
    Py_buffer view;
    bool has_view;
    void *data;
    size_t bytes; /* SIZE_MAX for a bare address */
};

int lent_take (struct lent *l, PyObject *o, bool writable);
void lent_return (struct lent *l);

/* "f32" to SLURMDL_F32; -1 with ValueError. */
int type_of_name (const char *name);
const char *name_of_type (enum slurmdl_type type);

/* Bytes of 'n' elements; SIZE_MAX if 'n' is negative or the product overflows. */
size_t size_of_array (int type, Py_ssize_t n);

/* Convert a tuple of at most SLURMDL_DIMS_MAX numbers.  Returns their count, or -1 with an
 * exception.
 */
int dims_of (PyObject *tuple, uint64_t *dims);
PyObject *tuple_of (const uint64_t *dims, int n);

/* Check that 'l' has room for the tensor.  Returns -1 with ValueError if not. */
int lent_fits (const struct lent *l, enum slurmdl_type type, int ndims, const uint64_t *dims);

PyObject *format_of (PyObject *module, PyObject *o);
PyObject *has_cuda (PyObject *module, PyObject *unused);
PyObject *item_size (PyObject *module, PyObject *name);

/* Arguments of protect(): (name, type, shape, memory, owner), and of protect_shard():
 * (name, type, shape of the tensor, offset of the slab, shape of the slab, memory, owner).
 */
struct protect_args {
    const char *name;
    enum slurmdl_type type;
    int ndims;
    uint64_t dims[SLURMDL_DIMS_MAX];
    uint64_t at[SLURMDL_DIMS_MAX], part[SLURMDL_DIMS_MAX]; /* offset and shape of a slab */
    struct lent memory;                                    /* the caller must lent_return() it */
    PyObject *owner;
};

/* Return -1 with an exception; 'p->memory' then holds nothing to return. */
int protect_args_of (PyObject *args, struct protect_args *p);
int protect_slab_of (PyObject *args, struct protect_args *p);
