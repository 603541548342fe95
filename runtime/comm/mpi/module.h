/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the module slurmdl-mpi.so share. */
#pragma once

#include <mpi.h>
#include <stdatomic.h>

#include "runtime/comm/backend/backend.h"

/* MPI counts with int: more goes in parts of so many elements. */
#ifndef MPI_PART
#define MPI_PART (1 << 30)
#endif

static inline size_t mpi_least (size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A non-blocking call, and the end of it; 'request' is a variable. */
#define CALL(s, err, name, ...)                                                                    \
    (mpi_enter (),                                                                                 \
     mpi_finish (s, MPI_I##name (__VA_ARGS__, &request), &request, "MPI_I" #name, err))

struct mpi_self {
    struct mesh *mesh;
    MPI_Comm comm;
    int size;
    double timeout;
    atomic_bool aborted, failed;
    bool takes_device; /* on all ranks: sends and receives take device memory */
    /* of each rank, for those calls that want int */
    int *counts, *places, *counts2, *places2;
};

extern const struct comm_services *mpi_lib;
extern atomic_bool mpi_has_failed; /* any communicator */
extern bool mpi_takes_turns;       /* MPI has promised threads one at a time */

/* Around each call of MPI, where it has promised threads only one at a time. */
void mpi_enter (void);
void mpi_leave (void);

/* Whether to wait further: -1 after the deadline, an abort or the end of a
 * rank. */
int mpi_look (struct mpi_self *s, double deadline, struct slurmdl_error *err);

/* Write what MPI says of 'code'; returns -1. */
int mpi_failed (int code, const char *what, struct slurmdl_error *err);

/* Of a call that has returned 'code', after mpi_enter(): leave, and wait for
 * it.  A request that is given up stays.
 */
int mpi_finish (struct mpi_self *s, int code, MPI_Request *request, const char *what,
                struct slurmdl_error *err);

/* ops.c; mpi_make_ops() once, after MPI's begin. */
int mpi_make_ops (struct slurmdl_error *err);
MPI_Datatype mpi_type_of (enum slurmdl_type type);
MPI_Op mpi_op_of (enum slurmdl_type type, enum slurmdl_op op);

/* sendrecv.c: an all-to-all, an all-gather and a broadcast of any size by sends
 * and receives, which take device memory where the library does; its
 * non-blocking collectives do not (Open MPI's FAQ, "Which MPI APIs do NOT work
 * with CUDA-aware?").  'to' NULL: each rank gets all of 'in'.
 */
bool mpi_on_device (const struct mpi_self *s, const void *p);
int mpi_sendrecv_all (struct mpi_self *s, const char *in, const size_t *to, char *out,
                      const size_t *from, struct slurmdl_error *err);
int mpi_forward (struct mpi_self *s, char *data, size_t bytes, long root,
                 struct slurmdl_error *err);

/* The functions of struct comm_backend (calls.c). */
int mpi_run (void *self, const struct collective *a, struct slurmdl_error *err);
