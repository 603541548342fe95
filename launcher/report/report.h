/* SPDX-License-Identifier: Apache-2.0 */
/* What others may use of reports: curves, experiments, hyperparameters, causes of failure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "launcher/sweep/best.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"

/* ---- format texts and numbers for the report's JSON and HTML (report_text.c) ---- */

/* A table of distinct texts.  Columns refer to them by index. */
struct words {
    char **list;
    size_t n;
};

/* Return the index of a text, adding it if it is new. */
size_t words_number (struct words *w, const char *text);
json_t *words_json (const struct words *w);
void words_free (struct words *w);

/* Convert a text to JSON.  Bytes that are not UTF-8 become U+FFFD. */
json_t *text_to_json (const char *text);

/* Round to 'digits' significant digits.  NaN becomes null, infinities become "inf" and
 * "-inf".
 */
json_t *rounded_to_json (double v, int digits);

/* Write text as HTML.  Markup is escaped; control characters other than newline and tab,
 * and invalid UTF-8, become U+FFFD.
 */
void html_put (FILE *f, const char *text);
void html_format (FILE *f, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* Like html_put(), but quote the text for a shell if necessary. */
void html_put_word (FILE *f, const char *text);

/* The end of a shell command that began with <div class="copy"><code>. */
#define HTML_COPY "</code><button type=\"button\" data-copy>Copy</button></div>"

/* Write JSON for a script element of HTML. */
void html_put_json (FILE *f, const json_t *o);

/* Write numbers as "1,234", "0.01235" and "2.5e-7", times as "3 h 20 min" and sizes as
 * "1.5 GiB".
 */
void html_number (FILE *f, double v, int digits);
void html_count (FILE *f, int64_t n);
void html_seconds (FILE *f, double seconds);
void html_bytes (FILE *f, double bytes);

struct command_line;
struct report_data;

/* ---- dl report writes one HTML page; its main parts work without a script ---- */

/* Options of dl report. */
struct report_options {
    const char *output;
    bool watch;
    double seconds; /* 0: not given */
};

/* Write sentences about what stands out. */
void notes_put (FILE *f, const struct report_data *d);

/* Returns an exit status from launcher/sys/messages.h. */
int cmd_report (const struct command_line *line);

/* ---- The contents of a report: experiments, trials, attempts and their cost ---- */

enum report_end {
    ATTEMPT_RESULT,
    ATTEMPT_FAILED,
    ATTEMPT_REJECTED,
    ATTEMPT_PARKED,
    ATTEMPT_LOST,
    ATTEMPT_RUNNING,
    ATTEMPT_ENDS
};
extern const char *const attempt_ends[ATTEMPT_ENDS];

/* Trial indices count from 0 across all experiments.  Times are in seconds since the
 * first entry of the experiment's log.
 */
struct report_attempt {
    long trial;
    long number;
    int64_t length; /* length that it should reach */
    size_t slot, cause;
    double ready; /* when it could have begun */
    double begin, end;
    bool told; /* its worker reported how long it took */
    enum condition_reason reason;
    enum report_end how;
};

struct report_result {
    long trial;
    int64_t length;
    double value; /* of the first metric */
};

struct report_request {
    double time;
    const char *what; /* "pause" */
};

/* The checkpoints that a trial still has. */
struct report_files {
    long n;
    double bytes;
    int64_t step; /* step of the newest, or -1 */
    long attempt; /* attempt that saved the newest */
};

struct report_trial {
    size_t sweep;
    const struct sweep_trial *of;
    long number;
    long point; /* with repeats, the first trial of the point */
    struct report_files files;
};

struct report_sweep {
    struct sweep *s;
    const char *name; /* last component of its path */
    long first;       /* index of its first trial */
};

struct report {
    struct report_sweep *sweeps;
    size_t nsweeps;
    struct report_trial *trials;
    long n;
    long best; /* index of the best trial, or -1 */
    struct report_attempt *attempts;
    size_t nattempts;
    struct report_result *results;
    size_t nresults;
    int64_t *lengths; /* lengths of results, sorted */
    size_t nlengths;
    struct report_request *requests;
    size_t nrequests;
    struct words slots, causes;
    bool repeats; /* trials are repeats of points */
    double live;  /* seconds between updates of the file, or 0 */
};

void report_free (struct report *r);

/* Return the state of a trial. */
enum trial_phase report_phase (const struct report *r, long trial);

/* Return the result of the trial's point for a metric of the first experiment. */
struct sweep_result report_result (const struct report *r, long trial, size_t metric);

/* Return its value, or NaN if there is none. */
double report_value (const struct report *r, long trial, size_t metric);

bool report_better (const struct report *r, double a, double b);

/* List the trials with a finite value, best first, followed by those that are not
 * compared (sweep/best.h).  The caller frees the list.  Returns how many.
 */
long report_order (const struct report *r, long **list);

/* Read the experiments, which must outlive the report.  Returns -1 with 'err' if a log
 * cannot be read.  Call report_free() in every case.
 */
int report_fill (struct report *r, struct sweep *const *list, size_t n, struct slurmdl_error *err);

/* Find each trial's checkpoints in the directories of all its attempts. */
void report_fill_files (struct report *r);

/* All values are in seconds. */
struct report_cost {
    double wall;   /* from the first attempt to the last */
    double busy;   /* sum over all attempts */
    double wasted; /* sum over attempts without a result */
    double alive;  /* sum over workers, each from its first attempt to its last */
    double gpus;   /* sum over attempts, each times its number of GPUs */
    size_t attempts;
};

/* Return the cost of one experiment, or of all of them if 'sweep' is r->nsweeps. */
struct report_cost report_cost_of (const struct report *r, size_t sweep);

/* ---- Read, thin and pack the learning curves that trials logged ---- */

/* One logged value.  The points of a trial keep the order of its log. */
struct curve_point {
    int64_t step;
    double value;
    size_t name;
};

struct trial_curves {
    struct curve_point *list;
    size_t n;
};

struct curves {
    struct trial_curves *trials; /* one for each trial of the report */
    long n;
    struct words names;          /* metrics of the search come first */
    size_t nshown;               /* number of names that fit in the report */
    struct slurmdl_error damage; /* why the first damaged file could not be read, or "" */
};

/* Read the metrics of all trials.  Files that cannot be read are skipped and noted in
 * 'damage'.  'old' caches what earlier calls read, one struct rows per experiment; it
 * may be NULL.
 */
void curves_read (struct curves *c, const struct report *r, struct rows *old);
void curves_free (struct curves *c);

/* Return the curves in the format that the page's script reads (doc/formats.md). */
json_t *curves_json (const struct curves *c, const struct report *r);

/* Select the points of one metric of a trial that are worth drawing, at most 'max',
 * which must be at least 8.  Returns how many.
 */
size_t curve_thin (const struct trial_curves *t, size_t name, size_t max, struct curve_point *to);

/* ---- The hyperparameters of a report's experiments as columns ---- */

struct report_param {
    const char *name; /* belongs to the experiment */
    bool category, integer, log;
    double low, high;   /* range of a number */
    struct words table; /* values of a category */
    double *v;          /* of each trial: the value, or the number of the category; NaN: none */
    double *began;      /* the same at the start of the trial, before on_oom changed it */
};

struct report_params {
    struct report_param *list;
    size_t n;
};

/* Fill in the searched parameters and, with several experiments, also those whose
 * values differ between experiments.
 */
void params_fill (struct report_params *p, const struct report *r);
void params_free (struct report_params *p);

/* Format a trial's value as text, with enough digits to pass it to a command.  Returns
 * false if the trial has no value.
 */
bool param_text (const struct report_param *p, long trial, char *buf, size_t size);

/* ---- Group failures by cause and find the parameter values at which they concentrate ---- */

struct failure_cause {
    size_t cause;  /* index in the report's table of causes */
    long attempts; /* number of attempts with this cause */
    size_t last;   /* index of the last one in the report's attempts */
};

/* List the causes of failed attempts, the most frequent first.  The caller frees the
 * list.  Returns how many.
 */
long failure_causes (const struct report *r, struct failure_cause **list);

/* A range of a parameter, or a choice, at which trials fail more than twice as often.
 */
struct failure_finding {
    double chi; /* how unlikely it is by chance; 0 if nothing was found */
    const struct report_param *p;
    bool above;
    double at;          /* the choice or the bound */
    double rate, other; /* failure rates of these trials and of all others */
};

/* Find the parameter that explains the failures best.  'failed' has one element for
 * each trial of the report.
 */
struct failure_finding failure_explain (const struct report *r, const struct report_params *p,
                                        const bool *failed);
