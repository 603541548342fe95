/* SPDX-License-Identifier: Apache-2.0 */
/* The module slurmdl._slurmdl. */
#pragma once

#define EXT_MODULE "slurmdl._slurmdl"
#include "ext.h"

/* ---- run.c ---- */

struct run {
    PyObject_HEAD struct slurmdl *run; /* NULL: closed */
    PyObject *metrics;                 /* dict: name to Metric */
    PyObject *kept;                    /* dict: name to the owner of the protected memory */
    PyThread_type_lock lock;
    unsigned generation;
    bool warned;
    struct slurmdl_error told; /* the last warning of restore(), not to repeat it */
    bool ended;                /* the interpreter is exiting: values logged now are dropped */
};

extern PyType_Spec run_spec;

/* Return the open run.  Returns NULL with an exception if it is closed, or if another
 * process opened it.
 */
struct slurmdl *run_of (struct run *self);

/* The same for calls that may block: also acquires the run's lock, and releases the GIL
 * while it waits for it.  Release the lock with run_leave().
 */
struct slurmdl *run_enter (struct run *self);
void run_leave (struct run *self);

/* ---- checkpoint.c: methods ---- */

PyObject *run_save (PyObject *self, PyObject *step);
PyObject *run_save_async (PyObject *self, PyObject *step);
PyObject *run_wait (PyObject *self, PyObject *unused);
PyObject *run_save_prepare (PyObject *self, PyObject *unused);
PyObject *run_flush (PyObject *self, PyObject *unused);
PyObject *run_restore (PyObject *self, PyObject *args);
PyObject *run_state (PyObject *self, PyObject *args);
PyObject *run_read_state (PyObject *self, PyObject *name_object);
PyObject *run_origin (PyObject *self, PyObject *unused);

/* ---- log.c ---- */

extern PyType_Spec metric_spec;
extern PyTypeObject *metric_type;
PyObject *run_log (PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *run_metric (PyObject *self, PyObject *name);

/* ---- record.c ---- */

PyObject *run_epoch (PyObject *self, PyObject *value);
PyObject *run_vector (PyObject *self, PyObject *args);
PyObject *run_histogram (PyObject *self, PyObject *args);
PyObject *run_samples (PyObject *self, PyObject *args);
PyObject *run_text (PyObject *self, PyObject *args);
PyObject *run_image (PyObject *self, PyObject *args);
PyObject *run_event (PyObject *self, PyObject *args);

/* Convert the result of a logging call.  A full disk or a lost value must not stop the
 * training: warn once and return None.  A thread that still logs while the interpreter
 * exits gets no warning.  Invalid arguments (EINVAL) raise ValueError: "'NAME': must be
 * WHAT".
 */
PyObject *logged (struct run *self, int rv, const char *name, const char *what);

/* ---- protect.c ---- */

PyObject *run_protect (PyObject *self, PyObject *args);
PyObject *run_protect_shard (PyObject *self, PyObject *args);
PyObject *run_unprotect (PyObject *self, PyObject *args);

/* ---- file.c, rows.c ---- */

extern PyType_Spec checkpoint_spec, writer_spec;

/* Return (path, owner, own). */
PyObject *origin_tuple (const struct slurmdl_origin *from);
PyObject *find_checkpoint (PyObject *module, PyObject *args);
PyObject *remove_checkpoint (PyObject *module, PyObject *path_object);
PyObject *read_rows (PyObject *module, PyObject *args);
PyObject *read_records (PyObject *module, PyObject *args);
