/* SPDX-License-Identifier: Apache-2.0 */
/* What others may use of the monitor: its command, its files, and the advice drawn from them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/sys/gpu_readings.h"
#include "runtime/base/error.h"
#include "runtime/metrics/file.h"

struct command_line;

/* ---- The commands dl monitor and dl sample, and the directory of a monitored step ---- */

/* The plugin starts dl sample beside the ranks of each node. */

/* Options of dl monitor. */
struct monitor_options {
    bool summary;
    bool json;
};

#define MONITOR_PREFIX "dl-monitor-"

/* Store the path of a step's directory, dl-monitor-JOB.STEP.  A requeued job adds
 * -rN.  The parent is DL_MONITOR_DIR if set, else the directory of the trial's
 * attempt, else SLURM_SUBMIT_DIR.  srun and its tasks get the same result because
 * they see the same variables.  Returns -1 if the path is too long.
 */
int monitor_folder (char *buf, size_t size, const char *job, const char *step);

/* Each command returns an exit status from launcher/sys/messages.h. */
int cmd_monitor (const struct command_line *line);
int cmd_sample (const struct command_line *line);

/* ---- Summarize what a monitored step used, from the files of its nodes ---- */

/* Means cover the time from the first sample to the last.  Rates are per second.
 * Unknown values are NaN.
 */
struct usage_rank {
    long rank;
    size_t node; /* index */
    double seconds;
    bool ended;
    double cores, cores_given;          /* used; allocated */
    double busiest;                     /* cores that its busiest process used */
    double memory;                      /* bytes, peak */
    double processes;                   /* peak */
    double read, write;                 /* bytes through read() and write() */
    double storage_read, storage_write; /* the part that missed the page cache */
    double blocked;                     /* processes waiting for storage */
    double switches;                    /* involuntary context switches */
    int gpus;
    double gpu_busy;   /* per cent, mean of its GPUs */
    double gpu_memory; /* bytes, peak of any GPU */
};

struct usage_gpu {
    int index;
    long rank;               /* -1 if unknown or shared by several */
    double busy, sm, tensor; /* per cent */
    double memory, memory_size;
    double power, temperature;
    double hot, capped; /* share of the time */
    double
        idle; /* s without work at the last sample; 0: less than the limit of --dl-monitor=idle: */
};

struct usage_node {
    char name[64];
    double seconds;
    double time;     /* of the last sample, seconds since the epoch */
    double memory;   /* bytes: the job's if its cgroup is known, else the node's */
    double limit;    /* the job's limit, else the node's memory size */
    bool job_memory; /* 'memory' and 'limit' are the job's */
    double network;  /* bytes one way, of the busiest interface or port */
    double link;     /* utilization of that interface or port, 0..1 */
    double pressure_io, pressure_memory; /* share of the time */
    double monitor;                      /* cores that the monitor used */
    double lost;                         /* samples that the monitor could not write */
    int ngpus;
    struct usage_gpu gpus[GPUS_MAX];
};

struct usage {
    struct usage_rank *ranks; /* sorted by rank */
    size_t nranks;
    struct usage_node *nodes; /* sorted by name */
    size_t nnodes;
    double seconds; /* longest of any node */
};

/* Read all files in a directory; the monitor may still be writing them.  Files
 * that cannot be read are skipped.  Returns -1 with errno and 'err' on failure;
 * errno is ENOENT if there are no files.
 */
int usage_read (struct usage *u, const char *dir, struct slurmdl_error *err);
/* Like usage_read(), but only for the time from 'since', in seconds since the
 * epoch.  Values that have not changed since then still count.
 */
int usage_read_since (struct usage *u, const char *dir, double since, struct slurmdl_error *err);
void usage_free (struct usage *u);

/* ---- Turn the measured resource usage of a step into advice for the user ---- */

/* Quantities that the patterns test, each for the step as a whole.  An unknown
 * quantity is NaN, and a pattern that tests it does not match.
 */
enum quantity {
    Q_GPUS,         /* number */
    Q_GPU_BUSY,     /* mean, per cent */
    Q_GPU_LOWEST,   /* GPU use of the rank with the least, as a share of the mean */
    Q_GPU_MEMORY,   /* peak memory of the fullest GPU, as a share of its size */
    Q_GPU_UNUSED,   /* number of idle GPUs */
    Q_HOT,          /* share of the time that the worst GPU was throttled for heat */
    Q_CAPPED,       /* share of the time that the worst GPU was throttled for power */
    Q_RANKS,        /* number */
    Q_CORES,        /* busy cores, as a share of the allocated ones */
    Q_CORES_GIVEN,  /* cores allocated to each rank */
    Q_CORES_LOWEST, /* CPU use of the rank with the least, as a share of the mean */
    Q_BUSIEST,      /* cores that a rank's busiest process used, mean of the ranks */
    Q_BLOCKED,      /* share of the time that ranks waited for storage, mean */
    Q_LINK,         /* utilization of the busiest network link, 0..1 */
    Q_MEMORY,       /* peak memory of the fullest node, as a share of the job's limit */
    Q_SWITCHES,     /* involuntary context switches per second, mean of the ranks */
    QUANTITIES
};

