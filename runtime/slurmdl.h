/* SPDX-License-Identifier: Apache-2.0 */
/* libslurmdl: what a training program uses inside a job. */
#ifndef SLURMDL_H
#define SLURMDL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A program opens a run, reads its hyperparameters, restores the newest
 * checkpoint, trains, logs metrics, saves checkpoints, and stops when it is
 * asked to:
 *
 *     struct slurmdl_error err;
 *     struct slurmdl *run = slurmdl_open (NULL, &err);
 *     double lr = slurmdl_float (run, "lr", 0.1);
 *     slurmdl_protect (run, "weights", SLURMDL_F32, 1, &n, weights);
 *     int64_t epoch = 0;
 *     slurmdl_restore (run, &epoch, &err);
 *     while (epoch < slurmdl_length (run) && !slurmdl_should_stop (run)) {
 *         train (++epoch);
 *         slurmdl_log (run, "validation_error", epoch, error);
 *         slurmdl_save (run, epoch, &err);
 *     }
 *     slurmdl_close (run);
 *
 * Under `dl run` the run is the trial's attempt that the worker started.
 * Without it, in a Slurm job or not, it is a new attempt in the folder
 * 'dir': the same files, so that a program restarted there finds its
 * checkpoints.  Of several ranks (RANK, else SLURM_PROCID in a step) only
 * rank 0 writes: where another one logs or saves, the call succeeds and does
 * nothing.  Every rank restores.
 *
 * Unless said otherwise a function returns 0 on success and -1 on failure
 * with errno set and, where it takes one that is not NULL, 'err' filled.  The
 * library never prints or exits.  One thread may use a run at a time, except
 * for slurmdl_log() and slurmdl_should_stop(), which any thread may call.
 */

/* One clear line: what, where, what to do. */
struct slurmdl_error {
    char text[256];
};

/* ---- run ---- */

struct slurmdl;

/* Open the run of this process.
 *
 * 'dir': folder of the trial for a program that no worker started; NULL
 * means the variable DL_RUN_DIR, else "slurmdl" in the current folder.  It is
 * created, and in it a.K/ for the first K that no other attempt has taken.
 * Under a worker (DL_ATTEMPT_DIR is set) 'dir' is not used.
 *
 * Handlers are installed for SIGTERM and SIGUSR2, where their disposition is
 * the default one, that request a stop (slurmdl_should_stop()); they are
 * removed by slurmdl_close().  DL_SIGNALS=0 prevents that.
 *
 * Returns NULL on failure.
 */
struct slurmdl *slurmdl_open (const char *dir, struct slurmdl_error *err);

/* Flush and close; NULL is accepted.  Returns -1 if metrics were lost. */
int slurmdl_close (struct slurmdl *run);

const char *slurmdl_experiment (const struct slurmdl *run); /* "" if none */
long slurmdl_trial (const struct slurmdl *run);             /* 0 if none */
long slurmdl_attempt (const struct slurmdl *run);           /* 1, 2, ... */
const char *slurmdl_dir (const struct slurmdl *run); /* of this attempt */
uint32_t slurmdl_seed (const struct slurmdl *run);   /* of this trial */
long slurmdl_rank (const struct slurmdl *run);
long slurmdl_size (const struct slurmdl *run);

/* Length, in the unit of the experiment's max_length, to which to train the
 * trial now.  INT64_MAX where no worker set one.
 */
int64_t slurmdl_length (const struct slurmdl *run);

/* ---- hyperparameters ---- */

/* A nested name is written with dots: "optimizer.lr".  The values are those
 * of the variables DL_HP_NAME (a dot is written as an underscore), so that a
 * program can be tried by hand.  A name that is absent, or whose value is
 * not of the kind asked for, gives 'otherwise'; slurmdl_hp() tells which.
 */
double
slurmdl_float (const struct slurmdl *run, const char *name, double otherwise);
int64_t
slurmdl_int (const struct slurmdl *run, const char *name, int64_t otherwise);
const char *slurmdl_string (const struct slurmdl *run,
                            const char *name,
                            const char *otherwise);

/* The value as text, NULL with errno ENOENT if there is no such name. */
const char *slurmdl_hp (const struct slurmdl *run, const char *name);

/* ---- metrics ---- */

/* Log one scalar.  'name' is at most 63 bytes ("validation/loss"), 'step' in
 * the unit of slurmdl_length().  The value is queued; a thread writes it
 * within 0.1 s to metrics.h5 in slurmdl_dir(), where it survives the death of
 * the process.  Fails with EINVAL (name), ENOSPC (more than 1,024 names, or
 * more than 1 M values wait because the disk does not take them): training
 * may ignore that, the loss is counted.
 */
int slurmdl_log (struct slurmdl *run,
                 const char *name,
                 int64_t step,
                 double value);

/* Wait until what was logged is on stable storage (fdatasync). */
int slurmdl_flush (struct slurmdl *run, struct slurmdl_error *err);

/* ---- checkpoints ---- */

