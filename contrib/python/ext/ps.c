/* SPDX-License-Identifier: Apache-2.0 */
/* The type ParameterServer: a server or a worker of slurmdl_ps.h. */
#include <slurmdl_ps.h>

#include "ext.h"

#include <errno.h>
#include <string.h>

struct ps {
    PyObject_HEAD struct slurmdl_ps *ps; /* NULL: closed */
    PyThread_type_lock lock;
    unsigned generation;
    bool told; /* that it is broken */
};

static struct slurmdl_ps *ps_of (PyObject *o)
{
    struct ps *self = (struct ps *)o;

    if (!self->ps)
        PyErr_SetString (PyExc_ValueError, "the parameter server is closed");
    else if (self->generation != generation)
        PyErr_SetString (PyExc_RuntimeError,
                         "the parameter server is that of the process that "
                         "this one was forked from");
    else
        return self->ps;
    return NULL;
}

/* Takes the lock, which ps_leave() gives back. */
static struct slurmdl_ps *ps_enter (PyObject *o)
{
    struct ps *self = (struct ps *)o;

    if (!ps_of (o))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    PyThread_acquire_lock (self->lock, WAIT_LOCK);
    Py_END_ALLOW_THREADS;
    if (self->ps)
        return self->ps;
    PyThread_release_lock (self->lock);
    return ps_of (o);
}

static void ps_leave (PyObject *o)
{
    PyThread_release_lock (((struct ps *)o)->lock);
}

static PyObject *
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
    allocfunc alloc = (allocfunc)PyType_GetSlot (type, Py_tp_alloc);
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
        || !(self = (struct ps *)alloc (type, 0)))
        return NULL;
    o.mode = (enum slurmdl_ps_mode)mode;
    o.save_every = save_every;
    self->generation = generation;
    if ((self->lock = PyThread_allocate_lock ())) {
        Py_BEGIN_ALLOW_THREADS;
        self->ps = slurmdl_ps_open (&o, &err);
        Py_END_ALLOW_THREADS;
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
    (void)unused;
    if (close_ps ((struct ps *)o) < 0)
        return raise_error (NULL, "slurmdl_ps_close");
    Py_RETURN_NONE;
}

static void ps_dealloc (PyObject *o)
{
    PyTypeObject *type = Py_TYPE (o);
    freefunc release = (freefunc)PyType_GetSlot (type, Py_tp_free);
    struct ps *self = (struct ps *)o;

    close_ps (self);
    if (self->lock)
        PyThread_free_lock (self->lock);
    release (o);
    Py_DECREF (type);
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
    Py_BEGIN_ALLOW_THREADS;
    rv = call (ps, &err);
    Py_END_ALLOW_THREADS;
    ps_leave (o);
    if (rv < 0)
        return ps_fails (o, &err, what);
    Py_RETURN_NONE;
}

/* Nothing else is called meanwhile but stop(), which takes no lock. */
static PyObject *ps_serve (PyObject *o, PyObject *unused)
{
    (void)unused;
    return call_with (o, slurmdl_ps_serve, "serve");
}

static PyObject *ps_stop (PyObject *o, PyObject *unused)
{
    struct slurmdl_ps *ps = ps_of (o);

    (void)unused;
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
    Py_BEGIN_ALLOW_THREADS;
    rv = slurmdl_ps_table (ps, &t, initial == Py_None ? NULL : l.data, &err);
    Py_END_ALLOW_THREADS;
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
    Py_BEGIN_ALLOW_THREADS;
    rv = slurmdl_ps_rate (ps, table, rate, &err);
    Py_END_ALLOW_THREADS;
    ps_leave (o);
    if (rv < 0)
        return ps_fails (o, &err, "rate");
    Py_RETURN_NONE;
}

/* ---- push and pull ---- */

enum verb { PUSH, PULL, PUSH_ROWS, PULL_ROWS, PUSH_PULL };

struct call {
    enum verb verb;
    int table, later;
    unsigned long long n; /* elements, or rows */
    unsigned row;
    struct lent data, ids, out;
    int64_t ticket;
};

static int
do_call (struct slurmdl_ps *ps, struct call *c, struct slurmdl_error *e)
{
    int64_t *ticket = c->later ? &c->ticket : NULL;

    switch (c->verb) {
    case PUSH:
        return slurmdl_ps_push (ps, c->table, c->data.data, ticket, e);
    case PULL:
        return slurmdl_ps_pull (ps, c->table, c->data.data, ticket, e);
    case PUSH_ROWS:
        return slurmdl_ps_push_rows (
            ps, c->table, c->ids.data, c->n, c->data.data, ticket, e);
    case PULL_ROWS:
        return slurmdl_ps_pull_rows (
            ps, c->table, c->ids.data, c->n, c->data.data, ticket, e);
    case PUSH_PULL:
        return slurmdl_ps_push_pull (
            ps, c->table, c->data.data, c->out.data, e);
    }
    return -1;
}

