/* SPDX-License-Identifier: Apache-2.0 */
/* libslurmdl-comm: communication between the ranks of a job. */
#ifndef SLURMDL_COMM_H
#define SLURMDL_COMM_H

#include "slurmdl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every rank of a step opens the communicator.  Then all ranks call the same
 * collectives in the same order, or each submits named tensors in any order, as
 * its gradients become ready:
 *
 *     struct slurmdl_comm *world = slurmdl_comm_open (NULL, &err);
 *     slurmdl_broadcast (world, weights, bytes, 0, &err);
 *     while (training) {
 *         backward (gradients);
 *         slurmdl_allreduce (world, gradients, gradients, n, SLURMDL_F32,
 *                            SLURMDL_AVERAGE, &err);
 *         update (weights, gradients);
 *     }
 *     slurmdl_comm_close (world, NULL);
 *
 * It works under srun with and without --dl, with PMIx, PMI-2 and plain TCP, and
 * in a process without a launcher (one rank).
 *
 * Unless documented otherwise, a function returns 0, or -1 with errno set and
 * 'err', unless NULL, filled in.  'err' needs no initial value.  Every wait is
 * bounded: if a rank does not answer, all ranks report its number and host
 * within the timeout (ETIMEDOUT); if its process or host is gone, as soon as
 * that is known (ECONNRESET).  After such an error the communicator is broken:
 * every call but slurmdl_comm_close() fails with ENOTCONN.
 * slurmdl_elastic_form() makes a new communicator of the remaining ranks.
 *
 * Only one thread at a time may use a communicator, except that any thread may
 * submit and wait for named tensors at any time.
 */

struct slurmdl_comm;

/* Zero and NULL select what the environment says. */
struct slurmdl_comm_options {
    long rank, size;       /* size 0: of the step */
    const char *bootstrap; /* "pmix", "pmi", "tcp"; DL_COMM_BOOTSTRAP */
    const char *address;   /* HOST:PORT that rank 0 tries first; DL_COMM_ADDRESS */
    const char *backend;   /* "native", "mpi", "nccl"; DL_COMM_BACKEND */
    double timeout;        /* seconds; DL_COMM_TIMEOUT, else 300 */
};

/* Connect to the other ranks.  'o' may be NULL.
 *
 * The ranks are known from PMIx if srun --mpi=pmix started this process, else
 * from PMI-1/2 (PMI_FD), else from RANK and WORLD_SIZE, else from SLURM_PROCID
 * and SLURM_STEP_NUM_TASKS. Rank 0 listens at a port that the kernel chooses,
 * or at the one of DL_COMM_ADDRESS if it is free, and publishes its address
 * through PMIx or PMI, else in a file in ~/.slurm-dl and, with any option of
 * dl-spank(7), through srun.  Only processes with the step's secret are
 * accepted: DL_SECRET, which srun sets with these options, else a secret passed
 * through PMIx or PMI, else the one in that file; see slurmdl_comm(3).
 *
 * Returns NULL on failure.
 */
struct slurmdl_comm *slurmdl_comm_open (const struct slurmdl_comm_options *o,
                                        struct slurmdl_error *err);

/* Complete submitted tensors, then close; NULL is accepted.  Returns -1 if they
 * could not be completed; 'err' names the rank that did not answer or is gone.
 */
int slurmdl_comm_close (struct slurmdl_comm *c, struct slurmdl_error *err);

/* Close at once: calls of the other ranks fail and report this rank and 'why'. */
void slurmdl_comm_abort (struct slurmdl_comm *c, const char *why);

