/* SPDX-License-Identifier: Apache-2.0 */
/* What others may use to show progress in a terminal. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "launcher/monitor/monitor.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/sweep.h"

/* ---- Print the progress of an experiment as lines, for a file or a pipe ---- */

/* What has already been printed.  Initialize to {0} and set 'start'. */
struct changes {
    double start;              /* monotonic() time from which elapsed time counts */
    struct reported *reported; /* one for each trial */
    long nreported;
    bool full; /* whether the last report called the disk full */
};

/* Print a line for each new result, failure, rejection and recovery of ranks. */
void changes_print (struct changes *c, const struct sweep *s);

/* Mark everything up to now as printed without printing it. */
void changes_skip (struct changes *c, const struct sweep *s);
void changes_free (struct changes *c);

/* ---- The workers of an experiment according to their own files, without asking Slurm ---- */

struct worker_view {
    struct peer_info *list; /* the caller frees it */
    long n;
    long alive;
    double silence; /* seconds since the last heartbeat of any worker */
};

/* Read the files of all workers of an experiment.  The caller frees the list. */
struct worker_view workers_look (const struct sweep *s);

/* Return whether a worker has not left and its lease has not expired. */
bool worker_is_alive (const struct sweep *s, const struct peer_info *w);

/* Return the seconds since a worker's last heartbeat.  The value compares a file's
 * time with the local clock, so use it for display only.
 */
double worker_silence (const struct sweep *s, const struct peer_info *w);

/* Return the number of the trial that a worker trains, or 0. */
long worker_trial (const struct sweep *s, const char *nonce);

/* Return whether a worker has claimed the next attempt of an open trial. */
bool trial_is_claimed (const struct sweep *s, long trial);

/* Return whether a worker belongs to this job array, and whether any worker of the
 * array has ever started.
 */
bool worker_is_of (const struct peer_info *w, const struct submit *a);
bool workers_begun (const struct worker_view *v, const struct submit *a);

/* Return the last submitted array if none of its workers has started, else NULL. */
const struct submit *workers_awaited (const struct sweep *s, const struct worker_view *v);

/* Return for how many seconds a running experiment has had no active worker, or
 * NaN if one is active or expected.
 */
double workers_idle (const struct sweep *s, const struct worker_view *v);

/* Format workers_idle() as a sentence, "" if it is NaN. */
void workers_idle_text (const struct sweep *s, const struct worker_view *v, char *buf, size_t size);

/* ---- Current GPU utilization of running trials, from the files of --dl-monitor ---- */

/* Means cover the last GPU_WINDOW seconds.  A step without a sample in the last
 * GPU_STALE seconds is ignored.
 */
enum { GPU_WINDOW = 60, GPU_STALE = 180 };

struct gpu_fill {
    int gpus;
    double busy;   /* mean, per cent; NaN if unknown */
    double memory; /* used share of the GPUs' memory, 0..1; NaN if unknown */
};

/* Call 'f' for each monitored step in the directory 'dir' that has a recent sample.
 * 'f' gets the step's path and its usage over the last GPU_WINDOW seconds.  Steps
 * that cannot be read are skipped.
 */
void monitored_steps (const char *dir,
                      void (*f) (const char *step, const struct usage *usage, void *arg),
                      void *arg);

/* Like monitored_steps(), for the attempts of all open trials. */
void monitored_trials (const struct sweep *s,
                       void (*f) (const char *step, const struct usage *usage, void *arg),
                       void *arg);

/* Measure how busy and how full the GPUs of the open trials are. */
struct gpu_fill gpu_fill_look (const struct sweep *s);

/* ---- Draw full-screen pictures in a terminal and redraw them in place ---- */

/* Styles have no effect on a terminal without colours. */
enum screen_style {
    STYLE_PLAIN,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_GOOD,
    STYLE_BAD,
    STYLE_WARNING,
    STYLE_BUSY,
    STYLES
};

struct screen {
    int width, height; /* of the window; lines beyond 'height' are dropped */
    bool utf8, colours;
    int row, column; /* where the next text goes */
    FILE *f;
    char *text;
    size_t size;
};

/* Return whether standard output is a terminal that can be redrawn. */
bool screen_is_there (void);

/* Switch to the terminal's alternate screen and hide the cursor.  With 'keys',
 * also read keys without waiting for Enter.  From now on SIGINT, SIGTERM, SIGHUP
 * and SIGQUIT end screen_wait(), and SIGTSTP restores the terminal while the
 * process is stopped.
 */
void screen_take (bool keys);

/* Restore the terminal.  Does nothing unless screen_take() was called. */
void screen_give_back (void);

enum screen_event { SCREEN_TIME, SCREEN_RESIZED, SCREEN_QUIT };

/* Wait until 'seconds' pass, the window is resized, a signal asks to quit, or,
 * with 'keys', the user presses q.
 */
enum screen_event screen_wait (double seconds);

/* Begin a picture of the given size, or of the window's size if 'width' is 0. */
void screen_begin (struct screen *s, int width, int height);

/* Append to the current line.  Control characters and invalid UTF-8 become \xNN.
 * Text that does not fit is cut.
 */
void screen_put (struct screen *s, enum screen_style style, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Like screen_put(), but screen_right() aligns the text to end at 'column', and
 * screen_cell() cuts or pads it to 'width' columns.
 */
void screen_right (struct screen *s, enum screen_style style, int column, const char *text);
void screen_cell (struct screen *s, enum screen_style style, int width, const char *text);

/* Append a bar of 'width' columns; 'part' (0..1) of it is filled. */
void screen_bar (struct screen *s, enum screen_style style, int width, double part);

/* End the line. */
void screen_line (struct screen *s);

/* Return the number of free lines. */
int screen_room (const struct screen *s);

/* Show the picture in the window, or write it to 'to' as lines unless that is
 * NULL.  Frees the picture.
 */
void screen_end (struct screen *s, FILE *to);

/* Return the number of columns that screen_put() needs for a text. */
int screen_columns (const struct screen *s, const char *text);

/* ---- Draw an experiment in a terminal, as dl watch does ---- */

struct history_result {
    long trial, attempt;
    int64_t length;
    double value; /* of the first metric */
    double time;  /* seconds since the epoch, by the worker's clock */
};

struct history {
    struct log *log;
    struct history_result *results;
    size_t n;
    double *since; /* since[N - 1] is the time of trial N's last event */
    size_t nsince;
    int64_t limit; /* events with higher trial numbers are ignored */
};

struct picture_trial {
    uint64_t files; /* fingerprint of the metrics files when last read; 0: never */
    bool known;
    struct metric_progress newest;
};

/* Plot 'n' finite values from left to right across the window, 'height' lines
 * high, labelled with the highest and the lowest value.
 */
void line_chart (struct screen *c, const double *values, long n, int height);

/* State kept between two pictures so that each reads only what is new. */
struct picture {
    struct sweep *s;
    struct history history;
    struct worker_view workers;
    struct gpu_fill gpus;
    double looked;                /* when workers and GPUs were last read; 0: never */
    struct picture_trial *trials; /* newest values, by trial */
    long ntrials;
    const char *note; /* a sentence to show from the caller; NULL or "": none */
};

/* Read what is new.  The caller has just synchronized p->s.  Returns -1 with 'err'
 * on failure.
 */
int picture_look (struct picture *p, struct slurmdl_error *err);

/* Draw as much as fits. */
void picture_draw (struct picture *p, struct screen *c);
void picture_free (struct picture *p);
