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
 * Without it, in a Slurm job or not, it is a new attempt in the folder
 * 'dir': the same files, so that a program restarted there finds its
 * checkpoints.  Of several ranks (RANK, else SLURM_PROCID in a step) only
 * rank 0 writes: where another one logs or saves, the call succeeds and does
 * nothing, unless memory differs from rank to rank (slurmdl_protect_shard()).
 * Every rank restores.
 *
 * Unless said otherwise a function returns 0 on success and -1 on failure
 * with errno set and, where it takes one that is not NULL, 'err' filled.  It
 * clears 'err' first, which so needs no initial value.  The library never
 * prints or exits.  One thread may use a run at a time, except
 * for slurmdl_should_stop() and the section on metrics.
 */

/* ---- run ---- */

struct slurmdl;

/* Open the run of this process.
 *
 * 'dir': folder of the trial for a program that no worker started; NULL
 * means the variable DL_RUN_DIR, else "slurmdl" in the current folder (which
 * may be another one later).  It is created, and in it a.K/ for the first K
 * that no other attempt has taken. Under a worker (DL_ATTEMPT_DIR is set) 'dir'
 * is not used.
 *
 * Handlers are installed for SIGTERM and SIGUSR2, where their disposition is
 * the default one, that request a stop (slurmdl_should_stop()); they are
 * removed by slurmdl_close().  DL_SIGNALS=0 prevents that.
 *
 * In a batch job a program that SIGTERM has stopped waits at its exit to be
 * killed, for else Slurm would not requeue it: see slurmdl(3), Stopping.
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
double slurmdl_float (const struct slurmdl *run, const char *name, double otherwise);
int64_t slurmdl_int (const struct slurmdl *run, const char *name, int64_t otherwise);
const char *slurmdl_string (const struct slurmdl *run, const char *name, const char *otherwise);

/* The value as text, NULL with errno ENOENT if there is no such name. */
const char *slurmdl_hp (const struct slurmdl *run, const char *name);

/* ---- metrics ---- */

/* What is logged goes into a queue in memory, which a thread writes within
 * 0.1 s to metrics.h5 in slurmdl_dir(); there it survives the death of the
 * process.  No call of this section waits for the disk, except
 * slurmdl_flush(), and a call that logs a scalar while 1 M of them wait in
 * memory: that waits until the disk has taken some.  Where the disk takes
 * nothing for a second, or reports an error, no further call waits: up to 1 M
 * scalars and 64 MiB of records wait in memory, and are written when there is
 * room again; what comes beyond that is lost, and counted.
 *
 * A name has 1 to 63 bytes of UTF-8 and may have a group before a slash:
 * "training/loss", "validation/error", "system/power".  'step' is in the unit
 * of slurmdl_length().  The calls fail with EINVAL (an argument makes no
 * sense), ENOSPC (lost: the queue is full, or there are more than 1,024
 * names), EPERM (in a child of the process that opened the run); training may
 * ignore that.  Any thread may make them.
 */

/* Handle of a metric, the run's, valid until slurmdl_close(); NULL on failure.
 */
struct slurmdl_metric;
struct slurmdl_metric *slurmdl_metric (struct slurmdl *run, const char *name);

/* Log one scalar: through a handle, or, somewhat slower, by name.  A NULL
 * handle is EINVAL.
 */
int slurmdl_log_to (struct slurmdl_metric *metric, int64_t step, double value);
int slurmdl_log (struct slurmdl *run, const char *name, int64_t step, double value);

/* What is logged from now on belongs to this epoch.  A call is a row of the
 * metric "epoch", whose step is that of the row before it.
 */
int slurmdl_epoch (struct slurmdl *run, double epoch);

/* Records of up to 16 MiB; what is given is copied. */
int slurmdl_log_vector (struct slurmdl *run, const char *name, int64_t step, size_t n,
                        const double *values);

/* 'edges' has nbins + 1 ascending values. */
int slurmdl_log_histogram (struct slurmdl *run, const char *name, int64_t step, size_t nbins,
                           const double *edges, const uint64_t *counts);

