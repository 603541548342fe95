/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of libslurmdl. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/run/retain.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/name_index.h"
#include "runtime/storage/slab.h"

/* ---- the contents of a run's checkpoints: protected memory and states (region.c) ---- */

enum { DATASET_NAME_SIZE = SLURMDL_NAME_SIZE };

/* Memory that is part of the checkpoint. */
struct region {
    char name[DATASET_NAME_SIZE];
    enum slurmdl_type type;
    uint64_t dims[DIMS_MAX]; /* of the tensor */
    struct slab slab;        /* this rank's */
    uint64_t bytes;          /* of the slab */
    void *data;
    bool shard; /* this rank's own: a slab, or a state with %r */
    bool state; /* 'data' is our own copy */
};

struct regions {
    struct region *list;
    size_t n;
    struct name_index names;
};

/* Whether saving is collective. */
bool regions_shared (const struct regions *r);

struct region *regions_find (const struct regions *r, const char *name);

/* Add a state under the name of its dataset; takes ownership of 'data'. */
int regions_put_state (struct regions *r, const char *name, void *data, size_t n, bool own);
void regions_clear (struct regions *r);

/* Write "state/NAME", with the rank in place of %r; sets '*own' to whether NAME has a %r. */
int state_dataset (const char *name, long rank, char *buf, bool *own);
bool is_state (const char *dataset);

/* This folder: the handle of a run, its protected memory and kept checkpoints, how its ranks find
 * each other, and when it stops.
 */

struct slurmdl {
    char *experiment;
    char *trial_dir;
    char *inside; /* the experiment, if others may write to it, or NULL */
    char *dir;    /* of the attempt; on ranks other than 0, of the trial */
    long trial;
    long attempt;
    long rank, size;
    int64_t length;
    uint32_t seed;
    struct slurmdl_metrics *metrics; /* NULL on ranks other than 0 */
    struct regions regions;
    struct slurmdl_checkpoint *from; /* the restored checkpoint, or NULL */
    struct saver *saver;             /* NULL until the first save */
    struct session *session;         /* NULL until the ranks have met */
    struct agreement *agreement;     /* of slurmdl_stop_here() */
    struct retention retention;
    bool signals; /* signal handlers were requested */
};

/* stop.c: a signal, the time limit of the job or the program itself requests a stop. */
void stop_open (const struct slurmdl *run);
void stop_close (void);
void stop_told (void); /* the program knows that it should stop */
void stop_reached (const struct slurmdl *run, int64_t step); /* during a save */
void stop_saved (double seconds);                            /* duration of a save */

/* agree.c; NULL is accepted */
void agreement_destroy (struct agreement *a);
