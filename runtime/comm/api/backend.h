/* SPDX-License-Identifier: Apache-2.0 */
/* What a communication library does for us: a table of functions. */
#pragma once

#include "runtime/comm/mesh/collective.h"
#include "runtime/comm/mesh/mesh.h"

/* What a module calls of the library, which does not export it. */
struct comm_services {
    long (*rank) (const struct mesh *m);
    long (*size) (const struct mesh *m);
    double (*timeout) (const struct mesh *m);
    long (*local_rank) (const struct mesh *m, long rank);
    const char *(*host) (const struct mesh *m, long rank);
    int (*check) (struct mesh *m, struct slurmdl_error *err);
    /* 'bytes' of each rank */
    int (*gather) (struct mesh *m, const void *mine, size_t bytes, void *all,
                   struct slurmdl_error *err);
    size_t (*type_size) (enum slurmdl_type type);
    void (*pair) (void *out, const void *a, const void *b, size_t n, enum slurmdl_type type,
                  enum slurmdl_op op);
    void (*scale) (void *data, size_t n, enum slurmdl_type type, double factor);
    void (*convert) (void *out, enum slurmdl_type to, const void *in, enum slurmdl_type from,
                     size_t n);
    bool (*is_device) (const void *p);
};

/* Of device memory; 'from' NULL: zeros. */
struct comm_copy {
    void *to;
    const void *from;
    size_t n; /* bytes */
};

struct memory_mark;

/* Copies and collectives of device memory one after the other, in a stream of
 * the back end's own that runs beside all others: for named tensors.  One
 * thread uses it, and after begin() calls end() whatever has failed.
 */
struct comm_queue {
    /* Before the back end is opened by a thread of ours: the device of 'p'
     * (NULL: nothing is known of it) becomes the thread's. */
    void (*use) (const void *p);
    /* From now on what the functions of struct comm_backend are called for is
     * queued; they return at once. */
    int (*begin) (void *self, struct slurmdl_error *err);
    /* What follows waits for this. */
    int (*after) (void *self, const struct memory_mark *m, struct slurmdl_error *err);
    /* Device memory of 'n' bytes at least, which stays the back end's: the
     * 'which'-th, of two; its bytes are those of the call before, or lost. */
    void *(*room) (void *self, int which, size_t n, struct slurmdl_error *err);
    /* They do not depend on each other. */
    int (*copy) (void *self, const struct comm_copy *list, size_t n, struct slurmdl_error *err);
    /* By which the next reduction, a sum or an average of numbers that are not
     * integers, multiplies what each rank gives, rounded to their type. */
    void (*factor) (void *self, double factor);
    /* Until all of it is done; bounded, without using a core. */
    int (*end) (void *self, struct slurmdl_error *err);
};

/* "native" is built in (host memory, over the mesh and shared memory); "mpi"
 * and "nccl" are modules, slurmdl-mpi.so and slurmdl-nccl.so, which are loaded
 * from DL_BACKEND_DIR, else from where they were installed, when they are
 * wanted.  A module's one symbol is slurmdl_backend_NAME.
 *
 * run(): 'in' and 'out' are memory that the back end takes; sizes of 0 and
 * communicators of one rank do not come here.
 */
struct comm_backend {
    const char *name;
    /* Whether it can be used in this process (a library, a GPU): 0, or -1 with
     * why not.  Not collective. */
    int (*probe) (struct slurmdl_error *err);
    /* All ranks of the mesh open it; the mesh stays the caller's, and lives
     * longer.  Bounded by mesh_timeout(). */
    int (*open) (struct mesh *m, void **self, struct slurmdl_error *err);
    void (*close) (void *self);
    /* From another thread, or after an error: end what is under way. */
    void (*abort) (void *self);
    bool device; /* takes memory of a CUDA device; else of the host */
    collective_f run;
    /* Without 'device': whether this collective takes device memory, too, the
     * same on all ranks.  NULL: none does. */
    bool (*takes_device) (void *self, enum collective_kind what);
    /* Only with 'device': the stream, NULL: wait for each.  May be NULL. */
    int (*stream) (void *self, void *stream);
    /* Whether it can reduce this, the same on all ranks; others go through the
     * host.  NULL: all. */
    bool (*takes) (void *self, enum slurmdl_type type, enum slurmdl_op op);
    /* Of a module: the library is here, and stays. */
    void (*attach) (const struct comm_services *s);
    /* Only with 'device'. */
    const struct comm_queue *queue;
};

extern const struct comm_backend comm_backend_native;

/* The module 'name', NULL with 'err' filled. */
const struct comm_backend *comm_backend_load (const char *name, struct slurmdl_error *err);
