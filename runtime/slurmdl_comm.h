/* SPDX-License-Identifier: Apache-2.0 */
/* libslurmdl: the ranks of a job compute together. */
#ifndef SLURMDL_COMM_H
#define SLURMDL_COMM_H

#include "slurmdl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every rank of a step opens the communicator, and then all call the same
 * collectives in the same order; or each submits named tensors in whatever
 * order its gradients get ready:
 *
 *     struct slurmdl_comm *world = slurmdl_comm_open (NULL, &err);
 *     slurmdl_broadcast (world, weights, bytes, 0, &err);
 *     while (training) {
 *         backward (gradients);
 *         slurmdl_allreduce (world, gradients, gradients, n, SLURMDL_F32,
 *                            SLURMDL_AVERAGE, &err);
 *         update (weights, gradients);
 *     }
 *     slurmdl_comm_close (world);
 *
 * It works under srun with and without --dl, under PMIx, PMI-2 and plain TCP,
 * and in a process that nothing started (one rank).
 *
 * Unless said otherwise a function returns 0, or -1 with errno set and 'err',
 * which may be NULL, filled.  Every wait is bounded: a rank that does not
 * come, or whose process or host has gone, is named with its host, on all
 * ranks, within the time-out (ETIMEDOUT) or as soon as it is known
 * (ECONNRESET).  After such an error the communicator is broken: every call
 * fails with ENOTCONN but slurmdl_comm_close() and slurmdl_comm_reform().
 *
 * One thread at a time may use a communicator, except that named tensors may
 * be submitted and waited for by any thread at any time.
 */

struct slurmdl_comm;

/* Zero and NULL mean: as the environment says. */
struct slurmdl_comm_options {
    long rank, size;       /* size 0: of the step */
    const char *bootstrap; /* "pmix", "pmi", "tcp"; DL_COMM_BOOTSTRAP */
    const char *address;   /* HOST:PORT where rank 0 listens; DL_COMM_ADDRESS */
    const char *backend;   /* "native", "mpi", "nccl"; DL_COMM_BACKEND */
    double timeout;        /* seconds; DL_COMM_TIMEOUT, else 300 */
};

/* Meet the other ranks.  'o' may be NULL.
 *
 * Who they are comes from PMIx where srun --mpi=pmix started us, else from
 * PMI-1/2 (PMI_FD), else from RANK and WORLD_SIZE, else from SLURM_PROCID and
 * SLURM_STEP_NUM_TASKS.  Rank 0 listens at DL_COMM_ADDRESS, HOST:PORT (set by
 * --dl), else at the step's first host and a reserved port, if there is one.
 *
 * Returns NULL on failure.
 */
struct slurmdl_comm *slurmdl_comm_open (const struct slurmdl_comm_options *o,
                                        struct slurmdl_error *err);

/* Leave.  What was submitted is completed first; NULL is accepted. */
int slurmdl_comm_close (struct slurmdl_comm *c);

/* Leave at once: the others' calls fail and name this rank and 'why'. */
void slurmdl_comm_abort (struct slurmdl_comm *c, const char *why);

long slurmdl_comm_rank (const struct slurmdl_comm *c);
long slurmdl_comm_size (const struct slurmdl_comm *c);
long slurmdl_comm_local_rank (const struct slurmdl_comm *c); /* on its node */
long slurmdl_comm_local_size (const struct slurmdl_comm *c);
long slurmdl_comm_node (const struct slurmdl_comm *c);
long slurmdl_comm_nodes (const struct slurmdl_comm *c);
const char *slurmdl_comm_host (const struct slurmdl_comm *c, long rank);
const char *slurmdl_comm_backend (const struct slurmdl_comm *c);
const char *slurmdl_comm_bootstrap (const struct slurmdl_comm *c);

/* A communicator of those ranks that give the same 'color', ordered by 'key',
 * then by rank; NULL with errno 0 for a negative color.  All ranks call it.
 * It is closed by its owner, before 'c'.
 */
