/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libslurmdl share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/run/region.h"
#include "runtime/run/retain.h"
#include "runtime/slurmdl.h"

/* This folder: the handle of a run, what it protects and keeps, how its ranks
 * meet, and when it stops.
 */

struct slurmdl {
    char *experiment;
    char *trial_dir;
    char *inside; /* experiment that others may write to, NULL: none */
    char *dir;    /* of the attempt; of the trial on a rank that is not 0 */
    long trial;
    long attempt;
    long rank, size;
    int64_t length;
    uint32_t seed;
    struct slurmdl_metrics *metrics; /* NULL on a rank that is not 0 */
    struct regions regions;
    struct slurmdl_checkpoint *from; /* that was restored, or NULL */
    struct saver *saver;             /* NULL until the first save */
    struct session *session;         /* NULL until the ranks have met */
    struct agreement *agreement;     /* of slurmdl_stop_here() */
    struct retention retention;
    bool signals; /* handlers were asked for */
};

/* stop.c: a signal, the time limit of the job or the program itself requests a stop. */
void stop_open (const struct slurmdl *run);
void stop_close (void);
void stop_told (void); /* the program knows that it is to stop */
void stop_reached (const struct slurmdl *run, int64_t step); /* in a save */
void stop_saved (double seconds);                            /* how long a save takes */

/* agree.c; NULL is accepted */
void agreement_destroy (struct agreement *a);
