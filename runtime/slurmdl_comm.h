/* SPDX-License-Identifier: Apache-2.0 */
/* libslurmdl-comm: the ranks of a job compute together. */
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
 *     slurmdl_comm_close (world, NULL);
 *
 * It works under srun with and without --dl, under PMIx, PMI-2 and plain TCP,
 * and in a process that nothing started (one rank).
 *
 * Unless said otherwise a function returns 0, or -1 with errno set and 'err',
 * which may be NULL and needs no initial value, filled.  Every wait is bounded:
 * a rank that does not come, or whose process or host has gone, is named with
 * its host, on all ranks, within the time-out (ETIMEDOUT) or as soon as it is
 * known (ECONNRESET).  After such an error the communicator is broken: every
 * call fails with ENOTCONN but slurmdl_comm_close(); slurmdl_elastic_form()
 * makes another one of those that are left.
 *
 * One thread at a time may use a communicator, except that named tensors may
 * be submitted and waited for by any thread at any time.
 */

struct slurmdl_comm;

/* Zero and NULL mean: as the environment says. */
struct slurmdl_comm_options {
    long rank, size;       /* size 0: of the step */
    const char *bootstrap; /* "pmix", "pmi", "tcp"; DL_COMM_BOOTSTRAP */
    const char *address;   /* HOST:PORT that rank 0 prefers; DL_COMM_ADDRESS */
    const char *backend;   /* "native", "mpi", "nccl"; DL_COMM_BACKEND */
    double timeout;        /* seconds; DL_COMM_TIMEOUT, else 300 */
};

/* Meet the other ranks.  'o' may be NULL.
 *
 * Who they are comes from PMIx where srun --mpi=pmix started us, else from
 * PMI-1/2 (PMI_FD), else from RANK and WORLD_SIZE, else from SLURM_PROCID and
 * SLURM_STEP_NUM_TASKS.  Rank 0 listens at a port that the kernel chooses, or
 * at that of DL_COMM_ADDRESS, if it is free, and publishes its address: over
 * PMIx or PMI, else in a file in ~/.slurm-dl and, with any option of
 * dl-spank(7), with srun.  Only processes with the step's secret get in:
 * DL_SECRET, which srun makes with these options, else what PMIx or PMI passes
 * on, else what that file has; slurmdl_comm(3) has more.
 *
 * Returns NULL on failure.
 */
struct slurmdl_comm *slurmdl_comm_open (const struct slurmdl_comm_options *o,
                                        struct slurmdl_error *err);

/* Leave.  What was submitted is completed first; NULL is accepted.  -1: it
 * could not be, and 'err' names the rank that did not come, or has gone.
 */
