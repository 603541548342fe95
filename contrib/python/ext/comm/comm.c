/* SPDX-License-Identifier: Apache-2.0 */
/* The type Comm: opening, closing, attributes and splitting of communicators. */
#include "comm.h"

#include <errno.h>
#include <time.h>

/* ---- open communicators ---- */

struct slurmdl_comm *comm_of (struct comm *self)
{
    bool open = ext_is_open (self->c, self->generation, "communicator");

    return open ? self->c : NULL;
}

struct slurmdl_comm *comm_use (struct comm *self)
{
    struct slurmdl_comm *c = comm_of (self);

    self->users += c != NULL;
    return c;
}

void comm_unuse (struct comm *self)
{
    self->users--;
}

struct slurmdl_comm *comm_enter (struct comm *self)
{
    if (!comm_use (self))
        return NULL;
    ext_lock (self->lock);
    if (self->c)
        return self->c;
    comm_leave (self);
    return comm_of (self);
}

void comm_leave (struct comm *self)
{
    PyThread_release_lock (self->lock);
    comm_unuse (self);
}

PyObject *comm_fails (struct comm *self, const struct slurmdl_error *err, const char *what)
{
    self->told = true;
    return raise_error (err, what);
}

static struct comm *new_comm (PyTypeObject *type)
{
    struct comm *self = ext_alloc (type);

    if (!self)
        return NULL;
    self->generation = generation;
    self->kept = PyDict_New ();
    self->lock = PyThread_allocate_lock ();
    if (self->kept && self->lock)
        return self;
    Py_DECREF (self);
    PyErr_NoMemory ();
    return NULL;
}

static PyObject *comm_new (PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = { "rank", "size", "bootstrap", "address", "backend", "timeout", NULL };
    struct slurmdl_comm_options o = { 0 };
    struct slurmdl_error err = { "" };
    struct comm *self;

    if (!PyArg_ParseTupleAndKeywords (args, kw, "|llzzzd:Comm", names, &o.rank, &o.size,
                                      &o.bootstrap, &o.address, &o.backend, &o.timeout)
        || !(self = new_comm (type)))
        return NULL;
    WITHOUT_GIL (self->c = slurmdl_comm_open (&o, &err));
    if (self->c)
        return (PyObject *)self;
    Py_DECREF (self);
    return raise_error (&err, "slurmdl.comm");
}

/* Other threads may be in a call on the communicator.  Wait for them before it closes. */
static void wait_for_comm_calls (struct comm *self, int mine)
{
    struct timespec nap = { 0, 1000000 };

    while (self->users > mine) {
        WITHOUT_GIL (nanosleep (&nap, NULL));
    }
}

static int close_comm (struct comm *self, int mine, struct slurmdl_error *err)
{
    struct slurmdl_comm *c = self->c;
    int rv = 0;

    self->c = NULL;
    if (!c || self->generation != generation)
        return 0;
    wait_for_comm_calls (self, mine);
    if (self->lent)
        return 0;
    WITHOUT_GIL (rv = slurmdl_comm_close (c, err));
    return rv;
}

PyObject *comm_around (PyTypeObject *type, struct slurmdl_comm *c)
{
    struct comm *self = new_comm (type);

    if (!self)
        return NULL;
    self->c = c;
    self->lent = true;
    return (PyObject *)self;
}

void comm_expire (PyObject *comm)
{
    struct comm *self = (struct comm *)comm;

    close_comm (self, 0, NULL);
    PyDict_Clear (self->kept);
}

static PyObject *comm_close (PyObject *o, PyObject *unused)
{
    struct comm *self = (struct comm *)o;
    struct slurmdl_error err = { "" };
    int rv;

    if (!self->c || self->generation != generation)
        Py_RETURN_NONE;
    rv = close_comm (self, 0, &err);
    PyDict_Clear (self->kept);
    Py_CLEAR (self->parent);
    if (rv < 0 && !self->told)
        return raise_error (&err, "slurmdl.comm");
    Py_RETURN_NONE;
}

static int comm_traverse (PyObject *o, visitproc visit, void *arg)
{
    struct comm *self = (struct comm *)o;

    EXT_VISIT_TYPE (o);
    Py_VISIT (self->kept);
    Py_VISIT (self->parent);
    return 0;
}

static int comm_clear (PyObject *o)
{
    struct comm *self = (struct comm *)o;

    close_comm (self, 0, NULL);
    empty_dict (self->kept);
    Py_CLEAR (self->parent);
    return 0;
}

static void comm_dealloc (PyObject *o)
{
    struct comm *self = (struct comm *)o;

    PyObject_GC_UnTrack (o);
    comm_clear (o);
    Py_XDECREF (self->kept);
    if (self->lock)
        PyThread_free_lock (self->lock);
    free_object (o);
}

/* ---- attributes ---- */

enum fact { RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, NODE, NODES };

static PyObject *get_comm_fact (PyObject *o, void *which)
{
    static long (*const get[]) (const struct slurmdl_comm *) = {
        [RANK] = slurmdl_comm_rank,
        [SIZE] = slurmdl_comm_size,
        [LOCAL_RANK] = slurmdl_comm_local_rank,
        [LOCAL_SIZE] = slurmdl_comm_local_size,
        [NODE] = slurmdl_comm_node,
        [NODES] = slurmdl_comm_nodes,
    };
    struct slurmdl_comm *c = comm_of ((struct comm *)o);

    return c ? PyLong_FromLong (get[(intptr_t)which](c)) : NULL;
}