int slurmdl_log_text (struct slurmdl *run, const char *name, int64_t step,
                      const char *text); /* UTF-8 */

/* 'pixels': rows from the top, in each the pixels, in each its 1 to 4
 * channels (grey, grey and alpha, RGB, RGBA).
 */
int slurmdl_log_image (struct slurmdl *run, const char *name, int64_t step, unsigned width,
                       unsigned height, unsigned channels, const unsigned char *pixels);

/* Something that happened, as parameters or a note: a kind that is a name
 * like a metric's, and a JSON object, which is checked to be UTF-8 only.
 */
int slurmdl_event (struct slurmdl *run, const char *kind, const char *json);

/* Number of scalars and records that were lost so far. */
int64_t slurmdl_lost (const struct slurmdl *run);

/* Whether there is something new to tell the user: that the disk takes
 * nothing, or that something was lost.  Returns 1 with 'err' filled the first
 * time, else 0; costs a load.
 */
int slurmdl_trouble (struct slurmdl *run, struct slurmdl_error *err);

/* Wait until what was logged is on stable storage (fdatasync); ETIMEDOUT if
 * the disk has not answered in 30 s.
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

/* Say that 'data' (C order, 'ndims' <= 8 dimensions, 0 for a scalar) is part
 * of the checkpoint under 'name' ("model/w1": HDF5 groups are made); the same
 * name again replaces it.  The memory stays the caller's and must live as long
 * as the run.  It may be memory of a CUDA device where the CUDA back end is
 * installed.  A name that HDF5 does not take, is no UTF-8 or has 128 bytes or
 * more, or one of ours ("manifest", "shards", "state", alone or before a slash)
 * is EINVAL.
 */
int slurmdl_protect (struct slurmdl *run, const char *name, enum slurmdl_type type, int ndims,
                     const uint64_t *dims, void *data);

/* Say that 'data' is this rank's slab of a tensor of the shape 'global': it
 * begins at 'offset' and has the shape 'local' (both with 'ndims' numbers, 1
 * to 8).  The slabs of all ranks together must cover the tensor once; a rank
 * without a part of it protects a slab with a 0 in 'local', or nothing.
 *
 * With a slab of any rank slurmdl_save(), slurmdl_save_async() and
 * slurmdl_restore() are collective: every rank has a slab or a state of its
 * own (slurmdl_state()) and calls them in the same order.  The ranks meet
 * through files in the run's folder, which all of them must see.
 */
int slurmdl_protect_shard (struct slurmdl *run, const char *name, enum slurmdl_type type, int ndims,
                           const uint64_t *global, const uint64_t *offset, const uint64_t *local,
                           void *data);

/* Take 'name' out again (ENOENT if it is not in); NULL: all, states too. */
int slurmdl_unprotect (struct slurmdl *run, const char *name);

/* Put 'n' bytes, which are copied, into the checkpoints from now on: the
 * state of a random number generator, a scheduler, a data loader.  The same
 * name again replaces them.  A name with "%r" is each rank's own (%r is its
 * number): saving is then collective, as with slabs.
 */
int slurmdl_state (struct slurmdl *run, const char *name, const void *bytes, size_t n);

/* What slurmdl_state() had put into the checkpoint that was restored, or
 * after slurmdl_open() without one, is put for the next.  '*bytes' is the
 * caller's to free().  Fails with ENOENT.
 */
int slurmdl_read_state (struct slurmdl *run, const char *name, void **bytes, size_t *n);

/* Save all protected memory as ckpt/STEP.h5: one HDF5 file, whole and on
 * stable storage when this returns.  An older one of this attempt is removed
 * only when the new one was read back and verified (at once if it is small,
 * by a thread else); the two newest stay, and under `dl run` the best and the
 * newest ones that checkpoint_policy (dl-experiment(5)) asks for.  What was
 * logged before is stored first.
 *
 * Where it is collective, all ranks return the same; a rank that does not
 * come within DL_RANK_TIMEOUT seconds (600) is named, and no file is made.
 */
int slurmdl_save (struct slurmdl *run, int64_t step, struct slurmdl_error *err);