enum { CONDITIONS = 4 };

/* Matches a quantity in [from, below). */
struct condition {
    enum quantity what;
    double from, below;
};

enum advice_of { OF_ALL, OF_LOWEST_GPU, OF_LOWEST_CORES };

/* Only the first matching pattern of each group is reported. */
struct pattern_row {
    const char *name;
    int group;
    struct condition when[CONDITIONS]; /* below == 0: no condition */
    enum advice_of of;                 /* the rank that the text names first */
    const char *text;
};
extern const struct pattern_row advice_table[]; /* ended by name NULL */

/* Calculate all quantities; set unknown ones to NaN. */
void advise_measure (const struct usage *u, double q[QUANTITIES]);

/* Store up to 'max' matching rows in table order and return their number.
 * Steps shorter than 5 seconds match nothing.
 */
int advise (const struct usage *u, const struct pattern_row **rows, int max);

/* Format a row as text, such as "rank 3 on n2: ...". */
void advice_text (const struct usage *u, const struct pattern_row *row, char *buf, size_t size);

/* Return the rank with the lowest value of 'of' (OF_LOWEST_...), or NULL unless
 * two ranks can be compared.
 */
const struct usage_rank *advise_lowest (const struct usage *u, enum advice_of of);

/* ---- find since when the GPUs of a node have had no work (idle.c) ---- */

struct idle_gpu {
    int index;
    double since; /* time of the first sample without work; NaN: it works, or its load is unknown */
    bool is_long; /* it has been idle for the limit or longer */
    bool is_new;  /* is_long became true with this sample */
};

struct idle_gpus {
    double limit; /* s */
    double last;  /* time of the previous sample; NaN: none */
    int n;
    struct idle_gpu gpus[GPUS_MAX];
};

/* Add a sample taken at 'now', in seconds of a monotonic clock.  If there was no sample for three
 * quarters of the limit, because the job was suspended or the driver did not answer, that time
 * counts as work.
 */
void idle_take (struct idle_gpus *g, const struct gpu_readings *r, double now);

/* Whether the last sample had GPUs, and all of them have been idle for the limit or longer. */
bool idle_all (const struct idle_gpus *g);

/* Describe the GPUs whose is_new is true: "GPUs 0, 1 of n1 (ranks 0, 1) have been idle since
 * 06:20:13, for 10 min".  If there is none, 'buf' becomes "", and the function returns false.
 * 'rank_of' returns the rank of a process on a GPU; -1: none.
 */
bool idle_text (const struct idle_gpus *g, const struct gpu_readings *r, const char *node,
                double now, long (*rank_of) (const void *arg, pid_t pid), const void *arg,
                char *buf, size_t size);

/* ---- the output file: a time series of named values, bounded in size (series.c) ---- */

/* The file has the layout of runtime/metrics/file.h and is consistent at every
 * instant.  A value that equals the previous one is not written again.
 * doc/formats.md lists the names.
 *
 * Once the file reaches 'max' rows, all samples except the first are merged in
 * pairs, and each later row covers twice as many samples as before.  Merging
 * keeps the last value of a counter and the mean of a gauge.
 */

enum series_kind { SERIES_GAUGE, SERIES_COUNTER };

struct series;

/* Create DIR/STEM.h5, or STEM.1.h5 and so on if that exists.  'folder' is a
 * descriptor of DIR, or -1 to open it by name.  Returns NULL with 'err' set.
 */
struct series *series_create (const char *dir, int folder, const char *stem,
                              const struct metrics_file_about *about, size_t max,
                              struct slurmdl_error *err);

/* Write pending samples and close.  NULL is accepted. */
void series_destroy (struct series *s);

/* Add a value to the current sample.  NaN is ignored.  So are names of 64 bytes
 * or more, and new names once there are 4,096.
 */
void series_put (struct series *s, enum series_kind kind, double value, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

/* Finish the current sample.  Returns -1 with errno if it could not be written.
 * That sample is lost, and the next one contains every value.
 */
int series_end (struct series *s, double time);
