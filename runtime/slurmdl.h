/* SPDX-License-Identifier: Apache-2.0 */
/* libslurmdl: what a training program uses inside a job. */
#ifndef SLURMDL_H
#define SLURMDL_H

#include <stddef.h>
#include <stdint.h>

#include "slurmdl_error.h"

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
 *     if (slurmdl_restore (run, &epoch, &err) < 0)
 *         return 1;
 *     while (epoch < slurmdl_length (run) && !slurmdl_should_stop (run)) {
 *         train (++epoch);
 *         slurmdl_log (run, "validation_error", epoch, error);
 *         slurmdl_save (run, epoch, &err);
 *     }
 *     slurmdl_close (run);
 *
 * Under `dl run` the run is the trial's attempt that the worker started.
 * Elsewhere, in a Slurm job or not, it is a new attempt in the folder 'dir' with
 * the same files, so that a restarted program finds its checkpoints there.  If
 * there are several ranks (RANK, else SLURM_PROCID in a step), only rank 0
 * writes: logging or saving on another rank succeeds and does nothing, unless
 * memory differs between ranks (slurmdl_protect_shard()).  Every rank restores.
 *
 * Unless documented otherwise, a function returns 0 on success, or -1 on failure
 * with errno set and 'err', unless NULL, filled in.  'err' needs no initial
 * value.  The library never prints or exits.  Only one thread may use a run at a
 * time, except for slurmdl_should_stop() and the section on metrics.
 */

/* ---- run ---- */

struct slurmdl;

/* Open the run of this process.
 *
 * 'dir': folder of the trial for a program that no worker started; NULL selects
 * the variable DL_RUN_DIR, else "slurmdl" in the working directory (later
 * changes of the working directory do not matter).  It is created, and in it
 * a.K/ for the first K that no other attempt has taken.  Under a worker
 * (DL_ATTEMPT_DIR is set) 'dir' is ignored.
 *
 * Unless DL_SIGNALS=0, SIGTERM and SIGUSR2 get handlers, if their disposition
 * is the default, that request a stop (slurmdl_should_stop()); slurmdl_close()
 * removes them.
 *
 * In a batch job, a program that SIGTERM has stopped waits at its exit to be
 * killed: otherwise Slurm would not requeue it.  See slurmdl(3), Stopping.
 *
 * Returns NULL on failure.
 */
struct slurmdl *slurmdl_open (const char *dir, struct slurmdl_error *err);

/* Wait for saves, flush and close; NULL is accepted.  Returns -1 if metrics
 * were lost or a save has failed.
 */
int slurmdl_close (struct slurmdl *run);

const char *slurmdl_experiment (const struct slurmdl *run); /* "" if none */
long slurmdl_trial (const struct slurmdl *run);             /* 0 if none */
long slurmdl_attempt (const struct slurmdl *run);           /* 1, 2, ... */
const char *slurmdl_dir (const struct slurmdl *run);        /* of this attempt */
uint32_t slurmdl_seed (const struct slurmdl *run);          /* of this trial */
long slurmdl_rank (const struct slurmdl *run);
long slurmdl_size (const struct slurmdl *run);

/* Length to train the trial to now, in the unit of the experiment's max_length;
 * INT64_MAX if no worker set one.
 */
int64_t slurmdl_length (const struct slurmdl *run);

/* ---- hyperparameters ---- */

/* Nested names are written with dots: "optimizer.lr".  The values come from the
 * variables DL_HP_NAME (dots become underscores), so that a program can be
 * tried by hand.  Returns 'otherwise' if the name is absent or its value is of
 * another kind; slurmdl_hp() tells which.
 */
double slurmdl_float (const struct slurmdl *run, const char *name, double otherwise);
int64_t slurmdl_int (const struct slurmdl *run, const char *name, int64_t otherwise);
const char *slurmdl_string (const struct slurmdl *run, const char *name, const char *otherwise);

/* The value as text, or NULL with errno ENOENT if the name is absent. */
const char *slurmdl_hp (const struct slurmdl *run, const char *name);

/* ---- metrics ---- */