long slurmdl_comm_rank (const struct slurmdl_comm *c);
long slurmdl_comm_size (const struct slurmdl_comm *c);
long slurmdl_comm_local_rank (const struct slurmdl_comm *c); /* on its node */
long slurmdl_comm_local_size (const struct slurmdl_comm *c);
long slurmdl_comm_node (const struct slurmdl_comm *c); /* 0, 1, ... in the order of first ranks */
long slurmdl_comm_nodes (const struct slurmdl_comm *c);
/* The strings belong to 'c'. */
const char *slurmdl_comm_host (const struct slurmdl_comm *c, long rank);
const char *slurmdl_comm_backend (const struct slurmdl_comm *c);
const char *slurmdl_comm_bootstrap (const struct slurmdl_comm *c);

/* Make a communicator of the ranks with the same 'color', ordered by 'key',
 * then by rank.  Returns NULL with errno 0 for a negative color.  All ranks
 * must call it.  The caller closes it, before 'c'.
 */
struct slurmdl_comm *slurmdl_comm_split (struct slurmdl_comm *c, long color, long key,
                                         struct slurmdl_error *err);

/* ---- collectives ---- */

/* 'in' and 'out' are memory of the host or of a CUDA device, the same kind on
 * all ranks.  They may be equal if both have the same size, and must not
 * overlap otherwise.  'n' counts elements and may be 0.  All ranks must pass
 * the same n, type, op and root (a detected difference is EPROTO).
 *
 * Floating-point sums differ from serial ones only by rounding.  They are
 * equal, bit for bit, on all ranks, and from run to run with the same ranks on
 * the same nodes.  F16, BF16 and F8 are accumulated in F32.
 */
enum slurmdl_op {
    SLURMDL_SUM,
    SLURMDL_AVERAGE, /* sum / size; EINVAL for integers */
    SLURMDL_MIN,     /* not of complex numbers */
    SLURMDL_MAX,
    SLURMDL_PRODUCT,
};

int slurmdl_allreduce (struct slurmdl_comm *c, const void *in, void *out, size_t n,
                       enum slurmdl_type type, enum slurmdl_op op, struct slurmdl_error *err);

/* 'out' is used on rank 'root' only. */
int slurmdl_reduce (struct slurmdl_comm *c, const void *in, void *out, size_t n,
                    enum slurmdl_type type, enum slurmdl_op op, long root,
                    struct slurmdl_error *err);

/* Rank r gets the r-th part of the reduced 'in', counts[r] elements.  NULL: n /
 * size, and one more for each of the first n % size ranks.
 */
int slurmdl_reduce_scatter (struct slurmdl_comm *c, const void *in, void *out, size_t n,
                            const size_t *counts, enum slurmdl_type type, enum slurmdl_op op,
                            struct slurmdl_error *err);

/* 'out' receives bytes[r] bytes from each rank r, in the order of ranks.  NULL:
 * all ranks send the same number, 'own'.
 */
int slurmdl_allgather (struct slurmdl_comm *c, const void *in, size_t own, void *out,
                       const size_t *bytes, struct slurmdl_error *err);

int slurmdl_broadcast (struct slurmdl_comm *c, void *data, size_t bytes, long root,
                       struct slurmdl_error *err);

/* Rank r gets to[r] bytes of 'in', which is in the order of ranks; from[r]
 * bytes from it go into 'out'.
 */
int slurmdl_alltoall (struct slurmdl_comm *c, const void *in, const size_t *to, void *out,
                      const size_t *from, struct slurmdl_error *err);

int slurmdl_barrier (struct slurmdl_comm *c, struct slurmdl_error *err);

/* Set the CUDA stream (cudaStream_t) in which collectives on device memory are
 * queued; they then return without waiting.  With NULL, the default, they
 * return when the result is complete.  ENOTSUP without NCCL.
 */
int slurmdl_comm_stream (struct slurmdl_comm *c, void *stream);

/* ---- named tensors ---- */

/* Each rank submits tensors by name, in any order.  Once all ranks have
 * submitted a tensor, it is reduced in the background, small tensors together
 * (fusion), so that communication overlaps with the rest of the backward pass.
 *
 * DL_FUSION_BYTES (64 MiB) limits how much is fused, DL_CYCLE_MS (1) how long
 * fusion waits.
 */
