/* SPDX-License-Identifier: Apache-2.0 */
/* The output file of the monitor: a time series of named values, bounded in size. */
#include "launcher/monitor/monitor.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/alloc.h"
#include "runtime/base/error.h"
#include "runtime/storage/io.h"

enum { NAMES = 4096, SLOTS = 4 * NAMES, SYNC_EVERY = 60, RETRY_AFTER = 16 };

struct series_line {
    char name[NAME_SIZE];
    enum series_kind kind;
    double now; /* since the last row: sum of a gauge, newest value of a counter */
    unsigned n; /* number of samples in 'now' */
    double written;
    bool known; /* 'written' is in the file */
};

struct series {
    struct metrics_file file;
    struct series_line *lines;
    size_t nlines;
    uint16_t slots[SLOTS]; /* index in lines + 1 */
    unsigned joined;       /* samples per row */
    unsigned taken;        /* samples since the last row */
    int64_t number;        /* of the next row */
    size_t max;
    unsigned pause; /* samples until the next try to free space */
    double time;    /* of the last sample */
    double synced;
    struct row *rows; /* buffer for one sample */
};

/* ---- names ---- */

static uint32_t series_hash (const char *name)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static struct series_line *find_series_name (struct series *s, const char *name,
                                             enum series_kind kind)
{
    uint32_t at = series_hash (name) % SLOTS;
    struct series_line *l;

    for (; s->slots[at]; at = (at + 1) % SLOTS)
        if (!strcmp (s->lines[s->slots[at] - 1].name, name))
            return &s->lines[s->slots[at] - 1];
    if (s->nlines == NAMES)
        return NULL;
    l = &s->lines[s->nlines++];
    *l = (struct series_line){ .kind = kind };
    memcpy (l->name, name, strlen (name));
    s->slots[at] = (uint16_t)s->nlines;
    return l;
}

void series_put (struct series *s, enum series_kind kind, double value, const char *fmt, ...)
{
    char name[NAME_SIZE];
    struct series_line *l;
    va_list ap;
    int n;

    va_start (ap, fmt);
    n = vsnprintf (name, sizeof (name), fmt, ap);
    va_end (ap);
    if (isnan (value) || n < 0 || n >= NAME_SIZE || !(l = find_series_name (s, name, kind)))
        return;
    l->now = kind == SERIES_COUNTER ? value : l->now + value;
    l->n++;
}

/* ---- joining samples in the file ---- */

/* Merges samples.  A value stays valid until a later sample changes it. */
struct joiner {
    const struct series_line *lines;
    size_t nnames;
    double *held, *sum, *out;
    unsigned *samples;
    size_t n; /* number of rows written */
    struct row *rows;
};

static void join_sample (struct joiner *j, int64_t number, double time)
{
    for (size_t i = 0; i < j->nnames; i++) {
        double v = j->held[i];
        if (isnan (v))
            continue;
        if (j->lines[i].kind == SERIES_GAUGE && j->samples[i])
            v = j->sum[i] / j->samples[i];
        j->sum[i] = 0;
        j->samples[i] = 0;
        if (v == j->out[i])
            continue;
        j->out[i] = v;
        struct row row = { .step = number, .time = time, .value = v, .name = (uint32_t)i + 1 };
        rows_seal (&row, 1);
        j->rows[j->n++] = row;
    }
}

static void hold_sample (struct joiner *j)
{
    for (size_t i = 0; i < j->nnames; i++)
        if (!isnan (j->held[i])) {
            j->sum[i] += j->held[i];
            j->samples[i]++;
        }
}

/* Merge each pair of samples into one with the number and time of the second.  Keep the
 * first sample because it records when the series began.
 */
static int64_t join_all (struct joiner *j, const struct row *rows, size_t n)
{
    double time = 0;
    unsigned samples = 0;
    int64_t number = 0;

    for (size_t i = 0; i < n;) {
        int64_t sample = rows[i].step;
        time = rows[i].time;
        for (; i < n && rows[i].step == sample; i++)
            if (rows[i].name >= 1 && rows[i].name <= j->nnames)
                j->held[rows[i].name - 1] = rows[i].value;
        hold_sample (j);
        if (++samples == 2 || number == 0) {
            join_sample (j, number++, time);
            samples = 0;
        }
    }
    if (samples)
        join_sample (j, number++, time);
    return number;
}