/* Logged values go into a queue in memory.  A thread writes them to metrics.h5
 * in slurmdl_dir() within 0.1 s, where they survive the death of the process.
 * The calls of this section do not wait for the disk, with two exceptions:
 * slurmdl_flush(), and logging a scalar while 1 M of them are queued, which
 * waits until the disk has taken some.  Once the disk has accepted nothing for
 * a second, or has reported an error, no further call waits: up to 1 M scalars
 * and 64 MiB of records stay queued and are written when there is space again;
 * everything beyond that is lost and counted.
 *
 * A name has 1 to 63 bytes of UTF-8 and may have a group before a slash:
 * "training/loss", "validation/error", "system/power".  'step' is in the unit
 * of slurmdl_length().  The calls fail with EINVAL (invalid argument), ENOSPC
 * (lost: the queue is full, or there are more than 1,024 names) or EPERM (in a
 * child of the process that opened the run); training may ignore that.  Any
 * thread may call them.
 */

/* Handle of a metric.  It belongs to the run and is valid until
 * slurmdl_close().  Returns NULL on failure.
 */
struct slurmdl_metric;
struct slurmdl_metric *slurmdl_metric (struct slurmdl *run, const char *name);

/* Log one scalar through a handle or, somewhat slower, by name.  EINVAL for a NULL handle. */
int slurmdl_log_to (struct slurmdl_metric *metric, int64_t step, double value);
int slurmdl_log (struct slurmdl *run, const char *name, int64_t step, double value);

/* Set the epoch of all values logged from now on.  Each call adds a row to the
 * metric "epoch", with the step of the row before it.
 */
int slurmdl_epoch (struct slurmdl *run, double epoch);

/* Records of up to 16 MiB; the arguments are copied. */
int slurmdl_log_vector (struct slurmdl *run, const char *name, int64_t step, size_t n,
                        const double *values);

/* 'edges' has nbins + 1 ascending values. */
int slurmdl_log_histogram (struct slurmdl *run, const char *name, int64_t step, size_t nbins,
                           const double *edges, const uint64_t *counts);

int slurmdl_log_text (struct slurmdl *run, const char *name, int64_t step,
                      const char *text); /* UTF-8 */

/* 'pixels' has rows from the top, each with its pixels, each with its 1 to 4
 * channels (grey, grey and alpha, RGB, RGBA).
 */
int slurmdl_log_image (struct slurmdl *run, const char *name, int64_t step, unsigned width,
                       unsigned height, unsigned channels, const unsigned char *pixels);

/* An event, such as parameters or a note: its kind, a name like a metric's, and
 * a JSON object, which is only checked to be UTF-8.
 */
int slurmdl_event (struct slurmdl *run, const char *kind, const char *json);

/* Number of scalars and records lost so far. */
int64_t slurmdl_lost (const struct slurmdl *run);

/* Whether there is a new problem to report: the disk accepts no data, or values were lost.  Returns
 * 1 with 'err' filled in once for each problem, else 0; costs one load.
 */
int slurmdl_trouble (struct slurmdl *run, struct slurmdl_error *err);

/* Wait until everything logged is on stable storage (fdatasync); ETIMEDOUT if
 * the disk does not answer within 30 s.
 */
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
    SLURMDL_BF16, /* bfloat16 */
    SLURMDL_BOOL, /* a byte, 0 or 1 */
    SLURMDL_C64,  /* two F32: real, imaginary */
    SLURMDL_C128, /* two F64 */
    SLURMDL_I16,
    SLURMDL_U16,
    SLURMDL_F8_E4M3,
    SLURMDL_F8_E5M2,
};

enum { SLURMDL_DIMS_MAX = 8, SLURMDL_NAME_SIZE = 128 };

/* Add 'data' (C order, 'ndims' <= 8 dimensions, 0 for a scalar) to the
 * checkpoint under 'name' ("model/w1" creates HDF5 groups); the same name again
 * replaces it.  The caller owns the memory, which must stay valid as long as
 * the run.  It may be memory of a CUDA device if the CUDA back end is
 * installed.  EINVAL for a name that HDF5 does not accept, that is not UTF-8,
 * that has 128 bytes or more, or that is reserved ("manifest", "shards",
 * "state", alone or before a slash).
 */