enum slurmdl_what {
    SLURMDL_ALLREDUCE,
    SLURMDL_ALLGATHER, /* of rows; their number may differ between ranks */
    SLURMDL_BROADCAST,
    SLURMDL_REDUCE_SCATTER, /* of rows; the first ranks may get one more */
};

enum slurmdl_compression {
    SLURMDL_PLAIN,
    SLURMDL_AS_F16, /* F32 and F64 are sent as F16 and accumulated in F32 */
    SLURMDL_AS_BF16,
};

/* 'row' of SLURMDL_ALLGATHER for rows without elements: 'n' and the numbers
 * from slurmdl_take() are then rows, and no memory is used.
 */
#define SLURMDL_ZERO_WIDTH ((size_t)-1)

struct slurmdl_request {
    const char *name; /* "layer4.1.conv2.weight"; unique among those in flight */
    enum slurmdl_what what;
    enum slurmdl_type type;
    enum slurmdl_op op;
    size_t n;  /* elements of 'in' */
    int ndims; /* shape of 'in', the same on all ranks (for all-gather, except the number of rows);
                  0: none */
    const uint64_t *dims;
    size_t row; /* elements per row, if there are rows; 0 means 1; SLURMDL_ZERO_WIDTH: 'n' counts
                   rows */
    long root;  /* of SLURMDL_BROADCAST */
    const void *in;  /* neither may be used until the tensor is done */
    void *out;       /* may be 'in'; NULL: slurmdl_take() */
    double prescale; /* factors; 0 means 1 */
    double postscale;
    enum slurmdl_compression compression;
    const char *group; /* reduce together with the 'members' of this group */
    size_t members;
    void *stream; /* for device memory: the CUDA stream (cudaStream_t) that computes 'in'; NULL: the
                     default stream */
};

/* 'in' and 'out' are memory of the host or of a CUDA device, the same kind on
 * all ranks (else EPROTO).  The tensor is read after the work that the program
 * has queued in 'stream' before the call; slurmdl_wait() and slurmdl_done()
 * mean that the result is in 'out' for every stream.  With NCCL, device memory
 * does not pass through the host: tensors are fused on the device, in a
 * separate stream.  The factors and the division of an average are then
 * combined into one factor, rounded to the type, and applied to each rank's
 * values before the sum.  Through the host go: everything without NCCL, and
 * with NCCL tensors that are compressed, have no 'out', or have factors and are
 * F8 or neither a sum nor an average.  Named tensors use an NCCL communicator
 * of their own: before calling collectives on device memory at the same time,
 * read NCCL's manual on multiple communicators.
 *
 * Returns a ticket, greater than 0, without waiting; or -1: EINVAL, EEXIST (the
 * name is in flight), ENOTCONN. If ranks disagree about a name, slurmdl_wait()
 * fails with EPROTO on all ranks; the communicator stays usable.
 */
int64_t slurmdl_submit (struct slurmdl_comm *c, const struct slurmdl_request *r,
                        struct slurmdl_error *err);

/* Returns 1 if it is done (or has failed: see slurmdl_wait()), else 0. */
int slurmdl_done (struct slurmdl_comm *c, int64_t ticket);

/* Wait for a tensor and release its ticket; ticket 0: for all of this rank's. */
int slurmdl_wait (struct slurmdl_comm *c, int64_t ticket, struct slurmdl_error *err);

/* The same for a request without 'out': the result, '*n' elements, and how many
 * came from each rank ('counts', size numbers, or NULL).  The caller frees
 * '*out'.
 */
int slurmdl_take (struct slurmdl_comm *c, int64_t ticket, void **out, size_t *n, size_t *counts,
                  struct slurmdl_error *err);

/* This rank has no more data: until all ranks have joined, it contributes zeros
 * to the sums of the others.  '*last' is the last rank to join.
 */
int slurmdl_join (struct slurmdl_comm *c, long *last, struct slurmdl_error *err);

