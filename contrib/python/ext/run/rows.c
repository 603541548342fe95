/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of metrics files: scalars into one block of memory, records as tuples. */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- scalars ---- */

/* Keep the layout in step with slurmdl.files.PACKED. */
struct packed {
    int64_t step;
    double time, value, epoch;
    int32_t attempt;
    uint32_t name;
    uint32_t superseded;
    uint32_t reserved;
};

enum { HASH_SIZE = 1024, NAMES_MAX = 1024 };

/* The reader keeps a name at one address while it reads a file, so look a name up by its
 * address first.
 */
struct rows {
    struct packed *list; /* the caller's memory */
    size_t n, room;
    size_t superseded;
    char *names[NAMES_MAX];
    uint32_t nnames;
    const char *address[HASH_SIZE];
    uint32_t index[HASH_SIZE];
};

static int intern_row_name (struct rows *rows, const char *name)
{
    for (uint32_t i = 0; i < rows->nnames; i++)
        if (!strcmp (rows->names[i], name))
            return (int)i;
    if (rows->nnames == NAMES_MAX || !(rows->names[rows->nnames] = strdup (name)))
        return -1;
    return (int)rows->nnames++;
}

static int index_of (struct rows *rows, const char *name)
{
    size_t at = ((uintptr_t)name >> 6) % HASH_SIZE;
    int i;

    if (rows->address[at] == name && !strcmp (rows->names[rows->index[at]], name))
        return (int)rows->index[at];
    if ((i = intern_row_name (rows, name)) >= 0) {
        rows->address[at] = name;
        rows->index[at] = (uint32_t)i;
    }
    return i;
}

static int add_packed_row (const struct slurmdl_row *row, void *arg)
{
    struct rows *rows = arg;
    int name = index_of (rows, row->name);

    if (rows->n == rows->room)
        return ENOBUFS;
    if (name < 0)
        return ENOMEM;
    rows->list[rows->n++] = (struct packed){ .step = row->step,
                                             .time = row->time,
                                             .value = row->value,
                                             .epoch = row->epoch,
                                             .attempt = (int32_t)row->attempt,
                                             .name = (uint32_t)name,
                                             .superseded = row->superseded != 0 };
    rows->superseded += row->superseded != 0;
    return 0;
}

static PyObject *rows_result (const struct rows *rows)
{
    PyObject *names = PyList_New (0);

    for (uint32_t i = 0; names && i < rows->nnames; i++) {
        PyObject *name =
            PyUnicode_DecodeUTF8 (rows->names[i], (Py_ssize_t)strlen (rows->names[i]), "replace");
        if (!name || PyList_Append (names, name) < 0)
            Py_CLEAR (names);
        Py_XDECREF (name);
    }
    if (!names)
        return NULL;
    return Py_BuildValue ("(nnN)", (Py_ssize_t)rows->n, (Py_ssize_t)rows->superseded, names);
}

typedef int (*reader_f) (const char *, slurmdl_row_f, void *, struct slurmdl_error *);
static const reader_f readers[] = { slurmdl_metrics_read, slurmdl_metrics_read_dir,
                                    slurmdl_trial_read };

/* Read the rows into 'l'.  Returns None if it is too small. */
static PyObject *read_into (const char *path, unsigned how, const struct lent *l)
{
    struct slurmdl_error err = { "" };
    struct rows *rows = calloc (1, sizeof (*rows));
    PyObject *result = NULL;
    int rv;

    if (!rows)
        return PyErr_NoMemory ();
    rows->list = l->data;
    rows->room = l->bytes / sizeof (*rows->list);
    WITHOUT_GIL (rv = readers[how](path, add_packed_row, rows, &err));
    /* if some rows are lost (EBADMSG), warn and return the others */
    if (rv == 0
        || (rv < 0 && errno == EBADMSG && rows->n > 0
            && PyErr_WarnEx (PyExc_RuntimeWarning, err.text, 1) == 0))
        result = rows_result (rows);
    else if (PyErr_Occurred ())
        result = NULL;
    else if (rv == ENOBUFS) {
        result = Py_None;
        Py_INCREF (result);
    } else
        result = rv < 0 ? raise_error (&err, path) : PyErr_NoMemory ();
    for (uint32_t i = 0; i < rows->nnames; i++)
        free (rows->names[i]);
    free (rows);
    return result;
}

