/* SPDX-License-Identifier: Apache-2.0 */
/* The named tensors of the type Comm. */
#include "comm.h"

#include <errno.h>
#include <stdlib.h>

/* Return an object that keeps the memory of an argument: a memoryview.  For an address or
 * None, return the argument; then the 'owner' argument keeps the memory.
 */
static PyObject *view_of (PyObject *o)
{
    if (PyLong_Check (o) || o == Py_None) {
        Py_INCREF (o);
        return o;
    }
    return PyMemoryView_FromObject (o);
}

/* Submit a request and return its ticket.  'kept' keeps its memory until it completes. */
static PyObject *submit_request (struct comm *self, const struct slurmdl_request *r, PyObject *kept)
{
    struct slurmdl_comm *c = comm_of (self);
    struct slurmdl_error err = { "" };
    int64_t ticket = c ? slurmdl_submit (c, r, &err) : 0;
    PyObject *number;

    if (ticket < 0)
        return raise_error (&err, r->name);
    if (!c)
        return NULL;
    number = PyLong_FromLongLong (ticket);
    if (!number || PyDict_SetItem (self->kept, number, kept) < 0) {
        Py_INCREF (kept); /* leak it: the request still reads and writes the memory */
        Py_CLEAR (number);
    }
    return number;
}

/* Elements that 'out' must hold.  SIZE_MAX for an allgather, whose result also depends on
 * the rows of the other ranks.
 */
static size_t out_elements (const struct comm *self, const struct slurmdl_request *r)
{
    size_t row = r->row ? r->row : 1;
    size_t size = (size_t)slurmdl_comm_size (self->c);
    size_t rank = (size_t)slurmdl_comm_rank (self->c);

    if (r->what == SLURMDL_ALLGATHER)
        return SIZE_MAX;
    if (r->what != SLURMDL_REDUCE_SCATTER)
        return r->n;
    return (r->n / row / size + (rank < r->n / row % size)) * row;
}

/* Arguments: name, what, type, op, n, row, shape, root, in, out or None, prescale,
 * postscale, compression, group or None, members, owner, stream.  Returns a ticket.
 */
PyObject *comm_submit (PyObject *o, PyObject *args)
{
    struct comm *self = (struct comm *)o;
    struct slurmdl_request r = { 0 };
    const char *type_name;
    PyObject *in, *out, *owner, *shape, *kept = NULL, *number = NULL;
    struct lent lent_in = { 0 }, lent_out = { 0 };
    uint64_t dims[SLURMDL_DIMS_MAX];
    Py_ssize_t stream;
    int type;
    size_t item = 0, room, room_out;

    if (!PyArg_ParseTuple (args, "sisinnOlOOddiznOn:submit", &r.name, &r.what, &type_name, &r.op,
                           &r.n, &r.row, &shape, &r.root, &in, &out, &r.prescale, &r.postscale,
                           &r.compression, &r.group, &r.members, &owner, &stream)
        || (r.ndims = dims_of (shape, dims)) < 0 || (type = type_of_name (type_name)) < 0
        || !comm_of (self))
        return NULL;
    r.dims = dims;
    if (r.what != SLURMDL_ALLGATHER || r.row != SLURMDL_ZERO_WIDTH)
        item = size_of_array (type, 1);
    room = item ? size_of_array (type, (Py_ssize_t)r.n) : 0;
    room_out = size_of_array (type, (Py_ssize_t)out_elements (self, &r));
    if (lent_take (&lent_in, in, false) < 0)
        return NULL;
    if (out != Py_None && lent_take (&lent_out, out, true) < 0)
        goto out;
    if (room > lent_in.bytes || room == SIZE_MAX
        || (out != Py_None && (room_out > lent_out.bytes || room_out == SIZE_MAX))) {
        PyErr_SetString (PyExc_ValueError, "the memory is smaller than its shape requires");
        goto out;
    }
    if (!(kept = Py_BuildValue ("(NNOn)", view_of (in), view_of (out), owner, (Py_ssize_t)item)))
        goto out;
    r.type = (enum slurmdl_type)type;
    r.in = lent_in.data;
    r.out = lent_out.data;
    r.stream = (void *)stream;
    number = submit_request (self, &r, kept);
out:
    lent_return (&lent_in);
    lent_return (&lent_out);
    Py_XDECREF (kept);
    return number;
}

static int ticket_of (PyObject *o, int64_t *ticket)
{
    *ticket = PyLong_AsLongLong (o);
    return *ticket == -1 && PyErr_Occurred () ? -1 : 0;
}

PyObject *comm_done (PyObject *o, PyObject *ticket_object)
{
    struct slurmdl_comm *c = comm_of ((struct comm *)o);
    int64_t ticket;

    if (!c || ticket_of (ticket_object, &ticket) < 0)
        return NULL;
    return PyBool_FromLong (slurmdl_done (c, ticket) != 0);
}

/* The request is complete: release its memory. */
static void forget_ticket (struct comm *self, PyObject *ticket_object)
{
    if (PyDict_DelItem (self->kept, ticket_object) < 0)
        PyErr_Clear ();
}

/* The same for all 'tickets', except requests without 'out': comm_take() still has to
 * return their results.
 */
static void forget_all (struct comm *self, PyObject *tickets)
{
    for (Py_ssize_t i = 0; i < PyList_Size (tickets); i++) {
        PyObject *one = PyList_GetItem (tickets, i);
        PyObject *kept = PyDict_GetItem (self->kept, one);
        if (kept && PyTuple_GetItem (kept, 1) != Py_None)
            forget_ticket (self, one);
    }
}

