/* SPDX-License-Identifier: Apache-2.0 */
/* The type Run: opening, closing, attributes and stop requests. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- open runs ---- */

struct slurmdl *run_of (struct run *self)
{
    return ext_is_open (self->run, self->generation, "run") ? self->run : NULL;
}

struct slurmdl *run_enter (struct run *self)
{
    if (!run_of (self))
        return NULL;
    ext_lock (self->lock);
    if (self->run)
        return self->run;
    PyThread_release_lock (self->lock);
    return run_of (self);
}

void run_leave (struct run *self)
{
    PyThread_release_lock (self->lock);
}

static PyObject *open_run (struct run *self, const char *dir)
{
    struct slurmdl_error err = { "" };

    self->generation = generation;
    self->metrics = PyDict_New ();
    self->kept = PyDict_New ();
    self->lock = PyThread_allocate_lock ();
    if (!self->metrics || !self->kept || !self->lock)
        return PyErr_NoMemory ();
    WITHOUT_GIL (self->run = slurmdl_open (dir, &err));
    return self->run ? (PyObject *)self : raise_error (&err, "slurmdl");
}

static PyObject *run_new (PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = { "dir", NULL };
    const char *dir = NULL;
    struct run *self;

    if (!PyArg_ParseTupleAndKeywords (args, kw, "|z:Run", names, &dir)
        || !(self = ext_alloc (type)))
        return NULL;
    if (open_run (self, dir))
        return (PyObject *)self;
    Py_DECREF (self);
    return NULL;
}

/* In a child of fork(), leave the parent's run alone. */
static int close_run (struct run *self)
{
    struct slurmdl *run = self->run;
    int rv = 0;

    self->run = NULL;
    if (!run || self->generation != generation)
        return 0;
    WITHOUT_GIL (rv = slurmdl_close (run));
    return rv;
}

static PyObject *run_close (PyObject *o, PyObject *unused)
{
    struct run *self = (struct run *)o;
    struct slurmdl_error err;
    struct slurmdl *run;
    int rv;

    if (!self->run || self->generation != generation)
        Py_RETURN_NONE;
    if (!(run = run_enter (self)))
        return NULL;
    snprintf (err.text, sizeof (err.text), "%.150s", slurmdl_dir (run));
    rv = close_run (self);
    run_leave (self);
    PyDict_Clear (self->kept);
    if (rv == 0)
        Py_RETURN_NONE;
    snprintf (err.text + strlen (err.text), sizeof (err.text) - strlen (err.text),
              ": metrics were lost or a save failed: %s", strerror (errno));
    return raise_error (&err, "close");
}

static PyObject *run_close_at_exit (PyObject *o, PyObject *unused)
{
    ((struct run *)o)->ended = true;
    return run_close (o, unused);
}

static int run_traverse (PyObject *o, visitproc visit, void *arg)
{
    struct run *self = (struct run *)o;

    EXT_VISIT_TYPE (o);
    Py_VISIT (self->metrics);
    Py_VISIT (self->kept);
    return 0;
}

static int run_clear (PyObject *o)
{
    struct run *self = (struct run *)o;

    close_run (self); /* first: a save in flight may still read the memory in 'kept' */
    empty_dict (self->metrics);
    empty_dict (self->kept);
    return 0;
}

static void run_dealloc (PyObject *o)
{
    struct run *self = (struct run *)o;

    PyObject_GC_UnTrack (o);
    run_clear (o);
    Py_XDECREF (self->metrics);
    Py_XDECREF (self->kept);
    if (self->lock)
        PyThread_free_lock (self->lock);
    free_object (o);
}

/* ---- attributes ---- */

enum fact { EXPERIMENT, TRIAL, ATTEMPT, DIR, SEED, RANK, SIZE, LENGTH, LOST };

static PyObject *get_run_fact (PyObject *o, void *which)
{
    struct slurmdl *run = run_of ((struct run *)o);

    if (!run)
        return NULL;
    switch ((enum fact) (intptr_t)which) {
    case EXPERIMENT:
        return PyUnicode_FromString (slurmdl_experiment (run));
    case TRIAL:
        return PyLong_FromLong (slurmdl_trial (run));
    case ATTEMPT:
        return PyLong_FromLong (slurmdl_attempt (run));
    case DIR:
        return PyUnicode_DecodeFSDefault (slurmdl_dir (run));
    case SEED:
        return PyLong_FromUnsignedLong (slurmdl_seed (run));
    case RANK:
        return PyLong_FromLong (slurmdl_rank (run));
    case SIZE:
        return PyLong_FromLong (slurmdl_size (run));
    case LENGTH:
        return PyLong_FromLongLong (slurmdl_length (run));
    case LOST:
        return PyLong_FromLongLong (slurmdl_lost (run));
    }
    return NULL;
}

static PyObject *get_run_closed (PyObject *o, void *unused)
{
    return PyBool_FromLong (!((struct run *)o)->run);
}

