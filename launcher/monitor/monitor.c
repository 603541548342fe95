/* SPDX-License-Identifier: Apache-2.0 */
/* dl monitor: print the resource usage of the ranks of a step. */
#include "launcher/monitor/monitor.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <libsmartcols.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/sweep/text.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"

enum { ADVICE = 3, LINE = 512 };

/* ---- the folder ---- */

/* Return the directory that contains the directories of monitored steps. */
static const char *monitor_base (void)
{
    static const char *const names[] = { "DL_MONITOR_DIR", "DL_ATTEMPT_DIR", "SLURM_SUBMIT_DIR" };

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (getenv (names[i]) && *getenv (names[i]))
            return getenv (names[i]);
    return ".";
}

int monitor_folder (char *buf, size_t size, const char *job, const char *step)
{
    const char *restarts = getenv ("SLURM_RESTART_COUNT");
    bool requeued = restarts && atoi (restarts) > 0;
    int n = snprintf (buf, size, "%s/%s%s.%s%s%s", monitor_base (), MONITOR_PREFIX, job, step,
                      requeued ? "-r" : "", requeued ? restarts : "");

    if (n > 0 && (size_t)n < size && n < PATH_MAX - 128)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

static int is_step (const struct dirent *e)
{
    return !strncmp (e->d_name, MONITOR_PREFIX, strlen (MONITOR_PREFIX));
}

/* Find the newest step of JOB, JOB.STEP or, if 'job' is NULL, of any job. */
static int find_in (const char *dir, const char *job, char *buf, size_t size)
{
    struct dirent **list;
    int n = scandir (dir, &list, is_step, versionsort);
    size_t len = job ? strlen (job) : 0;
    struct timespec newest = { 0 };
    struct stat st;
    char path[PATH_MAX + NAME_MAX];
    int rv = -1;

    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name + strlen (MONITOR_PREFIX);
        snprintf (path, sizeof (path), "%s/%s", dir, list[i]->d_name);
        if ((len == 0
             || (!strncmp (name, job, len) && (!name[len] || name[len] == '.' || name[len] == '-')))
            && stat (path, &st) == 0
            && (st.st_mtim.tv_sec > newest.tv_sec
                || (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec >= newest.tv_nsec))) {
            newest = st.st_mtim;
            snprintf (buf, size, "%s", path);
            rv = 0;
        }
        free (list[i]);
    }
    if (n >= 0)
        free (list);
    return rv;
}

static int find_step_folder (const struct command_line *line, char *buf, size_t size)
{
    const char *what = line->nargs ? line->args[0] : NULL;
    struct stat s;

    if (what && (strchr (what, '/') || (stat (what, &s) == 0 && S_ISDIR (s.st_mode)))) {
        snprintf (buf, size, "%s", what);
        return 0;
    }
    if (find_in (monitor_base (), what, buf, size) == 0 || find_in (".", what, buf, size) == 0)
        return 0;
    complain (what ? "%s: no monitored step of that job in %s"
                   : "%s%s has no monitored step; srun --dl-monitor creates one",
              what ? what : "", monitor_base ());
    return -1;
}

/* ---- the summary ---- */

__attribute__ ((format (printf, 2, 3))) static void append_cell (char *line, const char *fmt, ...)
{
    size_t n = strlen (line);
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (line + n, LINE - n, fmt, ap);
    va_end (ap);
}

/* Write a size such as "12.1 GiB". */
static const char *bytes_text (char *buf, size_t size, double bytes)
{
    static const char units[] = "BKMGTP";
    int i = 0;

    for (; bytes >= 1023.5 && units[i + 1]; i++)
        bytes /= 1024;
    if (isnan (bytes))
        snprintf (buf, size, "-");
    else if (i == 0)
        snprintf (buf, size, "%.0f B", bytes);
    else
        snprintf (buf, size, bytes < 10 ? "%.1f %ciB" : "%.0f %ciB", bytes, units[i]);
    return buf;
}

