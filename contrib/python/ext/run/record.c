/* SPDX-License-Identifier: Apache-2.0 */
/* Logging of records: vectors, histograms, texts, images and events. */
#include "run.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- warnings and errors ---- */

static void warn (const char *text)
{
    if (PyErr_WarnFormat (PyExc_RuntimeWarning, 1, "slurmdl: %s", text) < 0)
        PyErr_WriteUnraisable (NULL);
}

static void warn_once (struct run *self)
{
    bool child = self->generation != generation;

    if (self->warned)
        return;
    self->warned = true;
    warn (self->ended ? "values were dropped: the run was closed when the "
                        "interpreter started to exit"
          : child     ? "values were dropped: this process was forked from the one "
                        "that opened the run; log there"
                      : "values were dropped: more than 1,024 metric names, or the "
                        "disk is full or does not respond");
}

/* Daemon threads always end here, so do not warn about them.  An atexit handler, which
 * runs in the main thread, logs on purpose: its value is lost, so warn.
 */
static void log_at_end (struct run *self)
{
    if (syscall (SYS_gettid) == getpid ())
        warn_once (self);
}

static PyObject *refuse (const char *name, const char *what)
{
    size_t n = strlen (name);

    if (n == 0 || n > 63)
        return PyErr_Format (PyExc_ValueError,
                             "'%.80s': the name of a metric must be 1 to 63 bytes of UTF-8", name);
    return PyErr_Format (PyExc_ValueError, "'%s': must be %s", name, what);
}

PyObject *logged (struct run *self, int rv, const char *name, const char *what)
{
    int e = errno;
    struct slurmdl_error err;

    if (!self->run && self->ended) {
        log_at_end (self);
        Py_RETURN_NONE;
    }
    if (!self->run)
        return (PyObject *)run_of (self);
    if (rv < 0 && e == EINVAL && self->generation == generation && name)
        return refuse (name, what);
    if (self->generation == generation && slurmdl_trouble (self->run, &err))
        warn (err.text);
    else if (rv < 0)
        warn_once (self);
    Py_RETURN_NONE;
}

/* Whether this process writes the run's metrics; a child of fork() does not. */
static bool is_ours (struct run *self)
{
    return self->run && self->generation == generation;
}

/* ---- calls ---- */

PyObject *run_epoch (PyObject *o, PyObject *value)
{
    struct run *self = (struct run *)o;
    double epoch = PyFloat_AsDouble (value);

    if (epoch == -1 && PyErr_Occurred ())
        return NULL;
    return logged (self, is_ours (self) ? slurmdl_epoch (self->run, epoch) : -1, "epoch",
                   "a number");
}

PyObject *run_vector (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    const char *name;
    long long step;
    Py_buffer v;
    int rv = -1;

    if (!PyArg_ParseTuple (args, "sLy*:log_vector", &name, &step, &v))
        return NULL;
    if (is_ours (self))
        rv = slurmdl_log_vector (self->run, name, step, (size_t)v.len / sizeof (double), v.buf);
    int e = errno;
    PyBuffer_Release (&v);
    errno = e;
    return logged (self, rv, name, "a vector of 1 to 2,097,152 numbers");
}

PyObject *run_histogram (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    Py_buffer edges, counts;
    const char *name;
    long long step;
    int rv = -1;

    if (!PyArg_ParseTuple (args, "sLy*y*:log_histogram", &name, &step, &edges, &counts))
        return NULL;
    errno = EINVAL;
    if (is_ours (self) && (size_t)edges.len == (size_t)counts.len + sizeof (double))
        rv = slurmdl_log_histogram (self->run, name, step, (size_t)counts.len / sizeof (uint64_t),
                                    edges.buf, counts.buf);
    int e = errno;
    PyBuffer_Release (&edges);
    PyBuffer_Release (&counts);
    errno = e;
    return logged (self, rv, name,
                   "a histogram of at most 16 MiB with ascending edges, one more than its counts");
}

/* Arguments: name, step, type, memory, number of elements. */
PyObject *run_samples (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    const char *name, *type_name;
    PyObject *memory;
    struct lent l;
    long long step;
    uint64_t n;
    int type, rv = -1;

    if (!PyArg_ParseTuple (args, "sLsOK:log_samples", &name, &step, &type_name, &memory, &n)
        || (type = type_of_name (type_name)) < 0 || lent_take (&l, memory, false) < 0)
        return NULL;
    if (lent_fits (&l, (enum slurmdl_type)type, 1, &n) < 0) {
        lent_return (&l);
        return NULL;
    }
    if (is_ours (self))
        rv = slurmdl_log_samples (self->run, name, step, (enum slurmdl_type)type, n, l.data);
    int e = errno;
    lent_return (&l);
    errno = e;
    return logged (self, rv, name, "an array in host memory");
}

PyObject *run_text (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    const char *name, *text;
    long long step;

    if (!PyArg_ParseTuple (args, "sLs:log_text", &name, &step, &text))
        return NULL;
    return logged (self, is_ours (self) ? slurmdl_log_text (self->run, name, step, text) : -1, name,
                   "a text of less than 16 MiB");
}

/* Arguments: name, step, width, height, channels, pixels. */
PyObject *run_image (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    unsigned width, height, channels;
    const char *name;
    long long step;
    Py_buffer p;
    int rv = -1;

    if (!PyArg_ParseTuple (args, "sLIIIy*:log_image", &name, &step, &width, &height, &channels, &p))
        return NULL;
    errno = EINVAL;
    if (is_ours (self) && (uint64_t)p.len == (uint64_t)width * height * channels)
        rv = slurmdl_log_image (self->run, name, step, width, height, channels, p.buf);
    int e = errno;
    PyBuffer_Release (&p);
    errno = e;
    return logged (self, rv, name, "an image of at most 16 MiB with 1 to 4 channels");
}

PyObject *run_event (PyObject *o, PyObject *args)
{
    struct run *self = (struct run *)o;
    const char *kind, *json;

    if (!PyArg_ParseTuple (args, "ss:log_event", &kind, &json))
        return NULL;
    return logged (self, is_ours (self) ? slurmdl_event (self->run, kind, json) : -1, kind,
                   "an event of less than 16 MiB");
}