int slurmdl_protect (struct slurmdl *run, const char *name, enum slurmdl_type type, int ndims,
                     const uint64_t *dims, void *data);

/* Add 'data', this rank's slab of a tensor of the shape 'global': it begins at
 * 'offset' and has the shape 'local' (both with 'ndims' numbers, 1 to 8).  The
 * slabs of all ranks together must cover the tensor exactly once; a rank
 * without a part of it protects a slab with a 0 in 'local', or nothing.
 *
 * Once any rank has a slab, slurmdl_save(), slurmdl_save_async() and
 * slurmdl_restore() are collective: every rank must have a slab or a state of
 * its own (slurmdl_state()) and call them in the same order.  The ranks
 * communicate through files in the run's folder, which all of them must see.
 */
int slurmdl_protect_shard (struct slurmdl *run, const char *name, enum slurmdl_type type, int ndims,
                           const uint64_t *global, const uint64_t *offset, const uint64_t *local,
                           void *data);

/* Remove 'name' from later checkpoints (ENOENT if it is not protected); NULL
 * removes everything, including states.
 */
int slurmdl_unprotect (struct slurmdl *run, const char *name);

/* Add 'n' bytes, which are copied, to later checkpoints: the state of a random
 * number generator, a scheduler, a data loader.  The same name again replaces
 * them.  A name with "%r", which stands for the rank, is separate for each
 * rank: saving is then collective, as with slabs.
 */
int slurmdl_state (struct slurmdl *run, const char *name, const void *bytes, size_t n);

/* Read what slurmdl_state() added to the restored checkpoint or, without one,
 * to the next.  The caller frees '*bytes'.  Fails with ENOENT.
 */
int slurmdl_read_state (struct slurmdl *run, const char *name, void **bytes, size_t *n);

/* Save all protected memory as ckpt/STEP.h5: one HDF5 file, complete and on
 * stable storage when this returns.  An older checkpoint of this attempt is
 * removed only after the new one was read back and verified (at once if it is
 * small, else by a thread).  The two newest stay, and under `dl run` the best
 * and newest ones that checkpoint_policy (dl-experiment(5)) selects.  Metrics
 * logged before are stored first.
 *
 * If it is collective, all ranks return the same.  A rank that does not join
 * within DL_RANK_TIMEOUT seconds (600) is named in the error, and no file is
 * made.
 */
int slurmdl_save (struct slurmdl *run, int64_t step, struct slurmdl_error *err);

/* The same, but return as soon as the protected memory was copied; a thread
 * writes the copy.  Two saves may be in flight; a third waits for the first of
 * them.  The memory of the copy is reused; a second copy is allocated only by a
 * save that begins while another is in flight.  The call that allocates memory
 * waits for that, unless slurmdl_save_prepare() was called.  If there is no
 * memory for a copy (DL_SNAPSHOT_MAX bytes, else half of the free memory), the
 * save is synchronous; the call returns 0, and 'err' says so.
 *
 * The failure of an earlier save is returned once, by the next call of this
 * function (which begins its own save all the same) or of slurmdl_save_wait(),
 * else by slurmdl_close().
 */
int slurmdl_save_async (struct slurmdl *run, int64_t step, struct slurmdl_error *err);

/* Let a thread allocate the memory that the first slurmdl_save_async() of the
 * currently protected memory will need, so that it costs no more than later
 * ones.  Does nothing if there is none.
 */
void slurmdl_save_prepare (struct slurmdl *run);

/* Wait until no save is in flight and all saved files are verified; -1 if one
 * has failed.  With several ranks, rank 0 reads a large file back and reports
 * if that fails.
 */
int slurmdl_save_wait (struct slurmdl *run, struct slurmdl_error *err);