/* The same, but return as soon as the protected memory was copied; a thread
 * writes the copy.  Two saves may be in flight, a third waits for the first
 * of them.  The memory of the copy stays; a second one is allocated only by a
 * save that begins while another is in flight.  The call that allocates it
 * waits for that, unless slurmdl_save_prepare() was called.  Where there
 * is no memory for a copy (DL_SNAPSHOT_MAX bytes, else half of what is free),
 * the save is not asynchronous; 'err' then says so although 0 is
 * returned.
 *
 * That an earlier save failed is returned by the next call of this function
 * (whose own save is begun all the same) or of slurmdl_save_wait(), once; else
 * by slurmdl_close().
 */
int slurmdl_save_async (struct slurmdl *run, int64_t step, struct slurmdl_error *err);

/* Have a thread allocate the memory that the first slurmdl_save_async() of what
 * is protected now will use, so that this costs no more than the later ones.
 * Where there is none, nothing happens.
 */
void slurmdl_save_prepare (struct slurmdl *run);

/* Wait until no save is in flight, and what was saved is verified; -1 if one
 * has failed.  Of several ranks rank 0 reads a large file back, and is told if
 * that fails.
 */
int slurmdl_save_wait (struct slurmdl *run, struct slurmdl_error *err);

/* Fill the protected memory from the newest checkpoint of this trial that
 * verifies; '*step' is then its step.  Files that are damaged are passed over:
 * 'err' names the newest of them although 1 is returned (on rank 0, where it is
 * collective).  What is restored may have been saved by another number of
 * ranks, with other slabs; each rank reads and verifies the saved parts (of at
 * most 16 MiB) that it needs.  A trial that goes on from another one
 * (population based training) begins with that one's checkpoint.
 *
 * Returns 1 if restored, 0 if there is none (memory and '*step' unchanged), -1
 * if a name, type or shape differs from what was protected (EINVAL), if every
 * file that is there is damaged in whatever way (EBADMSG: 'err' names them, and
 * part of the memory may be overwritten), or if one, or a folder that may have
 * some, cannot be read (an I/O error, EACCES).  A caller who takes -1 for 0
 * trains from the beginning, and loses what was saved.
 */
int slurmdl_restore (struct slurmdl *run, int64_t *step, struct slurmdl_error *err);

/* The same for the protected names that match 'pattern' (fnmatch(3), NULL:
 * all) alone, from the checkpoint 'path' (NULL: the newest).  It is not
 * collective, and slurmdl_read_state() is not changed by it.
 */
int slurmdl_restore_only (struct slurmdl *run, const char *pattern, const char *path, int64_t *step,
                          struct slurmdl_error *err);

/* ---- stopping ---- */

/* Nonzero once a stop was requested (SIGTERM or SIGUSR2 from Slurm or the
 * worker, slurmdl_request_stop(), or the job's time limit is near): save a
 * checkpoint and return from main with status 0.  Costs one load.
 *
 * The time limit is that of SLURM_JOB_END_TIME, where no worker looks after
 * it; the request comes DL_STOP_MARGIN seconds (60) and twice the duration of
 * the last save before it.
 */
int slurmdl_should_stop (const struct slurmdl *run);
void slurmdl_request_stop (struct slurmdl *run); /* async-signal-safe */

/* Whether to stop here, the same answer on all ranks: each calls this with
 * the same sequence of steps (once an iteration, say), and a request on any of
 * them stops all at the same one, within seconds.  Costs a comparison; now
 * and then rank 0 writes, and the others read, a name in the run's folder.
 *
 * Returns 0 or 1; -1 with errno ETIMEDOUT if rank 0 did not come.
 */
int slurmdl_stop_here (struct slurmdl *run, int64_t step);

/* Exit statuses of a program that have a meaning of their own. */
enum {
    /* its hyperparameters make no sense together: the trial is not tried
     * again, and the search puts another one in its place */
    SLURMDL_EXIT_REJECT = 65,
    SLURMDL_EXIT_AGAIN = 75, /* try again; does not count as a failure */
    SLURMDL_EXIT_NEVER = 78, /* failed, and another try makes no sense */
};

