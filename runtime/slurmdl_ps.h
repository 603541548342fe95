/* SPDX-License-Identifier: Apache-2.0 */
/* libslurmdl-ps: a parameter server. */
#ifndef SLURMDL_PS_H
#define SLURMDL_PS_H

#include "slurmdl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Servers hold the parameters, each a part of them; workers push gradients
 * and pull parameters.  One program is both, by its role:
 *
 *     struct slurmdl_ps *ps = slurmdl_ps_open (NULL, &err);
 *     if (slurmdl_ps_is_server (ps))
 *         return slurmdl_ps_serve (ps, &err) < 0 || slurmdl_ps_close (ps) < 0;
 *     struct slurmdl_ps_table t = { .name = "w", .n = n,
 *                                   .rule = SLURMDL_PS_SGD, .rate = 0.1 };
 *     int w = slurmdl_ps_table (ps, &t, weights, &err);
 *     while (slurmdl_ps_iteration (ps) < iterations) {
 *         slurmdl_ps_pull (ps, w, weights, NULL, &err);
 *         backward (weights, gradient);
 *         slurmdl_ps_push (ps, w, gradient, NULL, &err);
 *         slurmdl_ps_clock (ps, &err);
 *     }
 *     slurmdl_ps_close (ps);
 *
 * started by
 *
 *     srun --dl=ps --dl-roles=ps:2,worker:* -n 8 program
 *
 * Unless said otherwise a function returns 0, or -1 with errno set and 'err',
 * which may be NULL and needs no initial value, filled.  Every wait is bounded,
 * and what was waited for is named with its host.  After an error of the
 * connection (ETIMEDOUT, ECONNRESET, ESTALE) every call fails with ENOTCONN but
 * slurmdl_ps_close().  One thread at a time uses a slurmdl_ps.
 *
 * How they find each other: through small files in a folder that all see, at
 * which a server tells its addresses and a port, and a number drawn by lot
 * that a peer must know.  Servers with the same folder are one group.
 *
 * Losses.  A server keeps its parameters in memory and saves them now and
 * then (slurmdl_ps_save()), all servers at the same iteration.  A worker keeps
 * what it has pushed since then, and sends it again to a server that takes a
 * lost one's place: a new process with the same role and index, or a spare
 * (role scheduler) that waits for it.  So what a server has acknowledged is
 * not lost when it dies, nor when all servers die, as long as the workers
 * live.  A worker that dies takes its log with it: when both it and a server
 * die before the next save, that server loses what this worker has pushed
 * since the last one.  When everything dies, all go on from the newest
 * iteration that all servers have saved; there may be more servers then, or
 * fewer, and parameters go with the state of their rules to their new places,
 * bit for bit.
 *
 * A worker whose process has ended, or whose connection is gone for 'grace'
 * seconds, is lost: the others wait no longer for it, and what it has pushed in
 * an unfinished iteration does not count in mode sync.  A new process with its
 * index takes its place and goes on where it was, or, if they have gone on,
 * where the slowest of the others is.  A push that is repeated by it, or that
 * is sent again, is applied once: it is known by its iteration and its number
 * therein, so workers push in each iteration the same tables in the same order.
 *
 * Hosts that are cut off.  A worker that cannot reach a server for 'grace'
 * seconds gives it up, and a spare may take its place; unless that server is
 * connected to most of the workers, as then it is the worker that is given up
 * (ESTALE).  A server that has lost the connections to most workers without a
 * word from their hosts gives up nobody for the time in which they give up it.
 * A server or worker that was given up and comes back, or wakes up, ends with
 * ESTALE: what it has done meanwhile does not count, and what it had
 * acknowledged before is in the workers' logs.
 */

struct slurmdl_ps;

enum slurmdl_ps_mode {
    /* A pull of iteration t sees all pushes of iterations before t of all
     * workers, and no others: they are summed, in the order of workers, and
     * the rule is applied once to the sum.  The same bits in each run. */
    SLURMDL_PS_SYNC = 1,
    /* Pushes are applied as they come; nobody waits. */
    SLURMDL_PS_ASYNC,
    /* As async, but a pull in iteration c waits until all workers have ended
     * iteration c - staleness - 1 (SSP; Ho et al. 2013, "More Effective
     * Distributed ML via a Stale Synchronous Parallel Parameter Server"). */
    SLURMDL_PS_BOUNDED,
};

/* Zero and NULL mean: as the environment says (--dl=ps sets the first three),
 * else the value in parentheses.
 */