static void append_gpus (char *line, const struct usage *u, const double *q)
{
    const struct usage_rank *low = advise_lowest (u, OF_LOWEST_GPU);
    double memory = NAN, size = NAN, power = 0, sm = 0;
    char a[32], b[32];

    if (!(q[Q_GPUS] > 0))
        return;
    for (size_t i = 0; i < u->nnodes; i++)
        for (int k = 0; k < u->nodes[i].ngpus; k++) {
            const struct usage_gpu *g = &u->nodes[i].gpus[k];
            memory = fmax (memory, g->memory);
            size = fmax (size, g->memory_size);
            power += g->power;
            sm += g->sm;
        }
    append_cell (line, q[Q_GPUS] == 1 ? "%.0f GPU was busy %.0f %%" : "%.0f GPUs were busy %.0f %%",
                 q[Q_GPUS], q[Q_GPU_BUSY]);
    if (low && q[Q_GPU_LOWEST] < 0.9)
        append_cell (line, " (rank %ld: %.0f %%)", low->rank, low->gpu_busy);
    if (!isnan (sm))
        append_cell (line, ", their SMs %.0f %%", sm / q[Q_GPUS]);
    append_cell (line, ", memory %s of %s", bytes_text (a, sizeof (a), memory),
                 bytes_text (b, sizeof (b), size));
    if (!isnan (power))
        append_cell (line, ", %.0f W each", power / q[Q_GPUS]);
    append_cell (line, "; ");
}

static void append_cores (char *line, const struct usage *u, const double *q)
{
    double cores = 0, reads = 0, writes = 0, memory = NAN, limit = NAN;
    char a[32], b[32];

    for (size_t i = 0; i < u->nranks; i++) {
        cores += isnan (u->ranks[i].cores) ? 0 : u->ranks[i].cores;
        reads += isnan (u->ranks[i].read) ? 0 : u->ranks[i].read;
        writes += isnan (u->ranks[i].write) ? 0 : u->ranks[i].write;
    }
    for (size_t i = 0; i < u->nnodes; i++)
        if (!(u->nodes[i].memory <= memory)) {
            memory = u->nodes[i].memory;
            limit = u->nodes[i].limit;
        }
    append_cell (line, "a rank kept %.1f", cores / (double)u->nranks);
    if (!isnan (q[Q_CORES_GIVEN]))
        append_cell (line, " of %.0f", q[Q_CORES_GIVEN]);
    append_cell (line, " core%s busy; node memory %s of %s", q[Q_CORES_GIVEN] == 1 ? "" : "s",
                 bytes_text (a, sizeof (a), memory), bytes_text (b, sizeof (b), limit));
    append_cell (line, "; read %s/s", bytes_text (a, sizeof (a), reads));
    append_cell (line, ", wrote %s/s", bytes_text (a, sizeof (a), writes));
}

static void summary_text (const struct usage *u, char line[LINE])
{
    double q[QUANTITIES];
    char time[32];

    advise_measure (u, q);
    duration_text (time, sizeof (time), u->seconds);
    snprintf (line, LINE, "%zu rank%s on %zu node%s, %s: ", u->nranks, u->nranks == 1 ? "" : "s",
              u->nnodes, u->nnodes == 1 ? "" : "s", time);
    append_gpus (line, u, q);
    append_cores (line, u, q);
}

/* Print the GPUs that --dl-monitor=idle: found idle. */
static void print_idle (const struct usage_node *n, FILE *to, const char *before)
{
    char time[32];

    for (int i = 0; i < n->ngpus; i++)
        if (n->gpus[i].idle > 0) {
            duration_text (time, sizeof (time), n->gpus[i].idle);
            fprintf (to, "%sGPU %d of %s was idle at the end, for %s or more\n", before,
                     n->gpus[i].index, n->name, time);
        }
}

static void print_summary (const struct usage *u, FILE *to, const char *before)
{
    const struct pattern_row *rows[ADVICE];
    char line[LINE];
    double lost = 0;
    int n = advise (u, rows, ADVICE);

    summary_text (u, line);
    fprintf (to, "%s%s\n", before, line);
    for (int i = 0; i < n; i++) {
        advice_text (u, rows[i], line, sizeof (line));
        fprintf (to, "%s%s\n", before, line);
    }
    for (size_t i = 0; i < u->nnodes; i++)
        print_idle (&u->nodes[i], to, before);
    for (size_t i = 0; i < u->nnodes; i++)
        lost += u->nodes[i].lost;
    if (lost > 0)
        fprintf (to, "%s%.0f samples could not be written\n", before, lost);
}

