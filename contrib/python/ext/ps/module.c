/* SPDX-License-Identifier: Apache-2.0 */
/* The module slurmdl._slurmdl_ps: libslurmdl-ps for Python. */
#include "ps.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = EXT_MODULE,
    .m_doc = "libslurmdl-ps for Python; use slurmdl.ps.",
    .m_size = -1,
};

/* before Python 3.9 its macro did not say so */
__attribute__ ((visibility ("default"))) PyMODINIT_FUNC
PyInit__slurmdl_ps (void);
PyMODINIT_FUNC PyInit__slurmdl_ps (void)
{
    static PyType_Spec *const specs[] = { &ps_spec, NULL };
    PyTypeObject *type;

    return ext_module (&definition, specs, &type);
}