struct slurmdl_comm *slurmdl_comm_split (struct slurmdl_comm *c,
                                         long color,
                                         long key,
                                         struct slurmdl_error *err);

/* ---- collectives ---- */

/* 'in' and 'out' are memory of the host or of a CUDA device, the same kind on
 * all ranks; they may be the same where both have the same size, and do not
 * overlap otherwise.  'n' counts elements and may be 0.  All ranks give the
 * same n, type, op and root (a difference is EPROTO, where it is seen).
 *
 * Floating-point sums differ from the serial one by rounding only; they are
 * the same, bit for bit, on all ranks, and from run to run with the same
 * ranks on the same nodes.  F16, BF16 and F8 are added in F32.
 */
enum slurmdl_op {
    SLURMDL_SUM,
    SLURMDL_AVERAGE, /* the sum over size; not of integers: EINVAL */
    SLURMDL_MIN,     /* not of complex numbers */
    SLURMDL_MAX,
    SLURMDL_PRODUCT,
};

int slurmdl_allreduce (struct slurmdl_comm *c,
                       const void *in,
                       void *out,
                       size_t n,
                       enum slurmdl_type type,
                       enum slurmdl_op op,
                       struct slurmdl_error *err);

/* 'out' is used on rank 'root' only. */
int slurmdl_reduce (struct slurmdl_comm *c,
                    const void *in,
                    void *out,
                    size_t n,
                    enum slurmdl_type type,
                    enum slurmdl_op op,
                    long root,
                    struct slurmdl_error *err);

/* Rank r gets the r-th part, counts[r] elements, of the reduced 'in'.
 * NULL: n / size and one more for each of the first n % size ranks.
 */
int slurmdl_reduce_scatter (struct slurmdl_comm *c,
                            const void *in,
                            void *out,
                            size_t n,
                            const size_t *counts,
                            enum slurmdl_type type,
                            enum slurmdl_op op,
                            struct slurmdl_error *err);

/* 'out' gets bytes[r] bytes of each rank r, in the order of ranks; NULL: each
 * rank has the same number, 'own'.
 */
int slurmdl_allgather (struct slurmdl_comm *c,
                       const void *in,
                       size_t own,
                       void *out,
                       const size_t *bytes,
                       struct slurmdl_error *err);

int slurmdl_broadcast (struct slurmdl_comm *c,
                       void *data,
                       size_t bytes,
                       long root,
                       struct slurmdl_error *err);

/* Rank r gets to[r] bytes of 'in', which are in the order of ranks; from[r]
 * come from it into 'out'.
 */
int slurmdl_alltoall (struct slurmdl_comm *c,
                      const void *in,
                      const size_t *to,
                      void *out,
                      const size_t *from,
                      struct slurmdl_error *err);

int slurmdl_barrier (struct slurmdl_comm *c, struct slurmdl_error *err);

/* The CUDA stream (cudaStream_t) in which collectives on device memory are
 * queued; they then return without waiting.  NULL, the default: they return
 * when the result is there.  ENOTSUP without NCCL.
 */
int slurmdl_comm_stream (struct slurmdl_comm *c, void *stream);

/* ---- named tensors ---- */

/* Each rank submits tensors by name, in any order; those that all ranks have
 * submitted are reduced in the background, small ones together (fusion), so
 * that communication overlaps with the rest of the backward pass.
 *
 * DL_FUSION_BYTES (64 MiB) and DL_CYCLE_MS (1) say how much is put together
 * and how long is waited for it; DL_COMM_AUTOTUNE=1 searches for the best of
 * both in the first steps.
 */
enum slurmdl_what {
    SLURMDL_ALLREDUCE,
    SLURMDL_ALLGATHER, /* of rows; their number may differ between ranks */
    SLURMDL_BROADCAST,
    SLURMDL_REDUCE_SCATTER,
};