/* ---- the table ---- */

/* clang-format off */
enum view_column { RANK, NODE, CORES, GIVEN, BUSIEST, MEMORY, READ_RATE, WRITE_RATE, WAIT, GPUS, BUSY, GPU_MEM, VIEW_COLUMNS };
static const struct {
    const char *name;
    bool gpu;
} columns[VIEW_COLUMNS] = {
    [RANK] = { "RANK", false },         [NODE] = { "NODE", false },
    [CORES] = { "CORES", false },       [GIVEN] = { "OF", false },
    [BUSIEST] = { "BUSIEST", false },   [MEMORY] = { "MEMORY", false },
    [READ_RATE] = { "READ/S", false },  [WRITE_RATE] = { "WRITE/S", false },
    [WAIT] = { "IO-WAIT", false },      [GPUS] = { "GPUS", true },
    [BUSY] = { "GPU-BUSY", true },      [GPU_MEM] = { "GPU-MEMORY", true },
};
/* clang-format on */

static const char *usage_number_text (char *buf, size_t size, const char *fmt, double v)
{
    if (isnan (v))
        return "-";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf (buf, size, fmt, v);
#pragma GCC diagnostic pop
    return buf;
}

static const char *usage_cell (const struct usage *u, const struct usage_rank *r,
                               enum view_column c, char *buf, size_t size)
{
    switch (c) {
    case RANK:
        return usage_number_text (buf, size, "%.0f", (double)r->rank);
    case NODE:
        return u->nodes[r->node].name;
    case CORES:
        return usage_number_text (buf, size, "%.2f", r->cores);
    case GIVEN:
        return usage_number_text (buf, size, "%.0f", r->cores_given);
    case BUSIEST:
        return usage_number_text (buf, size, "%.2f", r->busiest);
    case MEMORY:
        return bytes_text (buf, size, r->memory);
    case READ_RATE:
        return bytes_text (buf, size, r->read);
    case WRITE_RATE:
        return bytes_text (buf, size, r->write);
    case WAIT:
        return usage_number_text (buf, size, "%.0f%%", r->blocked > 1 ? 100 : r->blocked * 100);
    case GPUS:
        return usage_number_text (buf, size, "%.0f", r->gpus);
    case BUSY:
        return usage_number_text (buf, size, "%.0f%%", r->gpu_busy);
    case GPU_MEM:
        return bytes_text (buf, size, r->gpu_memory);
    case VIEW_COLUMNS:
        break;
    }
    return "";
}

static void print_table (const struct usage *u, bool gpus)
{
    struct libscols_table *t = scols_new_table ();
    char buf[64];

    for (int c = 0; c < VIEW_COLUMNS; c++)
        if (gpus || !columns[c].gpu)
            scols_table_new_column (t, columns[c].name, 0, c == NODE ? 0 : SCOLS_FL_RIGHT);
    for (size_t i = 0; i < u->nranks; i++) {
        struct libscols_line *l = scols_table_new_line (t, NULL);
        size_t at = 0;
        for (int c = 0; c < VIEW_COLUMNS; c++)
            if (gpus || !columns[c].gpu)
                scols_line_set_data (
                    l, at++, usage_cell (u, &u->ranks[i], (enum view_column)c, buf, sizeof (buf)));
    }
    scols_print_table (t);
    scols_unref_table (t);
}

/* ---- JSON ---- */

/* clang-format off */
static json_t *usage_rank_json (const struct usage *u, const struct usage_rank *r)
{
    return json_pack (
        "{s:I, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o}",
        "rank", (json_int_t)r->rank, "node", u->nodes[r->node].name,
        "seconds", finite_to_json (r->seconds), "ended", r->ended,
        "cores", finite_to_json (r->cores), "cores_given", finite_to_json (r->cores_given),
        "busiest", finite_to_json (r->busiest), "memory", finite_to_json (r->memory),
        "processes", finite_to_json (r->processes), "read", finite_to_json (r->read),
        "write", finite_to_json (r->write), "storage_read", finite_to_json (r->storage_read),
        "storage_write", finite_to_json (r->storage_write),
        "blocked", finite_to_json (r->blocked), "switches", finite_to_json (r->switches),
        "gpus", r->gpus, "gpu_busy", finite_to_json (r->gpu_busy),
        "gpu_memory", finite_to_json (r->gpu_memory));
}