/* Fill the protected memory from the newest checkpoint of this trial that
 * verifies, and set '*step'.  Damaged files are skipped: 'err' names the newest
 * of them although 1 is returned (on rank 0, if it is collective).  The
 * checkpoint may have been saved by another number of ranks with other slabs;
 * each rank reads and verifies the saved parts (of at most 16 MiB) that it
 * needs.  A trial that continues another one (population based training) starts
 * from that one's checkpoint.
 *
 * Returns 1 if restored, 0 if there is no checkpoint (memory and '*step' are
 * unchanged), -1 if a name, type or shape differs from what was protected
 * (EINVAL), if every file is damaged in some way (EBADMSG: 'err' names them,
 * and part of the memory may be overwritten), or if a file, or a folder that
 * may have some, cannot be read (an I/O error, EACCES).  Do not treat -1 as 0:
 * training would start from the beginning, and what was saved would be lost.
 */
int slurmdl_restore (struct slurmdl *run, int64_t *step, struct slurmdl_error *err);

/* The same, only for the protected names that match 'pattern' (fnmatch(3),
 * NULL: all), from the checkpoint 'path' (NULL: the newest).  It is not
 * collective, and does not change slurmdl_read_state().
 */
int slurmdl_restore_only (struct slurmdl *run, const char *pattern, const char *path, int64_t *step,
                          struct slurmdl_error *err);

/* ---- stopping ---- */

/* Nonzero once a stop was requested (SIGTERM or SIGUSR2 from Slurm or the
 * worker, slurmdl_request_stop(), or because the job's time limit is near):
 * save a checkpoint and return from main with status 0.  Costs one load.
 *
 * Without a worker, which watches the time limit itself, the limit is
 * SLURM_JOB_END_TIME; the request comes DL_STOP_MARGIN seconds (60) plus twice
 * the duration of the last save before it.
 */
int slurmdl_should_stop (const struct slurmdl *run);
void slurmdl_request_stop (struct slurmdl *run); /* async-signal-safe */

/* Whether to stop here, with the same answer on all ranks: each calls this with
 * the same sequence of steps (once an iteration, for example), and a request on
 * any rank stops all of them at the same step, within seconds.  Costs a
 * comparison; now and then rank 0 writes a file in the run's folder, and the
 * others read it.
 *
 * Returns 0 or 1, or -1 with errno ETIMEDOUT if rank 0 does not answer.
 */
int slurmdl_stop_here (struct slurmdl *run, int64_t step);

/* Exit statuses with a special meaning. */
enum {
    /* the hyperparameters are invalid together: the trial is not tried again,
     * and the search replaces it
     */
    SLURMDL_EXIT_REJECT = 65,
    SLURMDL_EXIT_AGAIN = 75, /* try again; does not count as a failure */
    SLURMDL_EXIT_NEVER = 78, /* failed, and another try is useless */
};

/* ---- metrics of arrays ---- */

/* Log a histogram of 64 bins from the least to the largest finite value, with
 * the mean, the standard deviation and the number of NaN and infinite values;
 * for complex numbers, of the absolute values.  'values' is host memory.
 */
int slurmdl_log_samples (struct slurmdl *run, const char *name, int64_t step,
                         enum slurmdl_type type, size_t n, const void *values);

/* ---- metrics and checkpoint files without a run ---- */

struct slurmdl_metrics;

/* Create a metrics file in folder 'dir' for the calling process alone:
 * metrics.h5, or metrics.1.h5, ... if that name is taken, so that a file never
 * has two writers.  It is a valid HDF5 file from the moment it has its name
 * until it is closed, whatever process is killed.
 */
struct slurmdl_metrics *slurmdl_metrics_create (const char *dir, struct slurmdl_error *err);
int slurmdl_metrics_log (struct slurmdl_metrics *m, const char *name, int64_t step, double value);
int slurmdl_metrics_flush (struct slurmdl_metrics *m, struct slurmdl_error *err);
/* Returns -1 if metrics were lost. */
int slurmdl_metrics_destroy (struct slurmdl_metrics *m);

struct slurmdl_row {
    int64_t step;
    double time; /* seconds since the epoch, on the writer's clock */
    double value;
    const char *name; /* valid until the callback returns */
    double epoch;     /* set by slurmdl_epoch(); NaN: none */
    long attempt;     /* of the file */
    int superseded;   /* by a later attempt: slurmdl_trial_read() */
};

