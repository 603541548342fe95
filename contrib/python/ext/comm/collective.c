/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of the type Comm. */
#include "comm.h"

#include <stdlib.h>

/* A call of a collective, its memory and its result. */
struct call {
    struct comm *self;
    struct lent in, out;
    struct slurmdl_error err;
    int rv;
};

static int call_take (struct call *k, PyObject *o, PyObject *in, PyObject *out)
{
    *k = (struct call){ .self = (struct comm *)o };
    if (lent_take (&k->in, in, false) < 0)
        return -1;
    if (out == Py_None || lent_take (&k->out, out, true) == 0)
        return 0;
    lent_return (&k->in);
    return -1;
}

static int call_fits (const struct lent *l, size_t bytes)
{
    if (bytes <= l->bytes && bytes != SIZE_MAX && (l->data || bytes == 0))
        return 0;
    PyErr_SetString (PyExc_ValueError, "the memory is smaller than its shape requires");
    return -1;
}

static PyObject *call_end (struct call *k, const char *what)
{
    lent_return (&k->in);
    lent_return (&k->out);
    if (PyErr_Occurred ())
        return NULL;
    if (k->rv < 0)
        return comm_fails (k->self, &k->err, what);
    Py_RETURN_NONE;
}

/* Collectives block.  Release the GIL, and run one at a time on a communicator. */
#define COLLECTIVE(K, EXPRESSION)                                                                  \
    do {                                                                                           \
        struct slurmdl_comm *c = comm_enter ((K)->self);                                           \
        if (!c)                                                                                    \
            break;                                                                                 \
        Py_BEGIN_ALLOW_THREADS;                                                                    \
        (K)->rv = (EXPRESSION);                                                                    \
        Py_END_ALLOW_THREADS;                                                                      \
        comm_leave ((K)->self);                                                                    \
    } while (0)

/* Arguments: type, n, in, out, op. */
PyObject *comm_allreduce (PyObject *o, PyObject *args)
{
    const char *type_name;
    PyObject *in, *out;
    Py_ssize_t n;
    struct call k;
    int type, op;

    if (!PyArg_ParseTuple (args, "snOOi:allreduce", &type_name, &n, &in, &out, &op)
        || (type = type_of_name (type_name)) < 0 || call_take (&k, o, in, out) < 0)
        return NULL;
    if (call_fits (&k.in, size_of_array (type, n)) == 0
        && call_fits (&k.out, size_of_array (type, n)) == 0)
        COLLECTIVE (&k, slurmdl_allreduce (c, k.in.data, k.out.data, (size_t)n,
                                           (enum slurmdl_type)type, (enum slurmdl_op)op, &k.err));
    return call_end (&k, "allreduce");
}

/* Arguments: type, n, in, out or None, op, root. */
PyObject *comm_reduce (PyObject *o, PyObject *args)
{
    const char *type_name;
    PyObject *in, *out;
    Py_ssize_t n;
    struct call k;
    int type, op;
    long root;

    if (!PyArg_ParseTuple (args, "snOOil:reduce", &type_name, &n, &in, &out, &op, &root)
        || (type = type_of_name (type_name)) < 0 || call_take (&k, o, in, out) < 0)
        return NULL;
    if (call_fits (&k.in, size_of_array (type, n)) == 0
        && (out == Py_None || call_fits (&k.out, size_of_array (type, n)) == 0))
        COLLECTIVE (&k,
                    slurmdl_reduce (c, k.in.data, k.out.data, (size_t)n, (enum slurmdl_type)type,
                                    (enum slurmdl_op)op, root, &k.err));
    return call_end (&k, "reduce");
}

/* Convert a tuple of one number for each rank; None means 'own' for all of them.  '*sum' is
 * their sum.  Returns NULL with an exception; the caller frees the result.
 */
static size_t *numbers_of (struct comm *self, PyObject *tuple, size_t *sum, size_t own)
{
    struct slurmdl_comm *c = comm_of (self);
    long size = c ? slurmdl_comm_size (c) : 0;
    size_t *numbers = c ? calloc ((size_t)size, sizeof (*numbers)) : NULL;

    *sum = 0;
    if (c && tuple != Py_None && (!PyTuple_Check (tuple) || PyTuple_Size (tuple) != size))
        PyErr_Format (PyExc_ValueError, "expected a tuple of %ld numbers, one for each rank", size);
    for (long r = 0; numbers && !PyErr_Occurred () && r < size; r++) {
        numbers[r] = tuple == Py_None ? own : PyLong_AsSize_t (PyTuple_GetItem (tuple, r));
        if (__builtin_add_overflow (*sum, numbers[r], sum)) {
            PyErr_SetString (PyExc_ValueError, "the sum of the numbers is too large");
            break;
        }
    }
    if (numbers && !PyErr_Occurred ())
        return numbers;
    if (!PyErr_Occurred ())
        PyErr_NoMemory ();
    free (numbers);
    return NULL;
}