/* ---- metrics of arrays ---- */

/* A histogram of 64 bins from the least to the largest finite value, with
 * the mean, the standard deviation and the number of NaN and infinite values;
 * of complex numbers the absolute values.  Memory of the host.
 */
int slurmdl_log_samples (struct slurmdl *run, const char *name, int64_t step,
                         enum slurmdl_type type, size_t n, const void *values);

/* ---- metrics and checkpoint files by themselves ---- */

struct slurmdl_metrics;

/* Create a metrics file in folder 'dir' for the calling process alone:
 * metrics.h5, or metrics.1.h5, ... where that name is taken, so that no file
 * ever has two writers.  It is a valid HDF5 file from the moment it has its
 * name until it is closed, whatever is killed.
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
    const char *name; /* until the call-back returns */
    double epoch;     /* as of slurmdl_epoch(); NaN: none */
    long attempt;     /* as of the file */
    int superseded;   /* by a later attempt: slurmdl_trial_read() */
};

/* Call 'f' for each row of the file 'path', oldest first, while a writer may
 * be at work on it.  'f' returning nonzero ends the reading, and that value is
 * returned.  A row whose checksum is wrong is passed over: it returns -1 with
 * EBADMSG after the others, and 'err' says how many are lost.
 *
 * Rows of a higher step than that to which the run was restored after it had
 * logged them (slurmdl_restore() in the middle of it) are left out.
 */
typedef int (*slurmdl_row_f) (const struct slurmdl_row *row, void *arg);
int slurmdl_metrics_read (const char *path, slurmdl_row_f f, void *arg, struct slurmdl_error *err);

/* The same for all metrics files of an attempt's folder, the oldest first.
 * A folder without any is no error; a damaged file is one, with EBADMSG, after
 * the others have been read.
 */
int slurmdl_metrics_read_dir (const char *dir, slurmdl_row_f f, void *arg,
                              struct slurmdl_error *err);

/* The same for all attempts a.1/, a.2/, .. of the trial's folder 'dir', with
 * those rows too that are superseded: a later attempt was restored to a lower
 * step, or has logged the same metric at that step or a lower one.  A damaged
 * file is passed over, and the reading fails with EBADMSG at its end.
 */
int slurmdl_trial_read (const char *dir, slurmdl_row_f f, void *arg, struct slurmdl_error *err);

/* The lowest step to which the attempt with the folder 'dir' was restored.
 * Returns 1, or 0 if it began anew.
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
    const char *name;       /* an event's: its kind */
    enum slurmdl_kind kind; /* others may follow: pass them over */
    size_t size;
    const void *data; /* vector: doubles; text, event: UTF-8, then a NUL */
};

/* The same for records that are no scalars. */
typedef int (*slurmdl_record_f) (const struct slurmdl_record *r, void *arg);
int slurmdl_records_read (const char *path, slurmdl_record_f f, void *arg,
                          struct slurmdl_error *err);
int slurmdl_records_read_dir (const char *dir, slurmdl_record_f f, void *arg,
                              struct slurmdl_error *err);

struct slurmdl_histogram {
    uint64_t nbins;
    double min, max, mean, sd; /* of the finite samples; NaN: not known */
    uint64_t n;                /* samples, all of them */
    uint64_t nan, infinite;    /* samples that are in no bin */
    const double *edges;       /* nbins + 1 */
    const uint64_t *counts;    /* nbins */
};

struct slurmdl_image {
    unsigned width, height, channels;
    const unsigned char *pixels;
};

/* Decode a record; what is pointed to is the record's.  EINVAL if it is of
 * another kind, or makes no sense.
 */
int slurmdl_record_histogram (const struct slurmdl_record *r, struct slurmdl_histogram *h);
int slurmdl_record_image (const struct slurmdl_record *r, struct slurmdl_image *image);

/* Read the whole checkpoint and compare its checksums.  '*step' is set. */
int slurmdl_checkpoint_verify (const char *path, int64_t *step, struct slurmdl_error *err);