static void start_joiner (struct joiner *j, struct series *s, size_t n)
{
    *j = (struct joiner){ .lines = s->lines, .nnames = s->nlines };
    j->held = xcalloc (s->nlines, sizeof (double));
    j->sum = xcalloc (s->nlines, sizeof (double));
    j->out = xcalloc (s->nlines, sizeof (double));
    j->samples = xcalloc (s->nlines, sizeof (unsigned));
    j->rows = xcalloc (n + s->nlines + 1, sizeof (struct row));
    for (size_t i = 0; i < s->nlines; i++)
        j->held[i] = j->out[i] = NAN;
}

static void end_joiner (struct joiner *j)
{
    free (j->held);
    free (j->sum);
    free (j->out);
    free (j->samples);
    free (j->rows);
}

static int thin_series (struct series *s)
{
    size_t n = s->file.rows.n;
    struct row *rows = xcalloc (n, sizeof (*rows));
    struct joiner j;
    int64_t number;
    int rv = -1;

    start_joiner (&j, s, n);
    if (io_read_at (s->file.fd, rows, n * sizeof (*rows), s->file.rows.data) < 0)
        goto out;
    j.rows[j.n++] = rows[0]; /* the first row identifies the file ('slurmdl') */
    number = join_all (&j, rows + 1, n - 1);
    if (metrics_file_replace_rows (&s->file, j.rows, j.n) < 0)
        goto out;
    s->number = number;
    s->joined *= 2;
    for (size_t i = 0; i < s->nlines; i++)
        s->lines[i].known = false;
    rv = 0;
out:
    end_joiner (&j);
    free (rows);
    return rv;
}

/* ---- writing ---- */

static size_t fill_rows (struct series *s, double time)
{
    size_t n = 0;

    for (size_t i = 0; i < s->nlines; i++) {
        struct series_line *l = &s->lines[i];
        double v = l->kind == SERIES_GAUGE ? l->now / l->n : l->now;
        if (l->n == 0)
            continue;
        l->n = 0;
        l->now = 0;
        if (l->known && v == l->written)
            continue;
        l->written = v;
        l->known = true;
        struct row row = { .step = s->number, .time = time, .value = v, .name = (uint32_t)i + 1 };
        rows_seal (&row, 1);
        s->rows[n++] = row;
    }
    return n;
}

static int add_series_names (struct series *s)
{
    while (s->file.names.n < s->nlines + 1) {
        const struct series_line *l = &s->lines[s->file.names.n - 1];
        if (metrics_file_add_names (&s->file, &l->name, 1) < 0)
            return -1;
    }
    return 0;
}

static int write_sample (struct series *s, double time)
{
    size_t n = fill_rows (s, time);

    if (n == 0)
        return 0;
    if (add_series_names (s) < 0 || metrics_file_add_rows (&s->file, s->rows, n) < 0) {
        for (size_t i = 0; i < s->nlines; i++)
            s->lines[i].known = false;
        return -1;
    }
    s->number++;
    if (time - s->synced >= SYNC_EVERY) {
        s->synced = time;
        return metrics_file_sync (&s->file);
    }
    return 0;
}

/* Make room for one more sample.  If a full disk prevents that, retry only now and
 * then.
 */
static int make_series_room (struct series *s)
{
    if (s->file.rows.n + s->nlines <= s->max)
        return 0;
    if (s->pause == 0 && thin_series (s) == 0)
        return 0;
    s->pause = s->pause ? s->pause - 1 : RETRY_AFTER;
    errno = ENOSPC;
    return -1;
}

int series_end (struct series *s, double time)
{
    s->time = time;
    if (++s->taken < s->joined)
        return 0;
    s->taken = 0;
    return make_series_room (s) < 0 ? -1 : write_sample (s, time);
}

/* ---- create, destroy ---- */

static void free_series (struct series *s)
{
    free (s->lines);
    free (s->rows);
    free (s);
}

struct series *series_create (const char *dir, int folder, const char *stem,
                              const struct metrics_file_about *about, size_t max,
                              struct slurmdl_error *err)
{
    struct series *s = xcalloc (1, sizeof (*s));

    s->lines = xcalloc (NAMES, sizeof (*s->lines));
    s->rows = xcalloc (NAMES, sizeof (*s->rows));
    s->joined = 1;
    s->max = max;
    if (metrics_file_create_as (&s->file, dir, folder, stem, about, err) == 0)
        return s;
    free_series (s);
    return NULL;
}

void series_destroy (struct series *s)
{
    if (!s)
        return;
    if (s->taken > 0 && make_series_room (s) == 0)
        write_sample (s, s->time);
    metrics_file_close (&s->file);
    free_series (s);
}
