/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the extension slurmdl._slurmdl share. */
#ifndef PYTHON_EXT_H
#define PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pythread.h>
#include <stdbool.h>
#include <stdint.h>

#include <slurmdl.h>

/* ---- module.c ---- */

/* The types and the exception: made when the module is imported. */
struct types {
    PyObject *error; /* slurmdl.Error */
    PyTypeObject *run, *metric, *checkpoint, *writer, *comm, *elastic, *ps;
};
extern struct types types;

/* One more in each child of fork(), which leaves the parent's runs alone. */
extern unsigned generation;

/* Raise slurmdl.Error with the text of 'err', else that of errno; NULL. */
PyObject *raise_error (const struct slurmdl_error *err, const char *what);

/* A text as UTF-8, which lives as long as 'o'; NULL with TypeError. */
const char *text_of (PyObject *o, const char *what);

/* The end of a dealloc of a type of ours. */
void free_object (PyObject *o);

/* PyType_Spec KIND_spec of struct KIND: its slots are KIND_new, KIND_dealloc,
 * KIND_methods, and what follows 'doc'.
 */
#define EXT_TYPE(kind, text, doc, ...)                                         \
    static PyType_Slot kind##_slots[] = {                                      \
        { Py_tp_doc, doc },                                                    \
        { Py_tp_new, kind##_new },                                             \
        { Py_tp_dealloc, kind##_dealloc },                                     \
        { Py_tp_methods, kind##_methods },                                     \
        __VA_ARGS__{ 0 },                                                      \
    };                                                                         \
    PyType_Spec kind##_spec = { .name = "slurmdl._slurmdl." text,              \
                                .basicsize = sizeof (struct kind),             \
                                .flags = Py_TPFLAGS_DEFAULT,                   \
                                .slots = kind##_slots }

/* ---- run.c ---- */

struct run {
    PyObject_HEAD struct slurmdl *run; /* NULL: closed */
    PyObject *metrics;                 /* dict: name to Metric */
    PyObject *kept; /* dict: name to what owns the protected memory */
    PyThread_type_lock lock;
    unsigned generation;
    bool warned;
    bool ended; /* with the interpreter: what is logged yet is lost */
};

extern PyType_Spec run_spec;

/* The open run of 'self' in the process that opened it; NULL with an error. */
struct slurmdl *run_of (struct run *self);

/* The same, for calls that wait: takes the lock of the run, without the GIL.
 * run_leave() gives it back.
 */
struct slurmdl *run_enter (struct run *self);
void run_leave (struct run *self);

/* ---- log.c ---- */

extern PyType_Spec metric_spec;
PyObject *
run_log (PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *run_metric (PyObject *self, PyObject *name);

/* ---- record.c ---- */

PyObject *run_epoch (PyObject *self, PyObject *value);
PyObject *run_vector (PyObject *self, PyObject *args);
PyObject *run_histogram (PyObject *self, PyObject *args);
PyObject *run_samples (PyObject *self, PyObject *args);
PyObject *run_text (PyObject *self, PyObject *args);
PyObject *run_image (PyObject *self, PyObject *args);
PyObject *run_event (PyObject *self, PyObject *args);

/* What a logging call returned: None.  Training never fails by a disk that
 * takes nothing or a value that is lost: that is said once, as a warning.
 * A thread that still logs while the interpreter ends is told nothing.
 * Arguments that make no sense (EINVAL) are a ValueError: of 'name' only 'what'
 * can be logged.
 */
PyObject *logged (struct run *self, int rv, const char *name, const char *what);

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
int lent_fits (const struct lent *l,
               enum slurmdl_type type,
               int ndims,
               const uint64_t *dims);

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
    struct lent memory; /* lent_return() it */
    PyObject *owner;
};

/* -1 with an error, and nothing is lent. */
int protect_args_of (PyObject *args, struct protect_args *p);
int protect_slab_of (PyObject *args, struct protect_args *p);
PyObject *run_protect (PyObject *self, PyObject *args);
PyObject *run_protect_shard (PyObject *self, PyObject *args);
PyObject *run_unprotect (PyObject *self, PyObject *args);

/* ---- file.c, rows.c ---- */

extern PyType_Spec checkpoint_spec, writer_spec;
PyObject *find_checkpoint (PyObject *module, PyObject *args);
PyObject *read_rows (PyObject *module, PyObject *args);
PyObject *read_records (PyObject *module, PyObject *args);

/* ---- comm.c ---- */

extern PyType_Spec comm_spec;

/* ---- elastic.c ---- */

extern PyType_Spec elastic_spec;

/* ---- ps.c ---- */

extern PyType_Spec ps_spec;

#endif
