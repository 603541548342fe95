/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the module slurmdl._slurmdl_ps share. */
#pragma once

#include <slurmdl_ps.h>

#define EXT_MODULE "slurmdl._slurmdl_ps"
#include "ext.h"

extern PyType_Spec ps_spec;

struct ps {
    PyObject_HEAD struct slurmdl_ps *ps; /* NULL: closed */
    PyThread_type_lock lock;
    unsigned generation;
    bool told; /* that it is broken */
};

/* Takes the lock, which ps_leave() gives back. */
struct slurmdl_ps *ps_enter (PyObject *o);
void ps_leave (PyObject *o);

/* slurmdl.Error; NULL. */
PyObject *
ps_fails (PyObject *o, const struct slurmdl_error *err, const char *what);

/* ---- push.c ---- */

PyObject *ps_push (PyObject *o, PyObject *args);
PyObject *ps_pull (PyObject *o, PyObject *args);
PyObject *ps_push_pull (PyObject *o, PyObject *args);
PyObject *ps_push_rows (PyObject *o, PyObject *args);
PyObject *ps_pull_rows (PyObject *o, PyObject *args);
