/* SPDX-License-Identifier: Apache-2.0 */
/* Types and operations of the module slurmdl-mpi.so. */
#include "runtime/comm/mpi/module.h"

/* Those that MPI does not have travel as whole numbers of their size; only our
 * operations, of which each knows its type, are used on them.
 */
MPI_Datatype mpi_type_of (enum slurmdl_type type)
{
    switch (type) {
    case SLURMDL_I8:
        return MPI_INT8_T;
    case SLURMDL_U8:
    case SLURMDL_F8_E4M3:
    case SLURMDL_F8_E5M2:
        return MPI_UINT8_T;
    case SLURMDL_I16:
        return MPI_INT16_T;
    case SLURMDL_U16:
    case SLURMDL_F16:
    case SLURMDL_BF16:
        return MPI_UINT16_T;
    case SLURMDL_I32:
        return MPI_INT32_T;
    case SLURMDL_U32:
        return MPI_UINT32_T;
    case SLURMDL_I64:
        return MPI_INT64_T;
    case SLURMDL_U64:
        return MPI_UINT64_T;
    case SLURMDL_F32:
        return MPI_FLOAT;
    case SLURMDL_F64:
        return MPI_DOUBLE;
    case SLURMDL_C64:
        return MPI_C_FLOAT_COMPLEX;
    case SLURMDL_C128:
        return MPI_C_DOUBLE_COMPLEX;
    case SLURMDL_BOOL:
        return MPI_C_BOOL;
    }
    return MPI_DATATYPE_NULL;
}

#define OP(name, type, op)                                                                         \
    static void name (void *in, void *out, int *n, MPI_Datatype *t)                                \
    {                                                                                              \
        (void)t;                                                                                   \
        mpi_lib->pair (out, in, out, (size_t)*n, type, op);                                        \
    }
#define OPS(name, type)                                                                            \
    OP (name##_sum, type, SLURMDL_SUM)                                                             \
    OP (name##_min, type, SLURMDL_MIN)                                                             \
    OP (name##_max, type, SLURMDL_MAX)                                                             \
    OP (name##_product, type, SLURMDL_PRODUCT)
/* Open MPI 4's vector code saturates sums of these, where ours wrap around. */
OPS (i8, SLURMDL_I8)
OPS (u8, SLURMDL_U8)
OPS (i16, SLURMDL_I16)
OPS (u16, SLURMDL_U16)
/* added in F32, and rounded when they are passed on */
OPS (f16, SLURMDL_F16)
OPS (bf16, SLURMDL_BF16)
OPS (e4m3, SLURMDL_F8_E4M3)
OPS (e5m2, SLURMDL_F8_E5M2)

/* clang-format off */
#define ROW(name) { name##_sum, name##_sum, name##_min, name##_max, name##_product }
/* clang-format on */

enum { TYPES = SLURMDL_F8_E5M2 + 1, OPS = SLURMDL_PRODUCT + 1 };

static MPI_User_function *const functions[TYPES][OPS] = {
    [SLURMDL_I8] = ROW (i8),        [SLURMDL_U8] = ROW (u8),        [SLURMDL_I16] = ROW (i16),
    [SLURMDL_U16] = ROW (u16),      [SLURMDL_F16] = ROW (f16),      [SLURMDL_BF16] = ROW (bf16),
    [SLURMDL_F8_E4M3] = ROW (e4m3), [SLURMDL_F8_E5M2] = ROW (e5m2),
};

static MPI_Op own[TYPES][OPS];

int mpi_make_ops (struct slurmdl_error *err)
{
    for (int t = 0; t < TYPES; t++)
        for (int i = 0; i < OPS && functions[t][i]; i++) {
            int rv = MPI_Op_create (functions[t][i], 1, &own[t][i]);
            if (rv != MPI_SUCCESS)
                return mpi_failed (rv, "MPI_Op_create", err);
        }
    return 0;
}

MPI_Op mpi_op_of (enum slurmdl_type type, enum slurmdl_op op)
{
    bool truth = type == SLURMDL_BOOL;

    if (functions[type][op])
        return own[type][op];
    switch (op) {
    case SLURMDL_SUM:
    case SLURMDL_AVERAGE:
        return truth ? MPI_LOR : MPI_SUM;
    case SLURMDL_MIN:
        return truth ? MPI_LAND : MPI_MIN;
    case SLURMDL_MAX:
        return truth ? MPI_LOR : MPI_MAX;
    case SLURMDL_PRODUCT:
        return truth ? MPI_LAND : MPI_PROD;
    }
    return MPI_OP_NULL;
}