/* clang-format off */
static PyGetSetDef run_facts[] = {
    { "experiment", get_run_fact,   NULL, "Name of the experiment, '' if none.", (void *)EXPERIMENT },
    { "trial",      get_run_fact,   NULL, "Number of the trial, 0 if none.",     (void *)TRIAL },
    { "attempt",    get_run_fact,   NULL, "Number of this attempt: 1, 2, ...",   (void *)ATTEMPT },
    { "dir",        get_run_fact,   NULL, "Folder of this attempt.",             (void *)DIR },
    { "seed",       get_run_fact,   NULL, "Seed of the trial.",                  (void *)SEED },
    { "rank",       get_run_fact,   NULL, "Rank of this process.",               (void *)RANK },
    { "size",       get_run_fact,   NULL, "Number of ranks.",                    (void *)SIZE },
    { "length",     get_run_fact,   NULL, "Length to train to now.",             (void *)LENGTH },
    { "lost",       get_run_fact,   NULL, "Values lost so far.",                 (void *)LOST },
    { "closed",     get_run_closed, NULL, "Whether the run is closed.",          NULL },
    { NULL },
};
/* clang-format on */

/* ---- stopping ---- */

static PyObject *run_should_stop (PyObject *o, PyObject *unused)
{
    struct run *self = (struct run *)o;

    if (self->run)
        return PyBool_FromLong (slurmdl_should_stop (self->run));
    run_of (self);
    return NULL;
}

static PyObject *run_request_stop (PyObject *o, PyObject *unused)
{
    struct slurmdl *run = run_of ((struct run *)o);

    if (!run)
        return NULL;
    slurmdl_request_stop (run);
    Py_RETURN_NONE;
}

static PyObject *run_stop_here (PyObject *o, PyObject *step_object)
{
    struct run *self = (struct run *)o;
    int64_t step = PyLong_AsLongLong (step_object);
    struct slurmdl *run;
    int rv;

    if ((step == -1 && PyErr_Occurred ()) || !(run = run_enter (self)))
        return NULL;
    WITHOUT_GIL (rv = slurmdl_stop_here (run, step));
    run_leave (self);
    return rv < 0 ? raise_error (NULL, "stop_here") : PyBool_FromLong (rv);
}

/* clang-format off */
static PyMethodDef run_methods[] = {
    { "log", (PyCFunction)(void (*) (void))run_log, METH_FASTCALL | METH_KEYWORDS,
      "log(name, value, step) or log({name: value}, step): log scalars." },
    { "metric", run_metric, METH_O,
      "metric($self, name, /)\n--\n\nThe metric of this name; its log(step, value) is the fastest way to log." },
    { "log_epoch",     run_epoch,     METH_O,       NULL },
    { "log_vector",    run_vector,    METH_VARARGS, NULL },
    { "log_histogram", run_histogram, METH_VARARGS, NULL },
    { "log_samples",   run_samples,   METH_VARARGS, NULL },
    { "log_text",      run_text,      METH_VARARGS, NULL },
    { "log_image",     run_image,     METH_VARARGS, NULL },
    { "log_event",     run_event,     METH_VARARGS, NULL },
    { "flush", run_flush, METH_NOARGS,
      "flush($self, /)\n--\n\nWait until what was logged is on stable storage." },
    { "protect_memory", run_protect,       METH_VARARGS, NULL },
    { "protect_slab",   run_protect_shard, METH_VARARGS, NULL },
    { "forget",         run_unprotect,     METH_VARARGS, NULL },
    { "state", run_state, METH_VARARGS,
      "state($self, name, data, /)\n--\n\nAdd a copy of these bytes to later checkpoints." },
    { "read_state", run_read_state, METH_O,
      "read_state($self, name, /)\n--\n\nRead these bytes from the restored checkpoint; None if there are none." },
    { "save", run_save, METH_O,
      "save($self, step, /)\n--\n\nSave a checkpoint; it is on stable storage when this returns." },
    { "save_prepare", run_save_prepare, METH_NOARGS,
      "save_prepare($self, /)\n--\n\nLet a thread allocate the memory for the first save_async()." },
    { "save_async", run_save_async, METH_O,
      "save_async($self, step, /)\n--\n\nCopy the protected memory and return; a thread writes the checkpoint." },
    { "wait", run_wait, METH_NOARGS,
      "wait($self, /)\n--\n\nWait until no save is in flight; raises if one failed." },
    { "restore_memory", run_restore, METH_VARARGS, NULL },
    { "restored_origin", run_origin, METH_NOARGS, NULL },
    { "should_stop", run_should_stop, METH_NOARGS,
      "should_stop($self, /)\n--\n\nWhether a stop was requested: save a checkpoint and return." },
    { "request_stop", run_request_stop, METH_NOARGS,
      "request_stop($self, /)\n--\n\nRequest a stop of this process." },
    { "stop_here", run_stop_here, METH_O,
      "stop_here($self, step, /)\n--\n\nWhether to stop at this step, with the same answer on all ranks." },
    { "close", run_close, METH_NOARGS,
      "close($self, /)\n--\n\nFlush and close; raises if metrics were lost or a save failed." },
    { "close_at_exit", run_close_at_exit, METH_NOARGS,
      "close_at_exit($self, /)\n--\n\nLike close(), when the interpreter exits: drop values that threads still log, without an error." },
    { NULL },
};
/* clang-format on */

EXT_TYPE (run, "Run", "Base class of the run that slurmdl.init() returns.",
          Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, { Py_tp_traverse, run_traverse },
          { Py_tp_clear, run_clear }, { Py_tp_getset, run_facts }, );