/* Write the events of named tensors to 'path' in Chrome's trace format: one
 * file for each rank if it contains "%r", which becomes the rank, else only
 * rank 0 writes.  The file can be read at any time and is complete at
 * slurmdl_comm_close(); NULL ends it.  'cycles' adds an event whenever a rank
 * asks for new tensors (CYCLE_START).  DL_TIMELINE and DL_TIMELINE_CYCLES=1 do
 * the same.
 */
int slurmdl_timeline (struct slurmdl_comm *c, const char *path, int cycles,
                      struct slurmdl_error *err);

/* As slurmdl_trouble(): reports tensors that some ranks submitted DL_STALL_SECONDS (60) ago and
 * others have not, with the names of tensors, ranks and hosts.  After DL_STALL_ABORT seconds (0:
 * never) the communicator breaks with that text.  A rank that has not submitted anything yet is
 * given at most the time of a collective (DL_COMM_TIMEOUT).
 */
int slurmdl_comm_trouble (struct slurmdl_comm *c, struct slurmdl_error *err);

/* Cost of the named tensors so far. */
struct slurmdl_comm_stats {
    uint64_t tensors, bytes;   /* completed; of the results */
    uint64_t cycles, fused;    /* rounds, and collectives they made */
    uint64_t hits, negotiated; /* agreed by a bit, or by messages */
    double seconds;            /* in collectives */
    size_t fusion_bytes;       /* as set */
    double cycle_ms;
};
void slurmdl_comm_stats (struct slurmdl_comm *c, struct slurmdl_comm_stats *stats);

/* ---- elastic training ---- */

/* A world that can lose ranks and accept new ones, and training that continues
 * from the memory of the remaining ranks:
 *
 *     struct slurmdl_elastic *e = slurmdl_elastic_open (NULL, &err);
 *     slurmdl_elastic_protect (e, "w", SLURMDL_F32, 1, &n, weights, &err);
 *     while (step < steps) {
 *         struct slurmdl_comm *world = slurmdl_elastic_form (e, &err);
 *         if (!world)
 *             return errno == ECANCELED ? 0 : 1;
 *         if (slurmdl_elastic_restore (e, &step, &err) < 0)
 *             continue; (EINVAL: return 1)
 *         while (step < steps) {
 *             if (train (world, weights) < 0)
 *                 break;
 *             if (slurmdl_elastic_commit (e, ++step, &err) != 0)
 *                 break;
 *         }
 *     }
 *     slurmdl_elastic_close (e);
 *
 * `dl elastic` starts such a program on each node of a job, restarts what ends,
 * and serves `dl scale`.  Without it (srun --no-kill --kill-on-bad-exit=0
 * --wait=0) the program works too, but nothing is restarted.
 *
 * Started by hand, alone or with RANK and WORLD_SIZE, the program trains in a
 * world made by slurmdl_comm_open(), and the loss of a rank is fatal (ENOTCONN).
 *
 * Worlds are numbered.  The members of world G are listed in a file, in a folder
 * that all ranks see; it is created once, by any of them (link(2)): first the
 * ranks of world G - 1 that are still alive, in their order, then new ones, up to
 * the wanted number.  Liveness is only a hint: a rank that was left out, because
 * it was frozen, for example, finds no peers and joins again as a new one.
 *
 * Only one thread may use the handle and its communicator.
 */
struct slurmdl_elastic;

/* Zero and NULL select what the environment says. */
struct slurmdl_elastic_options {
    const char *dir; /* DL_ELASTIC_DIR, else a folder of this step in DL_RUN_DIR; outside a step:
                        started by hand */
    long min, max;   /* ranks; DL_ELASTIC_MIN (1), DL_ELASTIC_MAX (no limit) */
    double settle;   /* seconds that a live rank may take to join a world; DL_ELASTIC_SETTLE (20); a
                        quarter of it if its host does not answer */
    double timeout;  /* to reach 'min' ranks; DL_ELASTIC_TIMEOUT (600) */
};

