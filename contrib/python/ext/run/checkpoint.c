/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of Run that save and restore. */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef int (*save_f) (struct slurmdl *, int64_t, struct slurmdl_error *);
typedef int (*wait_f) (struct slurmdl *, struct slurmdl_error *);

/* Turn a note of the library about a call that succeeded into a warning.  'level' is the
 * number of Python frames up to the user's.
 */
static int warn_of (const struct slurmdl_error *err, int level)
{
    if (!*err->text)
        return 0;
    return PyErr_WarnFormat (PyExc_RuntimeWarning, level, "slurmdl: %s", err->text);
}

static PyObject *save_with (PyObject *o, PyObject *step_object, save_f save)
{
    struct run *self = (struct run *)o;
    int64_t step = PyLong_AsLongLong (step_object);
    struct slurmdl_error err = { "" };
    struct slurmdl *run;
    int rv;

    if ((step == -1 && PyErr_Occurred ()) || !(run = run_enter (self)))
        return NULL;
    WITHOUT_GIL (rv = save (run, step, &err));
    run_leave (self);
    if (rv < 0)
        return raise_error (&err, "save");
    if (warn_of (&err, 1) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *run_save (PyObject *o, PyObject *step)
{
    return save_with (o, step, slurmdl_save);
}

PyObject *run_save_async (PyObject *o, PyObject *step)
{
    return save_with (o, step, slurmdl_save_async);
}

static PyObject *wait_with (PyObject *o, wait_f wait, const char *what)
{
    struct run *self = (struct run *)o;
    struct slurmdl_error err = { "" };
    struct slurmdl *run = run_enter (self);
    int rv;

    if (!run)
        return NULL;
    WITHOUT_GIL (rv = wait (run, &err));
    run_leave (self);
    return none_or_error (rv, &err, what);
}

PyObject *run_wait (PyObject *o, PyObject *unused)
{
    return wait_with (o, slurmdl_save_wait, "save");
}

PyObject *run_save_prepare (PyObject *o, PyObject *unused)
{
    struct run *self = (struct run *)o;
    struct slurmdl *run = run_enter (self);

    if (!run)
        return NULL;
    WITHOUT_GIL (slurmdl_save_prepare (run));
    run_leave (self);
    Py_RETURN_NONE;
}

PyObject *run_flush (PyObject *o, PyObject *unused)
{
    return wait_with (o, slurmdl_flush, "flush");
}

PyObject *run_restore (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    const char *pattern = NULL, *path = NULL;
    struct slurmdl_error err = { "" };
    struct slurmdl *run;
    int64_t step = 0;
    int rv;

    if (!PyArg_ParseTuple (args, "|zz:restore", &pattern, &path) || !(run = run_enter (self)))
        return NULL;
    WITHOUT_GIL (rv = pattern || path ? slurmdl_restore_only (run, pattern, path, &step, &err)
                                      : slurmdl_restore (run, &step, &err));
    run_leave (self);
    if (rv < 0)
        return raise_error (&err, "restore");
    /* warn only once about a damaged file that each restore() skips */
    if (strcmp (err.text, self->told.text)) {
        self->told = err;
        if (warn_of (&err, 2) < 0)
            return NULL;
    }
    if (rv == 0)
        Py_RETURN_NONE;
    return PyLong_FromLongLong (step);
}

PyObject *run_state (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    struct slurmdl *run;
    const char *name;
    Py_buffer bytes;
    int rv = -1;

    if (!PyArg_ParseTuple (args, "sy*:state", &name, &bytes))
        return NULL;
    if ((run = run_enter (self))) {
        rv = slurmdl_state (run, name, bytes.buf, (size_t)bytes.len);
        int e = errno;
        run_leave (self);
        errno = e;
        if (rv < 0 && errno == EINVAL)
            PyErr_Format (PyExc_ValueError,
                          "'%.140s': the name of a state must be 1 to 121 bytes of UTF-8, "
                          "not '/...' or '.../'",
                          name);
        else if (rv < 0)
            raise_error (NULL, name);
    }
    PyBuffer_Release (&bytes);
    if (rv < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *run_read_state (PyObject *o, PyObject *name_object)
{
    struct run *self = (struct run *)o;
    const char *name = text_of (name_object, "name");
    struct slurmdl *run;
    void *bytes = NULL;
    PyObject *result;
    size_t n = 0;
    int rv;

    if (!name || !(run = run_enter (self)))
        return NULL;
    rv = slurmdl_read_state (run, name, &bytes, &n);
    run_leave (self);
    if (rv < 0 && errno == ENOENT)
        Py_RETURN_NONE;
    if (rv < 0)
        return raise_error (NULL, name);
    result = PyBytes_FromStringAndSize (bytes, (Py_ssize_t)n);
    free (bytes);
    return result;
}

/* Return (path, owner, own) of the restored checkpoint, or None. */
PyObject *run_origin (PyObject *o, PyObject *unused)
{
    struct run *self = (struct run *)o;
    struct slurmdl *run = run_enter (self);
    struct slurmdl_origin from;
    PyObject *result;

    if (!run)
        return NULL;
    if (slurmdl_restored_origin (run, &from) == 0)
        result = origin_tuple (&from);
    else if (errno == ENOENT) {
        Py_INCREF (Py_None);
        result = Py_None;
    } else
        result = raise_error (NULL, "restore");
    run_leave (self);
    return result;
}