/* Call 'f' for each row of the file 'path', oldest first, even while a writer
 * is active.  If 'f' returns nonzero, reading stops and that value is returned.
 * Rows with a wrong checksum are skipped: after the other rows the call returns
 * -1 with EBADMSG, and 'err' says how many are lost.
 *
 * Rows above the step to which the run was restored after it had logged them
 * (slurmdl_restore() in mid-run) are left out.
 */
typedef int (*slurmdl_row_f) (const struct slurmdl_row *row, void *arg);
int slurmdl_metrics_read (const char *path, slurmdl_row_f f, void *arg, struct slurmdl_error *err);

/* The same for all metrics files in an attempt's folder, the oldest first.  A
 * folder without any is not an error.  A damaged file is reported with EBADMSG
 * after the others have been read.
 */
int slurmdl_metrics_read_dir (const char *dir, slurmdl_row_f f, void *arg,
                              struct slurmdl_error *err);

/* The same for all attempts a.1/, a.2/, .. in the trial's folder 'dir',
 * including superseded rows: those above the step to which a later attempt was
 * restored, or at or above a step at which one has logged the same metric.  Damaged files are
 * skipped, and the call then fails with EBADMSG at the end.
 */
int slurmdl_trial_read (const char *dir, slurmdl_row_f f, void *arg, struct slurmdl_error *err);

/* Set '*step' to the lowest step to which the attempt with the folder 'dir' was restored.
 * Returns 1, or 0 if it started from the beginning.
 */
int slurmdl_resumed_at (const char *dir, int64_t *step);

enum slurmdl_kind {
    SLURMDL_VECTOR = 1,
    SLURMDL_HISTOGRAM,
    SLURMDL_TEXT,
    SLURMDL_IMAGE,
    SLURMDL_EVENT,
};

struct slurmdl_record {
    int64_t step;
    double time;
    const char *name;       /* the kind, for an event */
    enum slurmdl_kind kind; /* skip unknown kinds */
    size_t size;
    const void *data; /* vector: doubles; text, event: UTF-8, NUL-terminated */
};

/* The same for records other than scalars. */
typedef int (*slurmdl_record_f) (const struct slurmdl_record *r, void *arg);
int slurmdl_records_read (const char *path, slurmdl_record_f f, void *arg,
                          struct slurmdl_error *err);
int slurmdl_records_read_dir (const char *dir, slurmdl_record_f f, void *arg,
                              struct slurmdl_error *err);

struct slurmdl_histogram {
    uint64_t nbins;
    double min, max, mean, sd; /* of the finite samples; NaN: not known */
    uint64_t n;                /* samples, all of them */
    uint64_t nan, infinite;    /* samples outside all bins */
    const double *edges;       /* nbins + 1 */
    const uint64_t *counts;    /* nbins */
};

struct slurmdl_image {
    unsigned width, height, channels;
    const unsigned char *pixels;
};

/* Decode a record; the pointers refer to memory of the record.  EINVAL if it is
 * of another kind or invalid.
 */
int slurmdl_record_histogram (const struct slurmdl_record *r, struct slurmdl_histogram *h);
int slurmdl_record_image (const struct slurmdl_record *r, struct slurmdl_image *image);

/* Read the whole checkpoint and verify its checksums.  Sets '*step'. */
int slurmdl_checkpoint_verify (const char *path, int64_t *step, struct slurmdl_error *err);

/* Find the newest checkpoint that verifies in the attempts a.1/ .. of the
 * trial's folder 'dir', with a step of at most 'max_step'.  Among equal steps,
 * attempt 'prefer' (0: none) wins, else the highest attempt.
 *
 * Returns its path, which the caller frees, or NULL with errno ENOENT if there
 * is none.
 */
char *slurmdl_checkpoint_find (const char *dir, int64_t max_step, long prefer, int64_t *step);

/* ---- the tensors of a checkpoint ---- */

