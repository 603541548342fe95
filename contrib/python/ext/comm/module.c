/* SPDX-License-Identifier: Apache-2.0 */
/* The module slurmdl._slurmdl_comm: libslurmdl-comm for Python. */
#include "comm.h"

PyTypeObject *comm_type;

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = EXT_MODULE,
    .m_doc = "libslurmdl-comm for Python; use slurmdl.comm.",
    .m_size = -1,
};

/* PyMODINIT_FUNC exports the function only since Python 3.9 */
__attribute__ ((visibility ("default"))) PyMODINIT_FUNC PyInit__slurmdl_comm (void);
PyMODINIT_FUNC PyInit__slurmdl_comm (void)
{
    static PyType_Spec *const specs[] = { &comm_spec, &elastic_spec, NULL };
    PyTypeObject *types[2];
    PyObject *module = ext_module (&definition, specs, types);

    if (module)
        comm_type = types[0];
    return module;
}
