/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of libslurmdl. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/run/region.h"
#include "runtime/run/retain.h"
#include "runtime/slurmdl.h"

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
