/* SPDX-License-Identifier: Apache-2.0 */
/* A communication library as a table of functions. */
#pragma once

#include "runtime/comm/mesh/collective.h"
#include "runtime/comm/mesh/mesh.h"

/* Functions of our library that a module calls; the library does not export them. */
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

/* A copy of device memory; 'from' NULL: zeros. */
struct comm_copy {
    void *to;
    const void *from;
    size_t n; /* bytes */
};

struct memory_mark;

/* Copies and collectives of device memory, one after another, in a separate
 * stream of the back end: for named tensors.  One thread uses it, and after
 * begin() it must call end() whatever has failed.
 */
struct comm_queue {
    /* Before a thread of ours opens the back end: select the device of 'p'
     * (NULL: unknown) for the thread.
     */
    void (*use) (const void *p);
    /* From now on the functions of struct comm_backend are queued and return at once. */
    int (*begin) (void *self, struct slurmdl_error *err);
    /* Let what follows wait for this mark. */
    int (*after) (void *self, const struct memory_mark *m, struct slurmdl_error *err);
    /* Device memory of at least 'n' bytes that the back end keeps: number
     * 'which' of two.  Its contents are those of the previous call, or lost.
     */
    void *(*room) (void *self, int which, size_t n, struct slurmdl_error *err);
    /* The copies do not depend on each other. */
    int (*copy) (void *self, const struct comm_copy *list, size_t n, struct slurmdl_error *err);
    /* Factor for the next reduction, a sum or an average of numbers that are
     * not integers: each rank's values are multiplied by it, rounded to their
     * type.
     */
    void (*factor) (void *self, double factor);
    /* Wait until everything is done; bounded, and without using a core. */
    int (*end) (void *self, struct slurmdl_error *err);
};

/* "native" is built in (host memory, over the mesh and shared memory). "mpi"
 * and "nccl" are modules, slurmdl-mpi.so and slurmdl-nccl.so, which are loaded
 * on demand from DL_BACKEND_DIR, else from where they were installed.  The only
 * symbol of a module is slurmdl_backend_NAME.
 *
 * run(): 'in' and 'out' are memory that the back end accepts; it never sees
 * sizes of 0 or communicators of one rank.
 */
struct comm_backend {
    const char *name;
    /* Whether it can be used in this process (a library, a GPU): 0, or -1 and
     * the reason.  Not collective.
     */
    int (*probe) (struct slurmdl_error *err);
    /* All ranks of the mesh call it; the caller owns the mesh, which lives
     * longer.  Bounded by mesh_timeout().
     */
    int (*open) (struct mesh *m, void **self, struct slurmdl_error *err);
    void (*close) (void *self);
    /* From another thread, or after an error: cancel what is in progress. */
    void (*abort) (void *self);
    bool device; /* takes memory of a CUDA device; else of the host */
    collective_f run;
    /* Without 'device': whether this collective also accepts device memory, the
     * same on all ranks.  NULL: none does.
     */
    bool (*takes_device) (void *self, enum collective_kind what);
    /* Only with 'device': set the stream; NULL: wait for each collective.  May be NULL. */
    int (*stream) (void *self, void *stream);
    /* Whether it can reduce this, the same on all ranks; otherwise the data go
     * through the host.  NULL: always.
     */
    bool (*takes) (void *self, enum slurmdl_type type, enum slurmdl_op op);
    /* For a module: the library is loaded, and stays. */
    void (*attach) (const struct comm_services *s);
    /* Only with 'device'. */
    const struct comm_queue *queue;
};

extern const struct comm_backend comm_backend_native;

/* Load the module 'name'; NULL with 'err' filled in. */
const struct comm_backend *comm_backend_load (const char *name, struct slurmdl_error *err);
