/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of an experiment at work, for the window of a terminal. */
#pragma once

#include "launcher/progress/gpu_fill.h"
#include "launcher/progress/history.h"
#include "launcher/progress/screen.h"
#include "launcher/progress/workers.h"

/* What was read of an experiment, so that only what is new is read again. */
struct picture {
    struct sweep *s;
    struct history history;
    struct worker_view workers;
    struct gpu_fill gpus;
    double looked;                /* at workers and GPUs; 0: never */
    struct picture_trial *trials; /* newest values, by trial */
    long ntrials;
    const char *note; /* a sentence of who started it, NULL or "": none */
};

/* Look what is new; 's' was read just before.  Returns -1 with 'err'. */
int picture_look (struct picture *p, struct slurmdl_error *err);

/* Draw it, with as much as there is room for. */
void picture_draw (struct picture *p, struct screen *c);
void picture_free (struct picture *p);