/* Arguments: type, n, in, out, counts, op. */
PyObject *comm_reduce_scatter (PyObject *o, PyObject *args)
{
    struct comm *self = (struct comm *)o;
    const char *type_name;
    PyObject *in, *out, *tuple;
    Py_ssize_t n;
    struct call k;
    size_t *counts, sum, own;
    int type, op;

    if (!PyArg_ParseTuple (args, "snOOOi:reduce_scatter", &type_name, &n, &in, &out, &tuple, &op)
        || (type = type_of_name (type_name)) < 0 || !(counts = numbers_of (self, tuple, &sum, 0)))
        return NULL;
    own = counts[slurmdl_comm_rank (self->c)];
    if (call_take (&k, o, in, out) < 0) {
        free (counts);
        return NULL;
    }
    if (sum != (size_t)n)
        PyErr_SetString (PyExc_ValueError, "the counts of all ranks must add up to n");
    else if (call_fits (&k.in, size_of_array (type, n)) == 0
             && call_fits (&k.out, size_of_array (type, (Py_ssize_t)own)) == 0)
        COLLECTIVE (&k,
                    slurmdl_reduce_scatter (c, k.in.data, k.out.data, (size_t)n, counts,
                                            (enum slurmdl_type)type, (enum slurmdl_op)op, &k.err));
    free (counts);
    return call_end (&k, "reduce_scatter");
}

/* Arguments: in, bytes of this rank, out, bytes of each rank or None if all are equal. */
PyObject *comm_allgather (PyObject *o, PyObject *args)
{
    PyObject *in, *out, *tuple;
    size_t *bytes, sum;
    Py_ssize_t own;
    struct call k;

    if (!PyArg_ParseTuple (args, "OnOO:allgather", &in, &own, &out, &tuple)
        || !(bytes = numbers_of ((struct comm *)o, tuple, &sum, (size_t)own)))
        return NULL;
    if (call_take (&k, o, in, out) < 0) {
        free (bytes);
        return NULL;
    }
    if (call_fits (&k.in, size_of_array (SLURMDL_U8, own)) == 0 && call_fits (&k.out, sum) == 0)
        COLLECTIVE (&k, slurmdl_allgather (c, k.in.data, (size_t)own, k.out.data, bytes, &k.err));
    free (bytes);
    return call_end (&k, "allgather");
}

/* Arguments: memory, bytes, root. */
PyObject *comm_broadcast (PyObject *o, PyObject *args)
{
    struct call k = { .self = (struct comm *)o };
    PyObject *memory;
    Py_ssize_t n;
    long root;

    if (!PyArg_ParseTuple (args, "Onl:broadcast", &memory, &n, &root)
        || lent_take (&k.out, memory, true) < 0)
        return NULL;
    if (call_fits (&k.out, size_of_array (SLURMDL_U8, n)) == 0)
        COLLECTIVE (&k, slurmdl_broadcast (c, k.out.data, (size_t)n, root, &k.err));
    return call_end (&k, "broadcast");
}

/* Arguments: in, bytes to each rank, out, bytes from each rank. */
PyObject *comm_alltoall (PyObject *o, PyObject *args)
{
    struct comm *self = (struct comm *)o;
    PyObject *in, *out, *to_tuple, *from_tuple;
    size_t *to = NULL, *from = NULL, sent, got;
    PyObject *result = NULL;
    struct call k;

    if (PyArg_ParseTuple (args, "OOOO:alltoall", &in, &to_tuple, &out, &from_tuple)
        && (to = numbers_of (self, to_tuple, &sent, 0))
        && (from = numbers_of (self, from_tuple, &got, 0)) && call_take (&k, o, in, out) == 0) {
        if (call_fits (&k.in, sent) == 0 && call_fits (&k.out, got) == 0)
            COLLECTIVE (&k, slurmdl_alltoall (c, k.in.data, to, k.out.data, from, &k.err));
        result = call_end (&k, "alltoall");
    }
    free (to);
    free (from);
    return result;
}

PyObject *comm_barrier (PyObject *o, PyObject *unused)
{
    struct call k = { .self = (struct comm *)o };

    COLLECTIVE (&k, slurmdl_barrier (c, &k.err));
    return call_end (&k, "barrier");
}