struct slurmdl_ps_options {
    const char *role; /* "server", "ps", "worker", "scheduler": DL_ROLE */
    long index;       /* among those of the role, with 'role': DL_ROLE_INDEX */
    long servers, workers; /* how many: DL_PS_SERVERS, DL_PS_WORKERS */
    const char *dir;       /* DL_PS_DIR (see below) */
    const char *address;   /* of a server: DL_PS_ADDRESS (all that it has) */
    enum slurmdl_ps_mode mode; /* DL_PS_MODE: sync, async, bounded (sync) */
    long staleness;            /* of bounded: DL_PS_STALENESS (0) */
    int64_t save_every;        /* iterations: DL_PS_SAVE_EVERY (as logs fill) */
    long long log_bytes; /* of a worker: DL_PS_LOG_BYTES (256 MiB); negative:
                            no log, and a lost server loses what came after
                            its last save */
    double timeout;      /* seconds: DL_PS_TIMEOUT (300) */
    double grace;        /* seconds: DL_PS_GRACE (10) */
};

/* 'o' may be NULL.  All processes give the same servers, workers, mode and
 * staleness: EPROTO for the one that does not.  A worker finds all servers
 * here; a server takes its place in the group, and restores what was saved.
 *
 * The folder, if nothing else names it, is ps in the trial's folder under `dl
 * run`, else in DL_RUN_DIR, else in slurmdl; in a Slurm step it is
 * ps.JOB.STEP.  A process that is to replace one from another step needs the
 * same DL_PS_DIR.
 *
 * Returns NULL on failure.
 */
struct slurmdl_ps *slurmdl_ps_open (const struct slurmdl_ps_options *o,
                                    struct slurmdl_error *err);

/* Leave.  A worker ends its unfinished iteration first, if it has pushed in
 * it, and waits until all is acknowledged.  NULL is accepted.
 */
int slurmdl_ps_close (struct slurmdl_ps *ps);

int slurmdl_ps_is_server (const struct slurmdl_ps *ps); /* or a spare one */
long slurmdl_ps_index (const struct slurmdl_ps *ps);
long slurmdl_ps_servers (const struct slurmdl_ps *ps);
long slurmdl_ps_workers (const struct slurmdl_ps *ps);

/* ---- a server ---- */

/* Serve until all workers have left, and at least one has done so by
 * slurmdl_ps_close().  A spare waits meanwhile, and serves if it is needed.
 *
 * Fails with ECONNRESET when the last worker was lost and none came within the
 * time-out, ETIMEDOUT when no worker came at all, ESTALE when another process
 * has taken this one's place, ECANCELED after slurmdl_ps_stop(), and when it
 * cannot save.
 */
int slurmdl_ps_serve (struct slurmdl_ps *ps, struct slurmdl_error *err);

/* From a handler of signals or another thread: slurmdl_ps_serve() is to
 * return.
 */
void slurmdl_ps_stop (struct slurmdl_ps *ps);

/* ---- tables ---- */

/* What a server does with a gradient g of the parameter v.  'decay' adds
 * decay * v to g first. */
enum slurmdl_ps_rule {
    SLURMDL_PS_ADD,    /* v += g */
    SLURMDL_PS_ASSIGN, /* v = g; sync: that of the highest worker */
    SLURMDL_PS_SGD,    /* m = momentum m + g; v -= rate m */
    /* a += g^2; v -= rate g / (sqrt (a) + epsilon) (Duchi et al. 2011) */
    SLURMDL_PS_ADAGRAD,
    /* Kingma and Ba 2015, algorithm 1; of rows: each has its own time */
    SLURMDL_PS_ADAM,
};

enum { SLURMDL_PS_NAME_SIZE = 64 };

/* Elements are F32.  A dense table is spread over the servers in ranges of
 * nearly the same size, in multiples of 256 KiB (a smaller one is on one
 * server); the rows of a sparse one by their ids, which are any numbers below
 * 2^64 - 1.  A row
 * is made when it is first used, with values that are uniform in [low, high)
 * and depend on the name, seed, id and column alone.
 */
struct slurmdl_ps_table {
    const char *name;
    uint64_t n;   /* elements of a dense table; 0: it is sparse */
    uint32_t row; /* elements of a row of a sparse one */
    enum slurmdl_ps_rule rule;
    double rate, momentum, decay;
    double beta1, beta2; /* of adam; 0: 0.9, 0.999 */
    double epsilon;      /* 0: 1e-8 */
    double low, high;
    uint64_t seed;
};

