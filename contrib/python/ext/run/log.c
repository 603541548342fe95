/* SPDX-License-Identifier: Apache-2.0 */
/* Logging of scalars; the type Metric. */
#include "run.h"

#include <errno.h>

/* ---- Metric ---- */

struct metric {
    PyObject_HEAD struct slurmdl_metric
        *metric; /* NULL if it could not be created: drop its values */
    struct run *run;
    PyObject *name;
};

/* Convert a Python number, or any object with item().  Unlike float(), item() warns
 * neither about the gradient of a tensor nor about the shape of an array of one element.
 */
static double number_of (PyObject *o)
{
    PyObject *item = NULL;
    double value;

    if (PyFloat_Check (o) || PyLong_Check (o) || !PyObject_HasAttrString (o, "item"))
        return PyFloat_AsDouble (o);
    if (!(item = PyObject_CallMethod (o, "item", NULL)))
        return -1;
    value = PyFloat_AsDouble (item);
    Py_DECREF (item);
    return value;
}

/* Before Python 3.10, PyLong_AsLongLong() also accepts a float and truncates it, so use
 * __index__.
 */
static int64_t step_to_int64 (PyObject *o)
{
    PyObject *index = PyLong_Check (o) ? NULL : PyNumber_Index (o);
    int64_t step;

    if (!index)
        return PyErr_Occurred () ? -1 : PyLong_AsLongLong (o);
    step = PyLong_AsLongLong (index);
    Py_DECREF (index);
    return step;
}

/* Add the metric's name to the exception.  Without it, the user of log({...}) could not
 * tell which of the values is wrong.
 */
static int name_in_error (PyObject *name, const char *what)
{
    PyObject *kinds[] = { PyExc_TypeError, PyExc_ValueError };
    PyObject *type, *value, *trace;

    for (int i = 0; i < 2; i++)
        if (PyErr_ExceptionMatches (kinds[i])) {
            PyErr_Fetch (&type, &value, &trace);
            PyErr_Format (kinds[i], "%R: %s: %S", name, what, value);
            Py_XDECREF (type);
            Py_XDECREF (value);
            Py_XDECREF (trace);
            break;
        }
    return -1;
}

static int convert (PyObject *name, PyObject *step_object, PyObject *value_object, int64_t *step,
                    double *value)
{
    *value = number_of (value_object);
    if (*value == -1 && PyErr_Occurred ())
        return name_in_error (name, "value");
    *step = step_to_int64 (step_object);
    return *step == -1 && PyErr_Occurred () ? name_in_error (name, "step") : 0;
}

/* A child of fork() has no writer thread, so its values are dropped. */
static PyObject *log_to (struct metric *m, PyObject *step_object, PyObject *value_object)
{
    int64_t step;
    double value;

    if (convert (m->name, step_object, value_object, &step, &value) < 0)
        return NULL;
    if (m->run->run && m->run->generation == generation && m->metric
        && slurmdl_log_to (m->metric, step, value) == 0)
        return logged (m->run, 0, NULL, NULL);
    return logged (m->run, -1, NULL, NULL);
}

static PyObject *metric_log (PyObject *o, PyObject *const *args, Py_ssize_t n)
{
    if (n == 2)
        return log_to ((struct metric *)o, args[0], args[1]);
    PyErr_Format (PyExc_TypeError, "log(step, value) takes 2 arguments, not %zd", n);
    return NULL;
}

static PyObject *get_metric_name (PyObject *o, void *unused)
{
    struct metric *m = (struct metric *)o;

    Py_INCREF (m->name);
    return m->name;
}

static int metric_traverse (PyObject *o, visitproc visit, void *arg)
{
    EXT_VISIT_TYPE (o);
    Py_VISIT (((struct metric *)o)->run);
    return 0;
}

static int metric_clear (PyObject *o)
{
    (void)o; /* the run clears its dict of metrics, which breaks the cycle */
    return 0;
}

static void metric_dealloc (PyObject *o)
{
    struct metric *m = (struct metric *)o;

    PyObject_GC_UnTrack (o);
    Py_XDECREF ((PyObject *)m->run);
    Py_XDECREF (m->name);
    free_object (o);
}

static PyMethodDef metric_methods[] = {
    { "log", (PyCFunction)(void (*) (void))metric_log, METH_FASTCALL,
      "log($self, step, value, /)\n--\n\nLog one value." },
    { NULL },
};

static PyGetSetDef metric_facts[] = {
    { "name", get_metric_name, NULL, "The name.", NULL },
    { NULL },
};