/* Create the folder and a handle.  'o' may be NULL. Returns NULL on failure. */
struct slurmdl_elastic *slurmdl_elastic_open (const struct slurmdl_elastic_options *o,
                                              struct slurmdl_error *err);

/* Close the handle and its communicator; NULL is accepted.  All ranks call it
 * after the last commit: processes that wait to join then end (ECANCELED).
 */
int slurmdl_elastic_close (struct slurmdl_elastic *e);

/* Form a new world with the other live ranks: at the beginning, after a call of
 * the communicator has failed, and after slurmdl_elastic_commit() has returned
 * nonzero.  The handle owns the communicator; the next call closes it.
 *
 * Returns NULL on failure: ECANCELED if this rank is not needed, because the
 * world is to shrink or the training has ended; ETIMEDOUT if fewer than 'min'
 * ranks joined.
 */
struct slurmdl_comm *slurmdl_elastic_form (struct slurmdl_elastic *e, struct slurmdl_error *err);

/* Add 'data' to the state, as slurmdl_protect(): the same on all ranks, or this
 * rank's slab of a tensor, as slurmdl_protect_shard().  The same name again
 * replaces it.  Declare the slabs of a world after it was formed and before
 * slurmdl_elastic_restore(); together they must cover the tensor exactly once.
 * Fails with EINVAL or ENOMEM.
 */
int slurmdl_elastic_protect (struct slurmdl_elastic *e, const char *name, enum slurmdl_type type,
                             int ndims, const uint64_t *dims, void *data,
                             struct slurmdl_error *err);
int slurmdl_elastic_protect_shard (struct slurmdl_elastic *e, const char *name,
                                   enum slurmdl_type type, int ndims, const uint64_t *global,
                                   const uint64_t *offset, const uint64_t *local, void *data,
                                   struct slurmdl_error *err);

/* Add 'n' bytes, which are copied, to later commits, the same on all ranks; and
 * read them from a commit.  The caller frees '*bytes'; ENOENT if the name is
 * absent.
 */
int slurmdl_elastic_state (struct slurmdl_elastic *e, const char *name, const void *bytes, size_t n,
                           struct slurmdl_error *err);
int slurmdl_elastic_read_state (struct slurmdl_elastic *e, const char *name, void **bytes,
                                size_t *n);

/* Called by all ranks after the same step: copy the state to memory, and each
 * slab to the memory of one other rank, on another node if nodes have the same
 * number of ranks.  The previous commit is kept until this one is complete.
 *
 * Returns 0; 1 if it is complete, and ranks wait to join or are to leave; -1 if
 * a rank was lost.  After both, form a new world.
 */
int slurmdl_elastic_commit (struct slurmdl_elastic *e, int64_t step, struct slurmdl_error *err);

/* Called by all ranks of a new world: fill the protected memory from the newest
 * commit that the ranks have together, and commit it in the new world.
 *
 * Returns 1 if done, with the commit's '*step'; 0 if there is none, with
 * '*step' unchanged: fill the memory as at the start, from a checkpoint, for
 * example ('err' says so if there was a commit, but a rank and the holder of
 * the copy of its slab were both lost); -1 if a rank was lost meanwhile, or,
 * with EINVAL on all ranks, if the protected memory differs from what was
 * committed: no new world can repair that.
 */
int slurmdl_elastic_restore (struct slurmdl_elastic *e, int64_t *step, struct slurmdl_error *err);

/* The current world, and how it was formed. */
struct slurmdl_elastic_world {
    int64_t generation; /* 1, 2, ...; 0: none yet */
    long size, kept;    /* ranks; those that were in the previous world */
    long lost, left;    /* of the previous world: lost, or not needed */
    double seconds;     /* duration of slurmdl_elastic_form() here */
};
void slurmdl_elastic_world (const struct slurmdl_elastic *e, struct slurmdl_elastic_world *world);

#ifdef __cplusplus
}
#endif

#endif