int slurmdl_comm_close (struct slurmdl_comm *c, struct slurmdl_error *err);

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
struct slurmdl_comm *slurmdl_comm_split (struct slurmdl_comm *c, long color, long key,
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

int slurmdl_allreduce (struct slurmdl_comm *c, const void *in, void *out, size_t n,
                       enum slurmdl_type type, enum slurmdl_op op, struct slurmdl_error *err);

/* 'out' is used on rank 'root' only. */
int slurmdl_reduce (struct slurmdl_comm *c, const void *in, void *out, size_t n,
                    enum slurmdl_type type, enum slurmdl_op op, long root,
                    struct slurmdl_error *err);

/* Rank r gets the r-th part, counts[r] elements, of the reduced 'in'.
 * NULL: n / size and one more for each of the first n % size ranks.
 */
int slurmdl_reduce_scatter (struct slurmdl_comm *c, const void *in, void *out, size_t n,
                            const size_t *counts, enum slurmdl_type type, enum slurmdl_op op,
                            struct slurmdl_error *err);

/* 'out' gets bytes[r] bytes of each rank r, in the order of ranks; NULL: each
 * rank has the same number, 'own'.
 */
int slurmdl_allgather (struct slurmdl_comm *c, const void *in, size_t own, void *out,
                       const size_t *bytes, struct slurmdl_error *err);

int slurmdl_broadcast (struct slurmdl_comm *c, void *data, size_t bytes, long root,
                       struct slurmdl_error *err);

/* Rank r gets to[r] bytes of 'in', which are in the order of ranks; from[r]
 * come from it into 'out'.
 */
int slurmdl_alltoall (struct slurmdl_comm *c, const void *in, const size_t *to, void *out,
                      const size_t *from, struct slurmdl_error *err);

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
 * and how long is waited for it.
 */
enum slurmdl_what {
    SLURMDL_ALLREDUCE,
    SLURMDL_ALLGATHER, /* of rows; their number may differ between ranks */
    SLURMDL_BROADCAST,
    SLURMDL_REDUCE_SCATTER, /* of rows; the first ranks have one more */
};

enum slurmdl_compression {
    SLURMDL_PLAIN,
    SLURMDL_AS_F16, /* F32 and F64 travel as F16, are added in F32 */
    SLURMDL_AS_BF16,
};

/* 'row' of SLURMDL_ALLGATHER for rows without elements: 'n', and what
 * slurmdl_take() counts, are then rows, and no memory is used.
 */
#define SLURMDL_ZERO_WIDTH ((size_t)-1)

struct slurmdl_request {
    const char *name; /* "layer4.1.conv2.weight"; one at a time each */
    enum slurmdl_what what;
    enum slurmdl_type type;
    enum slurmdl_op op;
    size_t n;  /* elements of 'in' */
    int ndims; /* shape of 'in', the same on all ranks (of what is gathered
                  but for its rows); 0: it has none */
    const uint64_t *dims;
    size_t row;      /* elements of a row, where there are rows; 0 means 1;
                        SLURMDL_ZERO_WIDTH: none, 'n' is rows */
    long root;       /* of SLURMDL_BROADCAST */
    const void *in;  /* the caller leaves both alone until it is done */
    void *out;       /* may be 'in'; NULL: slurmdl_take() */
    double prescale; /* factors; 0 means 1 */
    double postscale;
    enum slurmdl_compression compression;
    const char *group; /* with the 'members' of the same group, or not at all */
    size_t members;
    void *stream; /* for device memory: the CUDA stream (cudaStream_t) in which
                     'in' gets its values; NULL: the default one */
};

/* 'in' and 'out' are memory of the host or of a CUDA device, the same on all
 * ranks (else EPROTO).  What the program has given 'stream' to do until the
 * call comes before the tensor is read; slurmdl_wait() and slurmdl_done() mean
 * that the result is in 'out', for any stream.  With NCCL device memory does
 * not pass through the host: tensors are put together on the device, in a
 * stream beside all others.  There the factors and the division of an average
 * are one factor, rounded to the type, by which each rank's values are
 * multiplied before they are added.  Without NCCL, and with it what is
 * compressed, has no 'out', or has factors and is F8 or not a sum or average,
 * goes through the host.  Named tensors have a communicator of NCCL of their
 * own: see NCCL's manual on several at a time before collectives on device
 * memory are called meanwhile.
 *
 * Returns a ticket, greater than 0, without waiting; -1: EINVAL, EEXIST (the
 * name is being reduced), ENOTCONN.  That ranks disagree on what a name is
 * comes from slurmdl_wait(), as EPROTO, on all ranks; the communicator is
 * not broken by it.
 */
int64_t slurmdl_submit (struct slurmdl_comm *c, const struct slurmdl_request *r,
                        struct slurmdl_error *err);

/* 1: done (or failed: slurmdl_wait() tells), 0: not yet. */
int slurmdl_done (struct slurmdl_comm *c, int64_t ticket);

/* Wait for it, and give the ticket back; ticket 0: for all of this rank's. */
int slurmdl_wait (struct slurmdl_comm *c, int64_t ticket, struct slurmdl_error *err);

/* The same, for a request without 'out': the result, '*n' elements, and how
 * many came from each rank ('counts', size numbers, or NULL).  The caller
 * frees '*out'.
 */
int slurmdl_take (struct slurmdl_comm *c, int64_t ticket, void **out, size_t *n, size_t *counts,
                  struct slurmdl_error *err);

/* This rank has no more data: until all ranks have come here it takes part
 * in the others' sums with zeros.  '*last' is the last rank to come.
 */
int slurmdl_join (struct slurmdl_comm *c, long *last, struct slurmdl_error *err);

/* Write what happens to named tensors, in Chrome's trace format, to 'path': one
 * file a rank, if it has "%r" (its number), else only rank 0 writes.  It is
 * whole at slurmdl_comm_close(), readable before; NULL ends it.  'cycles': also
 * when a rank asks for what is new (CYCLE_START).  DL_TIMELINE and
 * DL_TIMELINE_CYCLES=1 do the same.
 */
int slurmdl_timeline (struct slurmdl_comm *c, const char *path, int cycles,
                      struct slurmdl_error *err);

/* Whether there is something new to tell the user, as slurmdl_trouble():
 * tensors that some ranks have submitted and others have not for
 * DL_STALL_SECONDS (60), with the names of tensors, ranks and hosts.  After
 * DL_STALL_ABORT seconds (0: never) the communicator is broken with that text.
 * A rank that has not submitted anything yet is waited for at most as long as
 * for a collective (DL_COMM_TIMEOUT).
 */
int slurmdl_comm_trouble (struct slurmdl_comm *c, struct slurmdl_error *err);

/* What the named tensors have cost so far. */
struct slurmdl_comm_stats {
    uint64_t tensors, bytes;   /* completed; of the results */
    uint64_t cycles, fused;    /* rounds, and collectives they made */
    uint64_t hits, negotiated; /* agreed on by a bit, or by messages */
    double seconds;            /* in collectives */
    size_t fusion_bytes;       /* as set */
    double cycle_ms;
};
void slurmdl_comm_stats (struct slurmdl_comm *c, struct slurmdl_comm_stats *stats);

/* ---- elastic training ---- */

/* A world that loses ranks and takes others in, and training that goes on
 * from the memory of those that are left:
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
 * `dl elastic` starts such a program on each node of a job, starts again what
 * ends, and takes `dl scale`; it works without it, too (srun --no-kill
 * --kill-on-bad-exit=0 --wait=0), where nothing is started again.
 *
 * By hand, alone or with RANK and WORLD_SIZE, it trains as well, in a world
 * that slurmdl_comm_open() makes; there the loss of a rank is the end
 * (ENOTCONN).
 *
 * Worlds are numbered.  Who is in world G is a file in a folder that all ranks
 * see, made once (link(2)), whoever makes it: all that were in world G - 1 and
 * still live, in their order, then those that came, up to the number wanted.
 * Whether a process lives is a hint only: a rank that was passed over, as it
 * was frozen, say, finds no one to speak to, and comes in again as a new one.
 *
 * One thread uses the handle and its communicator.
 */
struct slurmdl_elastic;

/* Zero and NULL mean: as the environment says. */
struct slurmdl_elastic_options {
    const char *dir; /* DL_ELASTIC_DIR, else one of this step in DL_RUN_DIR;
                        where there is no step: by hand */
    long min, max;   /* ranks; DL_ELASTIC_MIN (1), DL_ELASTIC_MAX (no limit) */
    double settle;   /* seconds in which a rank that lives comes to form a
                        world; DL_ELASTIC_SETTLE (20); a quarter of it where
                        its host does not answer */
    double timeout;  /* to have 'min' ranks; DL_ELASTIC_TIMEOUT (600) */
};

/* The folder is made.  'o' may be NULL.  NULL on failure. */
struct slurmdl_elastic *slurmdl_elastic_open (const struct slurmdl_elastic_options *o,
                                              struct slurmdl_error *err);

/* Ends it, and its communicator.  After the last commit all ranks call it:
 * those that wait to be taken in then end (ECANCELED).  NULL is accepted.
 */
int slurmdl_elastic_close (struct slurmdl_elastic *e);

/* Meet the others that live in a new world: at the beginning, after a call of
 * the communicator has failed, and after slurmdl_elastic_commit() gave
 * nonzero.  The communicator is the handle's, until the next call, which
 * closes it.
 *
 * NULL on failure, with errno ECANCELED if this rank is not needed: the world
 * is to be smaller, or the training has ended; ETIMEDOUT if fewer than 'min'
 * ranks have come.
 */
struct slurmdl_comm *slurmdl_elastic_form (struct slurmdl_elastic *e, struct slurmdl_error *err);

/* Say that 'data' is part of the state, as slurmdl_protect(): the same on all
 * ranks, or this rank's slab of a tensor, as slurmdl_protect_shard().  The
 * same name again replaces it.  Slabs of a world are given after it was
 * formed, before slurmdl_elastic_restore(); together they cover the tensor
 * once.  Fails with EINVAL and ENOMEM.
 */
int slurmdl_elastic_protect (struct slurmdl_elastic *e, const char *name, enum slurmdl_type type,
                             int ndims, const uint64_t *dims, void *data,
                             struct slurmdl_error *err);
int slurmdl_elastic_protect_shard (struct slurmdl_elastic *e, const char *name,
                                   enum slurmdl_type type, int ndims, const uint64_t *global,
                                   const uint64_t *offset, const uint64_t *local, void *data,
                                   struct slurmdl_error *err);

/* Put 'n' bytes, which are copied, into the commits from now on, the same on
 * all ranks; and read what a commit had.  '*bytes' is the caller's to free();
 * ENOENT if there is none of this name.
 */
int slurmdl_elastic_state (struct slurmdl_elastic *e, const char *name, const void *bytes, size_t n,
                           struct slurmdl_error *err);
int slurmdl_elastic_read_state (struct slurmdl_elastic *e, const char *name, void **bytes,
                                size_t *n);

/* All ranks, after the same step: copy the state to memory, and each slab to
 * the memory of one other rank, on another node where nodes have the same
 * number of ranks.  The commit before is kept until this one is whole.
 *
 * Returns 0; 1 if it is whole, and ranks wait to come in, or are to go; -1 if
 * a rank was lost.  In both the world is to be formed anew.
 */
int slurmdl_elastic_commit (struct slurmdl_elastic *e, int64_t step, struct slurmdl_error *err);

/* All ranks of a new world: fill the protected memory from the newest commit
 * that the ranks have together, and commit that in the new world.
 *
 * Returns 1 if done, '*step' is then the commit's; 0 if there is none, and
 * '*step' is as before: the memory is to be filled as at the start, from a
 * checkpoint, say ('err' tells if there was one, and a rank and the one that
 * had a copy of its slab were both lost); -1 if a rank was lost meanwhile, or
 * with EINVAL, on all ranks, if what is protected is not what was committed,
 * which no new world mends.
 */
int slurmdl_elastic_restore (struct slurmdl_elastic *e, int64_t *step, struct slurmdl_error *err);

/* The world that is, and how it came to be. */
struct slurmdl_elastic_world {
    int64_t generation; /* 1, 2, ...; 0: none yet */
    long size, kept;    /* ranks; of them, those of the world before */
    long lost, left;    /* of the world before: lost, or not needed */
    double seconds;     /* that slurmdl_elastic_form() took here */
};
void slurmdl_elastic_world (const struct slurmdl_elastic *e, struct slurmdl_elastic_world *world);

#ifdef __cplusplus
}
#endif

#endif