static json_t *gpu_json (const struct usage_gpu *g)
{
    return json_pack (
        "{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "gpu", g->index, "rank", g->rank < 0 ? json_null () : json_integer (g->rank),
        "busy", finite_to_json (g->busy), "sm", finite_to_json (g->sm),
        "tensor", finite_to_json (g->tensor), "memory", finite_to_json (g->memory),
        "memory_size", finite_to_json (g->memory_size), "power", finite_to_json (g->power),
        "temperature", finite_to_json (g->temperature), "hot", finite_to_json (g->hot),
        "capped", finite_to_json (g->capped), "idle", finite_to_json (g->idle));
}

static json_t *node_json (const struct usage_node *n)
{
    json_t *gpus = json_array ();

    for (int i = 0; i < n->ngpus; i++)
        json_array_append_new (gpus, gpu_json (&n->gpus[i]));
    return json_pack (
        "{s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "node", n->name, "seconds", finite_to_json (n->seconds),
        "memory", finite_to_json (n->memory), "memory_limit", finite_to_json (n->limit),
        "job_memory", n->job_memory, "network", finite_to_json (n->network),
        "link", finite_to_json (n->link), "pressure_io", finite_to_json (n->pressure_io),
        "pressure_memory", finite_to_json (n->pressure_memory),
        "monitor", finite_to_json (n->monitor), "lost", finite_to_json (n->lost), "gpus", gpus);
}
/* clang-format on */

static int print_usage_json (const struct usage *u)
{
    const struct pattern_row *rows[ADVICE];
    int n = advise (u, rows, ADVICE);
    json_t *all =
        json_pack ("{s:f, s:[], s:[], s:[]}", "seconds", u->seconds, "ranks", "nodes", "advice");
    char line[LINE];

    for (size_t i = 0; i < u->nranks; i++)
        json_array_append_new (json_object_get (all, "ranks"), usage_rank_json (u, &u->ranks[i]));
    for (size_t i = 0; i < u->nnodes; i++)
        json_array_append_new (json_object_get (all, "nodes"), node_json (&u->nodes[i]));
    for (int i = 0; i < n; i++) {
        advice_text (u, rows[i], line, sizeof (line));
        json_array_append_new (json_object_get (all, "advice"),
                               json_pack ("{s:s, s:s}", "name", rows[i]->name, "text", line));
    }
    json_dumpf (all, stdout, JSON_INDENT (2) | JSON_REAL_PRECISION (10));
    putchar ('\n');
    json_decref (all);
    return EXIT_OK;
}

/* ---- the command ---- */

/* srun prints this at the end of a step, so print nothing if there are no samples. */
static int summarize (const struct command_line *line)
{
    char *dot = line->nargs ? strchr (line->args[0], '.') : NULL;
    char dir[PATH_MAX];
    struct usage u;

    if (!dot)
        return EXIT_USAGE;
    *dot = '\0';
    if (monitor_folder (dir, sizeof (dir), line->args[0], dot + 1) < 0
        || usage_read (&u, dir, NULL) < 0)
        return EXIT_NOT_FOUND;
    if (u.nranks > 0)
        print_summary (&u, stderr, "dl: ");
    usage_free (&u);
    return EXIT_OK;
}

int cmd_monitor (const struct command_line *line)
{
    const struct monitor_options *opt = line->options;
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];
    struct usage u;
    double q[QUANTITIES];

    if (opt->summary)
        return summarize (line);
    if (find_step_folder (line, dir, sizeof (dir)) < 0)
        return EXIT_NOT_FOUND;
    if (usage_read (&u, dir, &err) < 0)
        return fail (&err);
    if (opt->json) {
        print_usage_json (&u);
    } else {
        advise_measure (&u, q);
        print_table (&u, q[Q_GPUS] > 0);
        if (u.nranks > 0)
            print_summary (&u, stdout, "");
    }
    usage_free (&u);
    return EXIT_OK;
}
