/* SPDX-License-Identifier: Apache-2.0 */
/* The module slurmdl._slurmdl_comm. */
#pragma once

#include <slurmdl_comm.h>

#define EXT_MODULE "slurmdl._slurmdl_comm"
#include "ext.h"

extern PyType_Spec comm_spec, elastic_spec;
extern PyTypeObject *comm_type;

struct comm {
    PyObject_HEAD struct slurmdl_comm *c; /* NULL: closed */
    PyObject *kept;                       /* dict: ticket to the owners of its memory */
    PyObject *parent; /* the communicator that this one was split from, or NULL */
    PyThread_type_lock lock;
    unsigned generation;
    int users; /* number of calls in progress; access it only with the GIL */
    bool told; /* a failure was raised, so close() need not raise it again */
    bool lent; /* an Elastic owns 'c' and closes it */
};

/* Return the open communicator.  Returns NULL with an exception if it is closed, or if
 * another process opened it.
 */
struct slurmdl_comm *comm_of (struct comm *self);

/* The same for a call that releases the GIL and may run in parallel with others.  The
 * communicator stays open until comm_unuse().
 */
struct slurmdl_comm *comm_use (struct comm *self);
void comm_unuse (struct comm *self);

/* The same for a call that must not run in parallel with another such call. */
struct slurmdl_comm *comm_enter (struct comm *self);
void comm_leave (struct comm *self);

/* Create an object of this type around a communicator that an Elastic owns.  Returns NULL
 * with an exception.  comm_expire() waits for the calls in progress and detaches it.
 */
PyObject *comm_around (PyTypeObject *type, struct slurmdl_comm *c);
void comm_expire (PyObject *comm);

/* Raise slurmdl.Error.  Afterwards close() raises no further error.  Returns NULL. */
PyObject *comm_fails (struct comm *self, const struct slurmdl_error *err, const char *what);

/* ---- collective.c ---- */

PyObject *comm_allreduce (PyObject *self, PyObject *args);
PyObject *comm_reduce (PyObject *self, PyObject *args);
PyObject *comm_reduce_scatter (PyObject *self, PyObject *args);
PyObject *comm_allgather (PyObject *self, PyObject *args);
PyObject *comm_broadcast (PyObject *self, PyObject *args);
PyObject *comm_alltoall (PyObject *self, PyObject *args);
PyObject *comm_barrier (PyObject *self, PyObject *unused);

/* ---- named.c ---- */

PyObject *comm_submit (PyObject *self, PyObject *args);
PyObject *comm_done (PyObject *self, PyObject *ticket);
PyObject *comm_wait (PyObject *self, PyObject *ticket);
PyObject *comm_take (PyObject *self, PyObject *ticket);
PyObject *comm_join (PyObject *self, PyObject *unused);
PyObject *comm_timeline (PyObject *self, PyObject *args);
PyObject *comm_trouble (PyObject *self, PyObject *unused);
PyObject *comm_stats (PyObject *self, PyObject *unused);