/* Arguments: path, how (0: a file, 1: an attempt's folder, 2: a trial's folder), memory.
 * Returns (number of rows, number of superseded rows, names).
 */
PyObject *read_rows (PyObject *module, PyObject *args)
{
    PyObject *memory, *result;
    const char *path;
    struct lent l;
    unsigned how;

    if (!PyArg_ParseTuple (args, "sIO:read_rows", &path, &how, &memory))
        return NULL;
    if (how > 2) {
        PyErr_SetString (PyExc_ValueError, "how must be 0 (a file), 1 (an attempt) or 2 (a trial)");
        return NULL;
    }
    if (lent_take (&l, memory, true) < 0)
        return NULL;
    result = read_into (path, how, &l);
    lent_return (&l);
    return result;
}

/* ---- records ---- */

static PyObject *bytes_of (const void *data, size_t n)
{
    return PyBytes_FromStringAndSize (data, (Py_ssize_t)n);
}

static PyObject *histogram_of (const struct slurmdl_record *r)
{
    struct slurmdl_histogram h;

    if (slurmdl_record_histogram (r, &h) < 0)
        return raise_error (NULL, r->name);
    return Py_BuildValue (
        "(NNddddKKK)", bytes_of (h.edges, ((size_t)h.nbins + 1) * sizeof (*h.edges)),
        bytes_of (h.counts, (size_t)h.nbins * sizeof (*h.counts)), h.min, h.max, h.mean, h.sd,
        (unsigned long long)h.n, (unsigned long long)h.nan, (unsigned long long)h.infinite);
}

static PyObject *image_of (const struct slurmdl_record *r)
{
    struct slurmdl_image i;

    if (slurmdl_record_image (r, &i) < 0)
        return raise_error (NULL, r->name);
    return Py_BuildValue ("(IIIN)", i.width, i.height, i.channels,
                          bytes_of (i.pixels, (size_t)i.width * i.height * i.channels));
}

static PyObject *content_of (const struct slurmdl_record *r)
{
    switch (r->kind) {
    case SLURMDL_VECTOR:
        return bytes_of (r->data, r->size);
    case SLURMDL_HISTOGRAM:
        return histogram_of (r);
    case SLURMDL_TEXT:
    case SLURMDL_EVENT:
        return PyUnicode_DecodeUTF8 (r->data, (Py_ssize_t)strnlen (r->data, r->size), "replace");
    case SLURMDL_IMAGE:
        return image_of (r);
    }
    Py_RETURN_NONE;
}

static int add_record (const struct slurmdl_record *r, void *arg)
{
    PyObject *content = content_of (r);
    PyObject *row;
    int rv;

    if (!content)
        return 1;
    row = Py_BuildValue ("(isLdN)", (int)r->kind, r->name, (long long)r->step, r->time, content);
    rv = row ? PyList_Append (arg, row) : -1;
    Py_XDECREF (row);
    return rv < 0;
}

/* Arguments: path, whether it is an attempt's folder rather than a file. */
PyObject *read_records (PyObject *module, PyObject *args)
{
    struct slurmdl_error err = { "" };
    PyObject *list;
    const char *path;
    int folder, rv;

    if (!PyArg_ParseTuple (args, "sp:read_records", &path, &folder) || !(list = PyList_New (0)))
        return NULL;
    rv = folder ? slurmdl_records_read_dir (path, add_record, list, &err)
                : slurmdl_records_read (path, add_record, list, &err);
    if (rv == 0)
        return list;
    Py_DECREF (list);
    return rv < 0 ? raise_error (&err, path) : NULL;
}