enum slurmdl_compression {
    SLURMDL_PLAIN,
    SLURMDL_AS_F16, /* F32 and F64 travel as F16, are added in F32 */
    SLURMDL_AS_BF16,
    /* the largest 'keep' of each rank's values; the rest is added to the
     * next ones of the same name (error feedback; Stich 2018,
     * arXiv:1809.07599); F32 and F64, SUM and AVERAGE */
    SLURMDL_TOP_K,
};

struct slurmdl_request {
    const char *name; /* "layer4.1.conv2.weight"; one at a time each */
    enum slurmdl_what what;
    enum slurmdl_type type;
    enum slurmdl_op op;
    size_t n;        /* elements of 'in' */
    size_t row;      /* elements of a row, for SLURMDL_ALLGATHER */
    long root;       /* of SLURMDL_BROADCAST */
    const void *in;  /* the caller leaves both alone until it is done */
    void *out;       /* may be 'in'; NULL: slurmdl_take() */
    double prescale; /* factors; 0 means 1 */
    double postscale;
    enum slurmdl_compression compression;
    double keep;       /* of SLURMDL_TOP_K: share, 0 < keep <= 1 */
    const char *group; /* with the 'members' of the same group, or not at all */
    size_t members;
};

/* Returns a ticket, greater than 0, without waiting; -1: EINVAL, EEXIST (the
 * name is being reduced), ENOTCONN.  That ranks disagree on what a name is
 * comes from slurmdl_wait(), as EPROTO, on all ranks; the communicator is
 * not broken by it.
 */
int64_t slurmdl_submit (struct slurmdl_comm *c,
                        const struct slurmdl_request *r,
                        struct slurmdl_error *err);

/* 1: done (or failed: slurmdl_wait() tells), 0: not yet. */
int slurmdl_done (struct slurmdl_comm *c, int64_t ticket);

/* Wait for it, and give the ticket back; ticket 0: for all of this rank's. */
int slurmdl_wait (struct slurmdl_comm *c,
                  int64_t ticket,
                  struct slurmdl_error *err);

/* The same, for a request without 'out': the result, '*n' elements, and how
 * many came from each rank ('counts', size numbers, or NULL).  The caller
 * frees '*out'.
 */
int slurmdl_take (struct slurmdl_comm *c,
                  int64_t ticket,
                  void **out,
                  size_t *n,
                  size_t *counts,
                  struct slurmdl_error *err);

/* This rank has no more data: until all ranks have come here it takes part
 * in the others' sums with zeros.  '*last' is the last rank to come.
 */
int slurmdl_join (struct slurmdl_comm *c,
                  long *last,
                  struct slurmdl_error *err);

/* Write what happens to named tensors, in Chrome's trace format, to 'path',
 * one file a rank ("%r" is its number), whole at slurmdl_comm_close(), readable
 * before; NULL ends it.  DL_TIMELINE does the same.
 */
int slurmdl_timeline (struct slurmdl_comm *c,
                      const char *path,
                      struct slurmdl_error *err);

/* Whether there is something new to tell the user, as slurmdl_trouble():
 * tensors that some ranks have submitted and others have not for
 * DL_STALL_SECONDS (60), with the names of tensors, ranks and hosts.  After
 * DL_STALL_ABORT seconds (0: never) the communicator is broken with that text.
 */
int slurmdl_comm_trouble (struct slurmdl_comm *c, struct slurmdl_error *err);

/* What the named tensors have cost so far. */
struct slurmdl_comm_stats {
    uint64_t tensors, bytes;   /* completed; of the results */
    uint64_t cycles, fused;    /* rounds, and collectives they made */
    uint64_t hits, negotiated; /* agreed on by a bit, or by messages */
    double seconds;            /* in collectives */
    size_t fusion_bytes;       /* as set, or as tuned */
    double cycle_ms;
};
void slurmdl_comm_stats (struct slurmdl_comm *c,
                         struct slurmdl_comm_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
