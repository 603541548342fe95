/* SPDX-License-Identifier: Apache-2.0 */
/* The type ParameterServer: a server or a worker of slurmdl_ps.h. */
#include "ps.h"

static struct slurmdl_ps *ps_of (PyObject *o)
{
    struct ps *self = (struct ps *)o;

    bool open = ext_is_open (self->ps, self->generation, "parameter server");

    return open ? self->ps : NULL;
}

struct slurmdl_ps *ps_enter (PyObject *o)
{
    struct ps *self = (struct ps *)o;

    if (!ps_of (o))
        return NULL;
    ext_lock (self->lock);
    if (self->ps)
        return self->ps;
    PyThread_release_lock (self->lock);
    return ps_of (o);
}

void ps_leave (PyObject *o)
{
    PyThread_release_lock (((struct ps *)o)->lock);
}

PyObject *
ps_fails (PyObject *o, const struct slurmdl_error *err, const char *what)
{
    ((struct ps *)o)->told = true;
    return raise_error (err, what);
}

/* ---- open and close ---- */

static PyObject *ps_new (PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = { "role",       "index",     "servers", "workers",
                             "dir",        "address",   "mode",    "staleness",
                             "save_every", "log_bytes", "timeout", "grace",
                             NULL };
    struct slurmdl_ps_options o = { NULL };
    struct slurmdl_error err = { "" };
    long long save_every = 0;
    int mode = 0;
    struct ps *self;

    if (!PyArg_ParseTupleAndKeywords (args,
                                      kw,
                                      "|zlllzzilLLdd:ParameterServer",
                                      names,
                                      &o.role,
                                      &o.index,
                                      &o.servers,
                                      &o.workers,
                                      &o.dir,
                                      &o.address,
                                      &mode,
                                      &o.staleness,
                                      &save_every,
                                      &o.log_bytes,
                                      &o.timeout,
                                      &o.grace)
        || !(self = ext_alloc (type)))
        return NULL;
    o.mode = (enum slurmdl_ps_mode)mode;
    o.save_every = save_every;
    self->generation = generation;
    if ((self->lock = PyThread_allocate_lock ())) {
        WITHOUT_GIL (self->ps = slurmdl_ps_open (&o, &err));
    }
    if (self->ps)
        return (PyObject *)self;
    raise_error (&err, "slurmdl_ps_open");
    Py_DECREF (self);
    return NULL;
}

/* A child of fork() has no part in its parent's. */
static int close_ps (struct ps *self)
{
    struct slurmdl_ps *ps = self->ps;
    int rv = 0;

    self->ps = NULL;
    if (!ps || self->generation != generation)
        return 0;
    Py_BEGIN_ALLOW_THREADS;
    PyThread_acquire_lock (self->lock, WAIT_LOCK);
    rv = slurmdl_ps_close (ps);
    PyThread_release_lock (self->lock);
    Py_END_ALLOW_THREADS;
    return self->told ? 0 : rv;
}

static PyObject *ps_close (PyObject *o, PyObject *unused)
{
    if (close_ps ((struct ps *)o) < 0)
        return raise_error (NULL, "slurmdl_ps_close");
    Py_RETURN_NONE;
}

static void ps_dealloc (PyObject *o)
{
    struct ps *self = (struct ps *)o;

    close_ps (self);
    if (self->lock)
        PyThread_free_lock (self->lock);
    free_object (o);
}

/* ---- a server ---- */

typedef int (*call_f) (struct slurmdl_ps *, struct slurmdl_error *);

static PyObject *call_with (PyObject *o, call_f call, const char *what)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_ps *ps = ps_enter (o);
    int rv;

    if (!ps)
        return NULL;
    WITHOUT_GIL (rv = call (ps, &err));
    ps_leave (o);
    if (rv < 0)
        return ps_fails (o, &err, what);
    Py_RETURN_NONE;
}

/* Nothing else is called meanwhile but stop(), which takes no lock. */
static PyObject *ps_serve (PyObject *o, PyObject *unused)
{
    return call_with (o, slurmdl_ps_serve, "serve");
}

static PyObject *ps_stop (PyObject *o, PyObject *unused)
{
    struct slurmdl_ps *ps = ps_of (o);

    if (!ps)
        return NULL;
    slurmdl_ps_stop (ps);
    Py_RETURN_NONE;
}

/* ---- tables ---- */