/* Declare a table; all workers give the same (EPROTO).  'initial' are the
 * values of a dense one, NULL for zeros; those of worker 0 count, and pushes
 * and pulls wait for them.  A table that was restored keeps its values.
 *
 * Returns its number in this process, from 0.
 */
int slurmdl_ps_table (struct slurmdl_ps *ps,
                      const struct slurmdl_ps_table *t,
                      const float *initial,
                      struct slurmdl_error *err);

/* Change the rate; any worker may, one is enough. */
int slurmdl_ps_rate (struct slurmdl_ps *ps,
                     int table,
                     double rate,
                     struct slurmdl_error *err);

/* Push and pull a dense table, all of it; or 'n' rows, one after the other, of
 * a sparse one, which may be 0.  Gradients of a row that is there twice in a
 * call are added first; such a row is pulled twice.
 *
 * With 'ticket' NULL a push returns when the data were taken (they are not
 * needed any more, and were given to the kernel or are in the log), a pull
 * when the result is there.  Else '*ticket' is greater than 0, and until
 * slurmdl_ps_wait() the caller leaves 'out' alone.
 */
int slurmdl_ps_push (struct slurmdl_ps *ps,
                     int table,
                     const float *gradient,
                     int64_t *ticket,
                     struct slurmdl_error *err);
int slurmdl_ps_pull (struct slurmdl_ps *ps,
                     int table,
                     float *out,
                     int64_t *ticket,
                     struct slurmdl_error *err);
int slurmdl_ps_push_rows (struct slurmdl_ps *ps,
                          int table,
                          const uint64_t *ids,
                          size_t n,
                          const float *gradients,
                          int64_t *ticket,
                          struct slurmdl_error *err);
int slurmdl_ps_pull_rows (struct slurmdl_ps *ps,
                          int table,
                          const uint64_t *ids,
                          size_t n,
                          float *out,
                          int64_t *ticket,
                          struct slurmdl_error *err);

/* Push a dense table, end the iteration, and pull: a whole step of a model
 * with one table, in one round trip.  'out' may be 'gradient'.
 */
int slurmdl_ps_push_pull (struct slurmdl_ps *ps,
                          int table,
                          const float *gradient,
                          float *out,
                          struct slurmdl_error *err);

/* Wait until all servers have acknowledged the push or answered the pull;
 * ticket 0: all that this worker has sent.
 */
int slurmdl_ps_wait (struct slurmdl_ps *ps,
                     int64_t ticket,
                     struct slurmdl_error *err);

/* End this worker's iteration.  Waits only where its log is full, for the
 * servers to save.
 */
int slurmdl_ps_clock (struct slurmdl_ps *ps, struct slurmdl_error *err);

/* How many iterations this worker has ended; those of the process that it
 * replaces, and those before a save that was restored, are counted.
 */
int64_t slurmdl_ps_iteration (const struct slurmdl_ps *ps);

/* Ask that all servers save, when all workers have ended one of the next
 * iterations.  Returns at once.  In mode async, too, what was pushed later is
 * not in the save.
 *
 * A server goes on serving while it saves: it copies its tables between
 * requests, and before a request changes what was not copied yet, and a
 * thread of its own writes the copy.  So until the file is written a server
 * needs up to as much memory again as its tables have with the state of their
 * rules.  If the next save is due before that, it waits, and pushes that come
 * after it do.
 */
int slurmdl_ps_save (struct slurmdl_ps *ps, struct slurmdl_error *err);

/* The newest iteration that all servers are known to have saved; 0: none.
 * The files are checkpoints as slurmdl_checkpoint_open() reads them,
 * ITERATION.server-I.K.h5 in the folder.
 */
int64_t slurmdl_ps_saved (const struct slurmdl_ps *ps);

/* What a worker, or a server, has done so far. */
struct slurmdl_ps_stats {
    uint64_t pushes, pulls; /* requests to one server each */
    uint64_t bytes_out, bytes_in;
    uint64_t repeated;  /* requests: sent again, or not applied again */
    uint64_t lost;      /* servers replaced, or workers given up as lost */
    uint64_t saves;     /* of a server */
    uint64_t log_bytes; /* of a worker, now */
    double waited;      /* seconds, of a worker */
    int64_t ahead;      /* of a server: the most iterations by which a worker
                           was ahead of the slowest when it got an answer */
};
void slurmdl_ps_stats (const struct slurmdl_ps *ps,
                       struct slurmdl_ps_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
