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

/* ---- run.c ---- */

struct run {
    PyObject_HEAD struct slurmdl *run; /* NULL: closed */
    PyObject *metrics;                 /* dict: name to Metric */
    PyObject *kept; /* dict: name to what owns the protected memory */
    PyThread_type_lock lock;
    unsigned generation;
    bool warned;
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

/* What a logging call returned: None.  Training never fails by a value that
 * is lost: that is said once, as a warning.
 */
PyObject *logged (struct run *self, int rv);

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