enum slurmdl_type {
    SLURMDL_I8,
    SLURMDL_U8,
    SLURMDL_I32,
    SLURMDL_U32,
    SLURMDL_I64,
    SLURMDL_U64,
    SLURMDL_F16,
    SLURMDL_F32,
    SLURMDL_F64,
};

/* Say that 'data' (C order, 'ndims' <= 8 dimensions, 0 for a scalar) is part
 * of the checkpoint under 'name' ("model/w1": HDF5 groups are made).  The
 * memory stays the caller's and must live as long as the run.  It may be
 * memory of a CUDA device where the CUDA back end is installed.
 */
int slurmdl_protect (struct slurmdl *run,
                     const char *name,
                     enum slurmdl_type type,
                     int ndims,
                     const uint64_t *dims,
                     void *data);

/* Save all protected memory as ckpt/STEP.h5: one whole HDF5 file, on stable
 * storage and verified when this returns.  An older one of this attempt is
 * removed only then; the two newest stay, and under `dl run` the best and the
 * newest ones that checkpoint_policy (dl-experiment(5)) asks for.  What was
 * logged before is stored first.
 */
int slurmdl_save (struct slurmdl *run, int64_t step, struct slurmdl_error *err);

/* Fill the protected memory from the newest checkpoint of this trial that
 * verifies; '*step' is then its step.  Damaged files are passed over.  A
 * trial that goes on from another one (population based training) begins with
 * that one's checkpoint.
 *
 * Returns 1 if restored, 0 if there is none (memory and '*step' unchanged),
 * -1 if a name, type or shape differs from what was protected (EINVAL), or
 * on an I/O error.
 */
int slurmdl_restore (struct slurmdl *run,
                     int64_t *step,
                     struct slurmdl_error *err);

/* ---- stopping ---- */

/* Nonzero once a stop was requested (SIGTERM or SIGUSR2 from Slurm or the
 * worker, or slurmdl_request_stop()): save a checkpoint and return from main
 * with status 0.  Costs one load.
 */
int slurmdl_should_stop (const struct slurmdl *run);
void slurmdl_request_stop (struct slurmdl *run); /* async-signal-safe */

/* Exit statuses of a program that have a meaning of their own. */
enum {
    /* its hyperparameters make no sense together: the trial is not tried
     * again, and the search puts another one in its place */
    SLURMDL_EXIT_REJECT = 65,
    SLURMDL_EXIT_AGAIN = 75, /* try again; does not count as a failure */
    SLURMDL_EXIT_NEVER = 78, /* failed, and another try makes no sense */
};

/* ---- metrics and checkpoint files by themselves ---- */

struct slurmdl_metrics;

/* Create a metrics file in folder 'dir' for the calling process alone:
 * metrics.h5, or metrics.1.h5, ... where that name is taken, so that no file
 * ever has two writers.  It is a valid HDF5 file from the moment it has its
 * name until it is closed, whatever is killed.
 */
struct slurmdl_metrics *slurmdl_metrics_create (const char *dir,
                                                struct slurmdl_error *err);
int slurmdl_metrics_log (struct slurmdl_metrics *m,
                         const char *name,
                         int64_t step,
                         double value);
int slurmdl_metrics_flush (struct slurmdl_metrics *m,
                           struct slurmdl_error *err);
/* Returns -1 if metrics were lost. */
int slurmdl_metrics_destroy (struct slurmdl_metrics *m);

struct slurmdl_row {
    int64_t step;
    double time; /* seconds since the epoch, on the writer's clock */
    double value;
    const char *name; /* until the call-back returns */
};

/* Call 'f' for each row of the file 'path', oldest first, while a writer may
 * be at work on it.  A row whose checksum is wrong ends the file.  'f'
 * returning nonzero ends the reading, and that value is returned.
 */
typedef int (*slurmdl_row_f) (const struct slurmdl_row *row, void *arg);
int slurmdl_metrics_read (const char *path,
                          slurmdl_row_f f,
                          void *arg,
                          struct slurmdl_error *err);

/* The same for all metrics files of an attempt's folder, in order of name.
 * A folder without any is no error.
 */
int slurmdl_metrics_read_dir (const char *dir,
                              slurmdl_row_f f,
                              void *arg,
                              struct slurmdl_error *err);

/* Read the whole checkpoint and compare its checksums.  '*step' is set. */
int slurmdl_checkpoint_verify (const char *path,
                               int64_t *step,
                               struct slurmdl_error *err);

/* Find the newest checkpoint that verifies under the attempts a.1/ .. of the
 * trial's folder 'dir', with a step of at most 'max_step'.  Of equal steps
 * the one of attempt 'prefer' (0: none), else of the highest attempt.
 *
 * Returns its path, which the caller frees; NULL with errno ENOENT if there
 * is none.
 */
char *slurmdl_checkpoint_find (const char *dir,
                               int64_t max_step,
                               long prefer,
                               int64_t *step);

#ifdef __cplusplus
}
#endif

#endif
