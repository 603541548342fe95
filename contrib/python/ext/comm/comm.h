/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the module slurmdl._slurmdl_comm share. */
#pragma once

#include <slurmdl_comm.h>

#define EXT_MODULE "slurmdl._slurmdl_comm"
#include "ext.h"

extern PyType_Spec comm_spec, elastic_spec;
extern PyTypeObject *comm_type;

struct comm {
    PyObject_HEAD struct slurmdl_comm *c; /* NULL: closed */
    PyObject *kept;                       /* dict: ticket to what owns the memory */
    PyObject *parent;                     /* that this one is a part of, or NULL */
    PyThread_type_lock lock;
    unsigned generation;
    int users; /* calls that are under way; changed with the GIL only */
    bool told; /* that it is broken */
    bool lent; /* another handle closes it */
};

/* The open communicator in the process that opened it; NULL with an error. */
struct slurmdl_comm *comm_of (struct comm *self);

/* The same for a call that waits without the GIL, and may run beside others:
 * it is not closed before comm_unuse().
 */
struct slurmdl_comm *comm_use (struct comm *self);
void comm_unuse (struct comm *self);

/* The same for a call that is alone. */
struct slurmdl_comm *comm_enter (struct comm *self);
void comm_leave (struct comm *self);

/* An object of this type around a communicator of another handle's, or NULL;
 * comm_expire() takes it out again when all calls have ended.
 */
PyObject *comm_around (PyTypeObject *type, struct slurmdl_comm *c);
void comm_expire (PyObject *comm);

/* Raise slurmdl.Error, after which close() need not tell it again; NULL. */
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