/* Find the newest checkpoint that verifies under the attempts a.1/ .. of the
 * trial's folder 'dir', with a step of at most 'max_step'.  Of equal steps
 * the one of attempt 'prefer' (0: none), else of the highest attempt.
 *
 * Returns its path, which the caller frees; NULL with errno ENOENT if there
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

/* "f32" and so on; NULL if there is no such type.  0: no such type. */
const char *slurmdl_type_name (enum slurmdl_type type);
size_t slurmdl_type_size (enum slurmdl_type type);

struct slurmdl_checkpoint;

/* Open a checkpoint for reading.  All that has a meaning, but for its data, is
 * verified at once; data are when they are read.  NULL with EBADMSG if it is
 * damaged, with EPROTONOSUPPORT if a later version has written it.
 */
struct slurmdl_checkpoint *slurmdl_checkpoint_open (const char *path, struct slurmdl_error *err);
void slurmdl_checkpoint_close (struct slurmdl_checkpoint *c);
int64_t slurmdl_checkpoint_step (const struct slurmdl_checkpoint *c);

/* Who has written a checkpoint, by the file that is open, whatever now lies at
 * its path.  A copy that dl makes says at its end whose it was.
 */
struct slurmdl_origin {
    const char *path; /* belongs to the checkpoint */
    uint32_t owner;   /* user id of who wrote it; UINT32_MAX: others may have */
    int own;          /* the file and its data are this user's or root's, and nobody else
                         may write */
};

/* Fill '*origin'.  What a file that is not one's own has for an interpreter, a
 * pickle above all, may have been made to harm who restores it.
 * slurmdl_restored_origin() is that of the checkpoint that was restored, and
 * fails with ENOENT if none was; the path lives until the next is restored.
 */
int slurmdl_checkpoint_origin (const struct slurmdl_checkpoint *c, struct slurmdl_origin *origin);
int slurmdl_restored_origin (const struct slurmdl *run, struct slurmdl_origin *origin);
size_t slurmdl_checkpoint_count (const struct slurmdl_checkpoint *c);
/* Tensor 'i' < count; EINVAL if there is none. */
int slurmdl_checkpoint_info (const struct slurmdl_checkpoint *c, size_t i,
                             struct slurmdl_tensor *t);
/* Its number; -1 with ENOENT. */
int64_t slurmdl_checkpoint_find_tensor (const struct slurmdl_checkpoint *c, const char *name);
/* Read the slab of shape 'dims' at 'offset' (NULL for both: all) into 'data'
 * (the host's).  The saved parts that it touches are read and verified:
 * EBADMSG.
 */
int slurmdl_checkpoint_read (struct slurmdl_checkpoint *c, const char *name, const uint64_t *offset,
                             const uint64_t *dims, void *data, struct slurmdl_error *err);

/* Remove a checkpoint; in an experiment without a symbolic link on the way,
 * which another member of a group may have put there.
 */
int slurmdl_checkpoint_remove (const char *path, struct slurmdl_error *err);

/* Write a checkpoint tensor by tensor.  'data' is written by _add() and need
 * not live longer.  'path' gets its name, with the whole file, at _commit();
 * what has the name is replaced.  NULL with EINVAL if 'path' is there and no
 * regular file, a device, say.
 */
struct slurmdl_writer;
struct slurmdl_writer *slurmdl_writer_open (const char *path, int64_t step,
                                            struct slurmdl_error *err);
int slurmdl_writer_add (struct slurmdl_writer *w,
                        const struct slurmdl_tensor *t, /* name to dims, state */
                        const void *data, struct slurmdl_error *err);
/* The data are of that user, and not of the one who writes: for a copy of
 * another user's file.
 */
void slurmdl_writer_set_owner (struct slurmdl_writer *w, uint32_t owner);
/* Both free 'w'. */
int slurmdl_writer_commit (struct slurmdl_writer *w, struct slurmdl_error *err);
void slurmdl_writer_abort (struct slurmdl_writer *w);

#ifdef __cplusplus
}
#endif

#endif