static PyObject *ps_table (PyObject *o, PyObject *args)
{
    struct slurmdl_ps_table t = { NULL };
    struct slurmdl_error err = { "" };
    struct slurmdl_ps *ps;
    struct lent l = { .has_view = false };
    PyObject *initial;
    unsigned long long n;
    unsigned long long seed;
    int rule;
    int rv;

    if (!PyArg_ParseTuple (args,
                           "sKIiddddddddKO:table",
                           &t.name,
                           &n,
                           &t.row,
                           &rule,
                           &t.rate,
                           &t.momentum,
                           &t.decay,
                           &t.beta1,
                           &t.beta2,
                           &t.epsilon,
                           &t.low,
                           &t.high,
                           &seed,
                           &initial))
        return NULL;
    t.n = n;
    t.seed = seed;
    t.rule = (enum slurmdl_ps_rule)rule;
    if (initial != Py_None
        && (lent_take (&l, initial, false) < 0
            || lent_fits (&l, SLURMDL_F32, 1, &t.n) < 0)) {
        lent_return (&l);
        return NULL;
    }
    if (!(ps = ps_enter (o))) {
        lent_return (&l);
        return NULL;
    }
    WITHOUT_GIL (rv = slurmdl_ps_table (
                     ps, &t, initial == Py_None ? NULL : l.data, &err));
    ps_leave (o);
    lent_return (&l);
    return rv < 0 ? ps_fails (o, &err, "table") : PyLong_FromLong (rv);
}

static PyObject *ps_rate (PyObject *o, PyObject *args)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_ps *ps;
    double rate;
    int table;
    int rv;

    if (!PyArg_ParseTuple (args, "id:rate", &table, &rate)
        || !(ps = ps_enter (o)))
        return NULL;
    WITHOUT_GIL (rv = slurmdl_ps_rate (ps, table, rate, &err));
    ps_leave (o);
    if (rv < 0)
        return ps_fails (o, &err, "rate");
    Py_RETURN_NONE;
}

/* ---- iterations ---- */

static PyObject *ps_wait (PyObject *o, PyObject *args)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_ps *ps;
    long long ticket;
    int rv;

    if (!PyArg_ParseTuple (args, "L:wait", &ticket) || !(ps = ps_enter (o)))
        return NULL;
    WITHOUT_GIL (rv = slurmdl_ps_wait (ps, ticket, &err));
    ps_leave (o);
    if (rv < 0)
        return ps_fails (o, &err, "wait");
    Py_RETURN_NONE;
}

static PyObject *ps_clock (PyObject *o, PyObject *unused)
{
    return call_with (o, slurmdl_ps_clock, "clock");
}

static PyObject *ps_save (PyObject *o, PyObject *unused)
{
    return call_with (o, slurmdl_ps_save, "save");
}

/* is_server, index, servers, workers, iteration, saved */
static PyObject *ps_facts (PyObject *o, PyObject *unused)
{
    struct slurmdl_ps *ps = ps_of (o);

    if (!ps)
        return NULL;
    return Py_BuildValue ("illlLL",
                          slurmdl_ps_is_server (ps),
                          slurmdl_ps_index (ps),
                          slurmdl_ps_servers (ps),
                          slurmdl_ps_workers (ps),
                          (long long)slurmdl_ps_iteration (ps),
                          (long long)slurmdl_ps_saved (ps));
}

static PyObject *ps_stats (PyObject *o, PyObject *unused)
{
    struct slurmdl_ps *ps = ps_of (o);
    struct slurmdl_ps_stats s;

    if (!ps)
        return NULL;
    slurmdl_ps_stats (ps, &s);
    /* clang-format off */
    return Py_BuildValue (
        "{sKsKsKsKsKsKsKsKsdsL}",
        "pushes", (unsigned long long)s.pushes,
        "pulls", (unsigned long long)s.pulls,
        "bytes_out", (unsigned long long)s.bytes_out,
        "bytes_in", (unsigned long long)s.bytes_in,
        "repeated", (unsigned long long)s.repeated,
        "lost", (unsigned long long)s.lost,
        "saves", (unsigned long long)s.saves,
        "log_bytes", (unsigned long long)s.log_bytes,
        "waited", s.waited,
        "ahead", (long long)s.ahead);
    /* clang-format on */
}

static PyMethodDef ps_methods[] = {
    { "serve", ps_serve, METH_NOARGS, NULL },
    { "stop", ps_stop, METH_NOARGS, NULL },
    { "table", ps_table, METH_VARARGS, NULL },
    { "rate", ps_rate, METH_VARARGS, NULL },
    { "push", ps_push, METH_VARARGS, NULL },
    { "pull", ps_pull, METH_VARARGS, NULL },
    { "push_pull", ps_push_pull, METH_VARARGS, NULL },
    { "push_rows", ps_push_rows, METH_VARARGS, NULL },
    { "pull_rows", ps_pull_rows, METH_VARARGS, NULL },
    { "wait", ps_wait, METH_VARARGS, NULL },
    { "clock", ps_clock, METH_NOARGS, NULL },
    { "save", ps_save, METH_NOARGS, NULL },
    { "facts", ps_facts, METH_NOARGS, NULL },
    { "stats", ps_stats, METH_NOARGS, NULL },
    { "close", ps_close, METH_NOARGS, NULL },
    { NULL },
};

EXT_TYPE (ps,
          "ParameterServer",
          "A parameter server or a worker; use slurmdl.ps.",
          0, );