/* A tensor of a file, or one to be written. */
struct slurmdl_tensor {
    char name[SLURMDL_NAME_SIZE];
    enum slurmdl_type type;
    int ndims;
    uint64_t dims[SLURMDL_DIMS_MAX];
    uint64_t bytes;
    uint32_t shards; /* parts in which it was saved, each with a checksum */
    int state;       /* nonzero: a blob of slurmdl_state() */
};

/* "f32" and so on, NULL if there is no such type; and its size, 0 if there is no such type. */
const char *slurmdl_type_name (enum slurmdl_type type);
size_t slurmdl_type_size (enum slurmdl_type type);

struct slurmdl_checkpoint;

/* Open a checkpoint for reading.  Everything but the data of the tensors is
 * verified now; data are verified when they are read.  Returns NULL with
 * EBADMSG if the file is damaged, EPROTONOSUPPORT if a later version wrote it.
 */
struct slurmdl_checkpoint *slurmdl_checkpoint_open (const char *path, struct slurmdl_error *err);
void slurmdl_checkpoint_close (struct slurmdl_checkpoint *c);
int64_t slurmdl_checkpoint_step (const struct slurmdl_checkpoint *c);

/* The owner of a checkpoint, determined from the open file, not from what is
 * now at its path.  Copies made by dl record the original owner at their end.
 */
struct slurmdl_origin {
    const char *path; /* belongs to the checkpoint */
    uint32_t owner;   /* user id of the writer; UINT32_MAX: anyone */
    int own;          /* only this user or root could write the file and its data */
};

/* Fill in '*origin'.  Do not interpret data that is not your own: a pickle,
 * above all, can harm the user who loads it. slurmdl_restored_origin()
 * describes the restored checkpoint and fails with ENOENT if there is none; the
 * path is valid until the next restore.
 */
int slurmdl_checkpoint_origin (const struct slurmdl_checkpoint *c, struct slurmdl_origin *origin);
int slurmdl_restored_origin (const struct slurmdl *run, struct slurmdl_origin *origin);

/* Number of tensors, including states. */
size_t slurmdl_checkpoint_count (const struct slurmdl_checkpoint *c);
/* Describe tensor 'i', which is less than the count; else EINVAL. */
int slurmdl_checkpoint_info (const struct slurmdl_checkpoint *c, size_t i,
                             struct slurmdl_tensor *t);
/* The index of a tensor; -1 with ENOENT if there is none. */
int64_t slurmdl_checkpoint_find_tensor (const struct slurmdl_checkpoint *c, const char *name);
/* Read the slab of shape 'dims' at 'offset' (NULL for both: all) into 'data',
 * host memory.  The saved parts that it overlaps are read and verified
 * (EBADMSG).
 */
int slurmdl_checkpoint_read (struct slurmdl_checkpoint *c, const char *name, const uint64_t *offset,
                             const uint64_t *dims, void *data, struct slurmdl_error *err);

/* Remove a checkpoint.  Inside an experiment, fails if a component of the path
 * is a symbolic link, which another member of the group may have made.
 */
int slurmdl_checkpoint_remove (const char *path, struct slurmdl_error *err);

/* Write a checkpoint tensor by tensor. _add() writes 'data', which may be freed
 * afterwards.  The file gets its name 'path', and replaces an existing file, at
 * _commit().  Returns NULL with EINVAL if 'path' exists and is not a regular
 * file (a device, for example).
 */
struct slurmdl_writer;
struct slurmdl_writer *slurmdl_writer_open (const char *path, int64_t step,
                                            struct slurmdl_error *err);
int slurmdl_writer_add (struct slurmdl_writer *w,
                        const struct slurmdl_tensor *t, /* name to dims, state */
                        const void *data, struct slurmdl_error *err);
/* Record another user as the owner of the data, for a copy of that user's file. */
void slurmdl_writer_set_owner (struct slurmdl_writer *w, uint32_t owner);
/* Both free 'w'. */
int slurmdl_writer_commit (struct slurmdl_writer *w, struct slurmdl_error *err);
void slurmdl_writer_abort (struct slurmdl_writer *w);

#ifdef __cplusplus
}
#endif

#endif
