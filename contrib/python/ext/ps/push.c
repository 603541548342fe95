/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes and pulls of a parameter server's worker. */
#include "ps.h"

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
        WITHOUT_GIL (rv = do_call (ps, c, &err));
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

PyObject *ps_push (PyObject *o, PyObject *args)
{
    return call_dense (o, args, PUSH);
}

PyObject *ps_pull (PyObject *o, PyObject *args)
{
    return call_dense (o, args, PULL);
}

PyObject *ps_push_pull (PyObject *o, PyObject *args)
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

PyObject *ps_push_rows (PyObject *o, PyObject *args)
{
    return call_rows (o, args, PUSH_ROWS);
}

PyObject *ps_pull_rows (PyObject *o, PyObject *args)
{
    return call_rows (o, args, PULL_ROWS);
}