/* Bytes of an element of a request; 0 for rows of zero width. */
static int size_of_ticket (struct comm *self, PyObject *ticket_object)
{
    PyObject *kept = PyDict_GetItem (self->kept, ticket_object);

    return kept ? (int)PyLong_AsLong (PyTuple_GetItem (kept, 3)) : 0;
}

PyObject *comm_wait (PyObject *o, PyObject *ticket_object)
{
    struct comm *self = (struct comm *)o;
    struct slurmdl_error err = { "" };
    struct slurmdl_comm *c;
    PyObject *all = NULL;
    int64_t ticket;
    int rv;

    if (ticket_of (ticket_object, &ticket) < 0 || !(c = comm_use (self)))
        return NULL;
    /* list them now: other threads may submit more while we wait */
    if (ticket == 0 && !(all = PyDict_Keys (self->kept))) {
        comm_unuse (self);
        return NULL;
    }
    WITHOUT_GIL (rv = slurmdl_wait (c, ticket, &err));
    comm_unuse (self);
    if (all)
        forget_all (self, all);
    else
        forget_ticket (self, ticket_object);
    Py_XDECREF (all);
    if (rv < 0)
        return comm_fails (self, &err, "wait");
    Py_RETURN_NONE;
}

static PyObject *taken_result (int type_size, const void *out, size_t n, const size_t *counts,
                               long size)
{
    PyObject *tuple = PyTuple_New (size);

    for (long r = 0; tuple && r < size; r++)
        if (PyTuple_SetItem (tuple, r, PyLong_FromSize_t (counts[r])) < 0)
            Py_CLEAR (tuple);
    if (!tuple)
        return NULL;
    return Py_BuildValue ("(y#N)", out ? out : "", out ? (Py_ssize_t)n * type_size : 0, tuple);
}

/* Argument: a ticket.  Returns (bytes, (elements from each rank, ...)). */
PyObject *comm_take (PyObject *o, PyObject *ticket_object)
{
    struct comm *self = (struct comm *)o;
    struct slurmdl_error err = { "" };
    PyObject *result = NULL;
    struct slurmdl_comm *c;
    size_t *counts = NULL;
    void *out = NULL;
    size_t n = 0;
    int64_t ticket;
    int size;
    int rv = -1;

    if (ticket_of (ticket_object, &ticket) < 0 || !(c = comm_use (self)))
        return NULL;
    size = size_of_ticket (self, ticket_object);
    Py_BEGIN_ALLOW_THREADS;
    counts = calloc ((size_t)slurmdl_comm_size (c), sizeof (*counts));
    if (counts)
        rv = slurmdl_take (c, ticket, &out, &n, counts, &err);
    Py_END_ALLOW_THREADS;
    /* without 'counts', or if the request has an 'out' (EINVAL), it is still in flight */
    if (counts && (rv == 0 || errno != EINVAL))
        forget_ticket (self, ticket_object);
    if (rv == 0)
        result = taken_result (size, out, n, counts, slurmdl_comm_size (c));
    else
        comm_fails (self, &err, "take");
    comm_unuse (self);
    free (counts);
    free (out);
    return result;
}

PyObject *comm_join (PyObject *o, PyObject *unused)
{
    struct comm *self = (struct comm *)o;
    struct slurmdl_comm *c = comm_use (self);
    struct slurmdl_error err = { "" };
    long last = -1;
    int rv;

    if (!c)
        return NULL;
    WITHOUT_GIL (rv = slurmdl_join (c, &last, &err));
    comm_unuse (self);
    return rv < 0 ? comm_fails (self, &err, "join") : PyLong_FromLong (last);
}

PyObject *comm_timeline (PyObject *o, PyObject *args)
{
    struct comm *self = (struct comm *)o;
    struct slurmdl_error err = { "" };
    struct slurmdl_comm *c;
    const char *path;
    int cycles;

    if (!PyArg_ParseTuple (args, "zp:timeline", &path, &cycles) || !(c = comm_enter (self)))
        return NULL;
    if (slurmdl_timeline (c, path, cycles, &err) < 0)
        raise_error (&err, "timeline");
    comm_leave (self);
    if (PyErr_Occurred ())
        return NULL;
    Py_RETURN_NONE;
}

PyObject *comm_trouble (PyObject *o, PyObject *unused)
{
    struct slurmdl_comm *c = comm_of ((struct comm *)o);
    struct slurmdl_error err = { "" };

    if (!c)
        return NULL;
    if (slurmdl_comm_trouble (c, &err))
        return PyUnicode_DecodeLocale (err.text, NULL);
    Py_RETURN_NONE;
}

PyObject *comm_stats (PyObject *o, PyObject *unused)
{
    struct slurmdl_comm *c = comm_of ((struct comm *)o);
    struct slurmdl_comm_stats s;

    if (!c)
        return NULL;
    slurmdl_comm_stats (c, &s);
    /* clang-format off */
    return Py_BuildValue (
        "{sKsKsKsKsKsKsdsnsd}",
        "tensors", (unsigned long long)s.tensors,
        "bytes", (unsigned long long)s.bytes,
        "cycles", (unsigned long long)s.cycles,
        "fused", (unsigned long long)s.fused,
        "hits", (unsigned long long)s.hits,
        "negotiated", (unsigned long long)s.negotiated,
        "seconds", s.seconds,
        "fusion_bytes", (Py_ssize_t)s.fusion_bytes,
        "cycle_ms", s.cycle_ms);
    /* clang-format on */
}