static PyType_Slot metric_slots[] = {
    { Py_tp_doc, "A metric of a run, returned by Run.metric()." },
    { Py_tp_traverse, metric_traverse },
    { Py_tp_clear, metric_clear },
    { Py_tp_dealloc, metric_dealloc },
    { Py_tp_methods, metric_methods },
    { Py_tp_getset, metric_facts },
    { 0 },
};

PyType_Spec metric_spec = {
    .name = "slurmdl._slurmdl.Metric",
    .basicsize = sizeof (struct metric),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = metric_slots,
};

/* ---- metrics of a run ---- */

static PyObject *make_metric (struct run *self, PyObject *name, struct slurmdl_metric *metric)
{
    struct metric *m = ext_alloc (metric_type);

    if (!m)
        return NULL;
    Py_INCREF ((PyObject *)self);
    Py_INCREF (name);
    m->metric = metric;
    m->run = self;
    m->name = name;
    if (PyDict_SetItem (self->metrics, name, (PyObject *)m) == 0)
        return (PyObject *)m;
    Py_DECREF (m);
    return NULL;
}

static PyObject *new_metric (struct run *self, PyObject *name)
{
    const char *text = text_of (name, "the name of a metric");
    struct slurmdl_metric *metric = NULL;

    if (!text || (!self->run && !self->ended))
        return text ? (PyObject *)run_of (self) : NULL;
    if (self->run && self->generation == generation && !(metric = slurmdl_metric (self->run, text))
        && errno == EINVAL)
        return PyErr_Format (PyExc_ValueError,
                             "%.80R: the name of a metric must be 1 to 63 bytes of UTF-8", name);
    return make_metric (self, name, metric);
}

/* Returns a new reference. */
static PyObject *find_metric (struct run *self, PyObject *name)
{
    PyObject *m = PyDict_GetItemWithError (self->metrics, name);

    if (m) {
        Py_INCREF (m);
        return m;
    }
    return PyErr_Occurred () ? NULL : new_metric (self, name);
}

PyObject *run_metric (PyObject *self, PyObject *name)
{
    struct run *run = (struct run *)self;

    return run->ended || run_of (run) ? find_metric (run, name) : NULL;
}

/* ---- log() ---- */

static PyObject *log_one (struct run *self, PyObject *name, PyObject *step, PyObject *value)
{
    PyObject *m = find_metric (self, name);
    PyObject *result = m ? log_to ((struct metric *)m, step, value) : NULL;

    Py_XDECREF (m);
    return result;
}

static PyObject *log_dict (struct run *self, PyObject *values, PyObject *step)
{
    PyObject *name, *value, *result;
    Py_ssize_t at = 0;

    while (PyDict_Next (values, &at, &name, &value)) {
        Py_INCREF (name);
        Py_INCREF (value);
        result = log_one (self, name, step, value);
        Py_DECREF (name);
        Py_DECREF (value);
        if (!result)
            return NULL;
        Py_DECREF (result);
    }
    Py_RETURN_NONE;
}

enum { NAME, VALUE, STEP, ARGUMENTS };

static int take_keywords (PyObject **a, PyObject *const *args, PyObject *names)
{
    static const char *const known[] = { "name", "value", "step" };
    Py_ssize_t n = names ? PyTuple_Size (names) : 0;

    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *name = PyTuple_GetItem (names, i);
        int k = 0;
        while (k < ARGUMENTS && PyUnicode_CompareWithASCIIString (name, known[k]))
            k++;
        if (k == ARGUMENTS || a[k]) {
            PyErr_Format (PyExc_TypeError,
                          k == ARGUMENTS ? "log() got an unexpected keyword argument %R"
                                         : "log() got multiple values for argument %R",
                          name);
            return -1;
        }
        a[k] = args[i];
    }
    return 0;
}

PyObject *run_log (PyObject *o, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    struct run *self = (struct run *)o;
    PyObject *a[ARGUMENTS] = { NULL };
    bool many = n > 0 && PyDict_Check (args[0]);

    if (!self->run && !self->ended)
        return (PyObject *)run_of (self);
    for (Py_ssize_t i = 0; i < n && i < ARGUMENTS; i++)
        a[many && i == 1 ? STEP : i] = args[i];
    if (take_keywords (a, args + n, names) < 0)
        return NULL;
    if (n <= ARGUMENTS - many && a[NAME] && a[STEP] && !a[VALUE] == many)
        return many ? log_dict (self, a[NAME], a[STEP])
                    : log_one (self, a[NAME], a[STEP], a[VALUE]);
    PyErr_SetString (PyExc_TypeError,
                     "expected log(name, value, step) or log({name: value}, step)");
    return NULL;
}
