/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libslurmdl share. */
#ifndef RUNTIME_RUN_RUN_H
#define RUNTIME_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/run/region.h"
#include "runtime/run/retain.h"
#include "runtime/slurmdl.h"

/* This folder: the handle of a run, what it protects and keeps, how its ranks
 * meet, and when it stops.
 */

struct journal_about;

struct slurmdl {
    char *experiment;
    char *trial_dir;
    char *dir; /* of the attempt; of the trial on a rank that is not 0 */
    long trial;
    long attempt;
    long rank, size;
    int64_t length;
    uint32_t seed;
    struct slurmdl_metrics *metrics; /* NULL on a rank that is not 0 */
    struct regions regions;
    struct slurmdl_checkpoint *from; /* that was restored, or NULL */
    struct saver *saver;             /* NULL until the first save */
    struct team *team;               /* NULL until the ranks have met */
    struct agreement *agreement;     /* of slurmdl_stop_here() */
    struct retention retention;
    bool signals; /* handlers were asked for */
};

/* What the environment says of the run, for a metrics file. */
void context_about (struct journal_about *about);

struct slurmdl_metrics *metrics_create (const char *dir,
                                        const struct journal_about *about,
                                        struct retention *retention,
                                        struct slurmdl_error *err);

/* The same as slurmdl_epoch() and so on. */
int metrics_epoch (struct slurmdl_metrics *m, double epoch);
long metrics_lost (const struct slurmdl_metrics *m);
int metrics_trouble (struct slurmdl_metrics *m, struct slurmdl_error *err);

/* The run was restored to this step: an event "resumed".  NULL is accepted. */
void metrics_resumed (struct slurmdl_metrics *m, int64_t step);

/* stop.c */
void stop_open (void);
void stop_close (void);

/* left.c: request a stop before the job's time is over. */
void left_open (void);
void left_close (void);
void left_saved (double seconds); /* that is how long a save takes */

/* save.c, agree.c; NULL is accepted */
int saver_destroy (struct saver *s); /* -1: a save has failed */
void agreement_destroy (struct agreement *a);

#endif