static PyObject *get_comm_name (PyObject *o, void *bootstrap)
{
    struct slurmdl_comm *c = comm_of ((struct comm *)o);

    if (!c)
        return NULL;
    return PyUnicode_FromString (bootstrap ? slurmdl_comm_bootstrap (c) : slurmdl_comm_backend (c));
}

static PyObject *get_comm_closed (PyObject *o, void *unused)
{
    return PyBool_FromLong (!((struct comm *)o)->c);
}

/* clang-format off */
static PyGetSetDef comm_facts[] = {
    { "rank",       get_comm_fact,   NULL, "Rank of this process.",                                (void *)RANK },
    { "size",       get_comm_fact,   NULL, "Number of ranks.",                                     (void *)SIZE },
    { "local_rank", get_comm_fact,   NULL, "Rank within this node.",                               (void *)LOCAL_RANK },
    { "local_size", get_comm_fact,   NULL, "Number of ranks on this node.",                        (void *)LOCAL_SIZE },
    { "node",       get_comm_fact,   NULL, "Index of this node.",                                  (void *)NODE },
    { "nodes",      get_comm_fact,   NULL, "Number of nodes.",                                     (void *)NODES },
    { "backend",    get_comm_name,   NULL, "native, mpi or nccl.",                                 NULL },
    { "bootstrap",  get_comm_name,   NULL, "How the ranks found each other: pmix, pmi, tcp, one.", (void *)1 },
    { "closed",     get_comm_closed, NULL, "Whether it is closed.",                                NULL },
    { NULL },
};
/* clang-format on */

static PyObject *comm_host (PyObject *o, PyObject *rank_object)
{
    struct slurmdl_comm *c = comm_of ((struct comm *)o);
    long rank = PyLong_AsLong (rank_object);
    const char *host;

    if (!c || (rank == -1 && PyErr_Occurred ()))
        return NULL;
    host = slurmdl_comm_host (c, rank);
    if (host)
        return PyUnicode_FromString (host);
    return PyErr_Format (PyExc_ValueError, "there is no rank %ld", rank);
}

/* Arguments: color, key.  Returns a Comm, or None. */
static PyObject *comm_split (PyObject *o, PyObject *args)
{
    struct comm *self = (struct comm *)o;
    struct slurmdl_error err = { "" };
    struct slurmdl_comm *c;
    struct comm *part;
    long color, key;

    if (!PyArg_ParseTuple (args, "ll:split", &color, &key) || !(part = new_comm (Py_TYPE (o))))
        return NULL;
    if ((c = comm_enter (self))) {
        errno = 0;
        WITHOUT_GIL (part->c = slurmdl_comm_split (c, color, key, &err));
        comm_leave (self);
        if (!part->c && errno != 0)
            comm_fails (self, &err, "split");
    }
    if (part->c) {
        Py_INCREF (o);
        part->parent = o;
        return (PyObject *)part;
    }
    Py_DECREF (part);
    if (PyErr_Occurred ())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *comm_abort (PyObject *o, PyObject *why_object)
{
    struct comm *self = (struct comm *)o;
    struct slurmdl_comm *c = comm_of (self);
    const char *why = text_of (why_object, "why");

    if (!c || !why)
        return NULL;
    self->told = true;
    slurmdl_comm_abort (c, why);
    Py_RETURN_NONE;
}

/* clang-format off */
static PyMethodDef comm_methods[] = {
    { "host", comm_host, METH_O,
      "host($self, rank, /)\n--\n\nName of the host of a rank." },
    { "allreduce_memory",      comm_allreduce,      METH_VARARGS, NULL },
    { "reduce_memory",         comm_reduce,         METH_VARARGS, NULL },
    { "reduce_scatter_memory", comm_reduce_scatter, METH_VARARGS, NULL },
    { "allgather_memory",      comm_allgather,      METH_VARARGS, NULL },
    { "broadcast_memory",      comm_broadcast,      METH_VARARGS, NULL },
    { "alltoall_memory",       comm_alltoall,       METH_VARARGS, NULL },
    { "split_ranks",           comm_split,          METH_VARARGS, NULL },
    { "barrier", comm_barrier, METH_NOARGS,
      "barrier($self, /)\n--\n\nWait until all ranks have called it." },
    { "abort", comm_abort, METH_O,
      "abort($self, why, /)\n--\n\nClose at once; calls of the other ranks fail and report why." },
    { "submit_memory", comm_submit, METH_VARARGS, NULL },
    { "done", comm_done, METH_O, NULL },
    { "wait", comm_wait, METH_O, NULL },
    { "take", comm_take, METH_O, NULL },
    { "join", comm_join, METH_NOARGS,
      "join($self, /)\n--\n\nThis rank has no more data: contribute zeros until all have joined.  Returns the last rank to join." },
    { "write_timeline", comm_timeline, METH_VARARGS, NULL },
    { "trouble", comm_trouble, METH_NOARGS,
      "trouble($self, /)\n--\n\nReturn a line about tensors that only some ranks have submitted, once for each problem; None if there is nothing new." },
    { "stats", comm_stats, METH_NOARGS,
      "stats($self, /)\n--\n\nThe cost of the named tensors so far, as a dict." },
    { "close", comm_close, METH_NOARGS,
      "close($self, /)\n--\n\nComplete the submitted tensors and close." },
    { NULL },
};
/* clang-format on */

EXT_TYPE (comm, "Comm", "Base class of the communicator that slurmdl.comm.open() returns.",
          Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, { Py_tp_traverse, comm_traverse },
          { Py_tp_clear, comm_clear }, { Py_tp_getset, comm_facts }, );