static int
take_memory (struct call *c, PyObject *data, PyObject *ids, PyObject *out)
{
    bool writes = c->verb == PULL || c->verb == PULL_ROWS;
    uint64_t dims[2] = { c->n, c->row };

    if (lent_take (&c->data, data, writes) < 0
        || lent_fits (&c->data, SLURMDL_F32, 2, dims) < 0)
        return -1;
    if (ids
        && (lent_take (&c->ids, ids, false) < 0
            || lent_fits (&c->ids, SLURMDL_U64, 1, dims) < 0))
        return -1;
    return out
                   && (lent_take (&c->out, out, true) < 0
                       || lent_fits (&c->out, SLURMDL_F32, 2, dims) < 0)
               ? -1
               : 0;
}

static PyObject *
call (PyObject *o, struct call *c, PyObject *data, PyObject *ids, PyObject *out)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_ps *ps = NULL;
    int rv = -1;

    if (take_memory (c, data, ids, out) == 0 && (ps = ps_enter (o))) {
        Py_BEGIN_ALLOW_THREADS;
        rv = do_call (ps, c, &err);
        Py_END_ALLOW_THREADS;
        ps_leave (o);
    }
    lent_return (&c->data);
    lent_return (&c->ids);
    lent_return (&c->out);
    if (!ps)
        return NULL;
    return rv < 0 ? ps_fails (o, &err, "push or pull")
                  : PyLong_FromLongLong (c->ticket);
}

/* table, memory, its elements, whether a ticket is wanted */
static PyObject *call_dense (PyObject *o, PyObject *args, enum verb verb)
{
    struct call c = { .verb = verb, .row = 1 };
    PyObject *data;

    if (!PyArg_ParseTuple (args, "iOKp", &c.table, &data, &c.n, &c.later))
        return NULL;
    return call (o, &c, data, NULL, NULL);
}

static PyObject *ps_push (PyObject *o, PyObject *args)
{
    return call_dense (o, args, PUSH);
}

static PyObject *ps_pull (PyObject *o, PyObject *args)
{
    return call_dense (o, args, PULL);
}

static PyObject *ps_push_pull (PyObject *o, PyObject *args)
{
    struct call c = { .verb = PUSH_PULL, .row = 1 };
    PyObject *data;
    PyObject *out;

    if (!PyArg_ParseTuple (args, "iOOK", &c.table, &data, &out, &c.n))
        return NULL;
    return call (o, &c, data, NULL, out);
}

/* table, ids, how many, memory, elements of a row, whether a ticket is wanted
 */
static PyObject *call_rows (PyObject *o, PyObject *args, enum verb verb)
{
    struct call c = { .verb = verb };
    PyObject *data;
    PyObject *ids;

    if (!PyArg_ParseTuple (
            args, "iOKOIp", &c.table, &ids, &c.n, &data, &c.row, &c.later))
        return NULL;
    return call (o, &c, data, ids, NULL);
}

static PyObject *ps_push_rows (PyObject *o, PyObject *args)
{
    return call_rows (o, args, PUSH_ROWS);
}

static PyObject *ps_pull_rows (PyObject *o, PyObject *args)
{
    return call_rows (o, args, PULL_ROWS);
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
    Py_BEGIN_ALLOW_THREADS;
    rv = slurmdl_ps_wait (ps, ticket, &err);
    Py_END_ALLOW_THREADS;
    ps_leave (o);
    if (rv < 0)
        return ps_fails (o, &err, "wait");
    Py_RETURN_NONE;
}

static PyObject *ps_clock (PyObject *o, PyObject *unused)
{
    (void)unused;
    return call_with (o, slurmdl_ps_clock, "clock");
}

static PyObject *ps_save (PyObject *o, PyObject *unused)
{
    (void)unused;
    return call_with (o, slurmdl_ps_save, "save");
}

/* is_server, index, servers, workers, iteration, saved */
static PyObject *ps_facts (PyObject *o, PyObject *unused)
{
    struct slurmdl_ps *ps = ps_of (o);

    (void)unused;
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

    (void)unused;
    if (!ps)
        return NULL;
    slurmdl_ps_stats (ps, &s);
    return Py_BuildValue ("{sKsKsKsKsKsKsKsKsdsL}",
                          "pushes",
                          (unsigned long long)s.pushes,
                          "pulls",
                          (unsigned long long)s.pulls,
                          "bytes_out",
                          (unsigned long long)s.bytes_out,
                          "bytes_in",
                          (unsigned long long)s.bytes_in,
                          "repeated",
                          (unsigned long long)s.repeated,
                          "lost",
                          (unsigned long long)s.lost,
                          "saves",
                          (unsigned long long)s.saves,
                          "log_bytes",
                          (unsigned long long)s.log_bytes,
                          "waited",
                          s.waited,
                          "ahead",
                          (long long)s.ahead);
}

static PyMethodDef methods[] = {
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

static PyType_Slot slots[] = {
    { Py_tp_new, ps_new },
    { Py_tp_dealloc, ps_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, "A parameter server or a worker; use slurmdl.ps." },
    { 0, NULL },
};

PyType_Spec ps_spec = {
    .name = "slurmdl._slurmdl.ParameterServer",
    .basicsize = sizeof (struct ps),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
