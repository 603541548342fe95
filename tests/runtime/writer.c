/* SPDX-License-Identifier: Apache-2.0 */
/* A program for tests to kill, which logs metrics or saves checkpoints forever;
 * and a trainer, which does both and finishes.
 *
 *     writer metrics DIR    logs rows; prints how many are flushed
 *     writer mixed DIR [N]  logs rows and records of all kinds, in a run in
 *                           DIR; prints how many records and rows are flushed.
 *                           With N it stops after N rows; the status is 0 if
 *                           none was lost
 *     writer check FILE     reads what "mixed" wrote; prints how many records
 *                           and rows there are before the first missing one
 *     writer save DIR       saves; prints each step that is saved
 *     writer train          a trial: loss and a checkpoint at each step
 *     writer ranks DIR N sync|async STEPS
 *                           N ranks save slabs of one tensor and a state each,
 *                           STEPS times (0: forever); rank 0 prints "restored
 *                           STEP", each step that is saved, and "failed TEXT"
 *                           for each that failed
 *     writer rank DIR N sync|async STEPS RANK
 *                           one such rank, with larger slabs; each rank prints
 *                           "saved STEP" or "failed STEP"
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/slurmdl.h"

enum { FLOATS = 50000, MANY = 400000 };

static int log_for_ever (const char *dir)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, &err);
    char name[16];

    for (long i = 0; m; i++) {
        snprintf (name, sizeof (name), "n%ld", i / 500 % 100);
        if (slurmdl_metrics_log (m, name, i, (double)i / 8) < 0)
            return 1;
        if (i % 97 == 0 && slurmdl_metrics_flush (m, &err) == 0)
            dprintf (1, "%ld\n", i + 1);
        if (i % 10 == 0)
            usleep (20);
    }
    fprintf (stderr, "%s\n", err.text);
    return 1;
}

/* Record j follows row 20 j; tests/runtime/crash.py knows its contents. */
static int log_record (struct slurmdl *run, long j)
{
    double v[40];
    uint64_t counts[39];
    unsigned char pixels[39 * 2 * 3];
    size_t n = (size_t)(j % 39) + 1;
    char text[64];

    for (size_t i = 0; i < 40; i++)
        v[i] = (double)(j + (long)i);
    for (size_t i = 0; i < n; i++)
        counts[i] = (uint64_t)j * i;
    memset (pixels, (int)(j & 255), sizeof (pixels));
    snprintf (text, sizeof (text), "{\"j\": %ld}", j);
    switch (j % 5) {
    case 0:
        return slurmdl_log_vector (run, "r/vector", j, n, v);
    case 1:
        return slurmdl_log_histogram (run, "r/histogram", j, n, v, counts);
    case 2:
        return slurmdl_log_text (run, "r/text", j, text);
    case 3:
        return slurmdl_log_image (run, "r/image", j, (unsigned)n, 2, 3, pixels);
    default:
        return slurmdl_event (run, "r/event", text);
    }
}

static int log_mixed (const char *dir, long most)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run = slurmdl_open (dir, &err);
    char name[16];
    long i;

    for (i = 0; run && (most == 0 || i < most); i++) {
        snprintf (name, sizeof (name), "n%ld", i / 500 % 100);
        if (slurmdl_log (run, name, i, (double)i / 8) < 0
            || (i % 20 == 0 && log_record (run, i / 20) < 0))
            return 1;
        if (i % 97 == 0 && slurmdl_flush (run, &err) == 0)
            dprintf (1, "%ld %ld\n", i / 20 + 1, i + 1);
        if (i % 10 == 0)
            usleep (20);
    }
    if (!run) {
        fprintf (stderr, "%s\n", err.text);
        return 3;
    }
    if (slurmdl_close (run) < 0)
        return 2;
    dprintf (1, "%ld %ld\n", (i + 19) / 20, i);
    return 0;
}

/* How many rows and records precede the first missing one. */
struct seen {
    long rows, records;
};

enum { DAMAGED = 4 }; /* exit status: some are missing, and all others are right */

static int check_row (const struct slurmdl_row *r, void *arg)
{
    struct seen *s = arg;
    char name[16];

    snprintf (name, sizeof (name), "n%ld", (long)r->step / 500 % 100);
    if (r->step < s->rows || r->value != (double)r->step / 8 || strcmp (r->name, name) != 0)
        return 1;
    s->rows += r->step == s->rows;
    return 0;
}

static long number_of (const char *event)
{
    long j = -1;

    return sscanf (event, "{\"j\": %ld}", &j) == 1 ? j : -1;
}

static int check_record (const struct slurmdl_record *r, void *arg)
{
    static const char *const names[] = { "r/vector", "r/histogram", "r/text", "r/image",
                                         "r/event" };
    struct seen *s = arg;
    /* an event has the step of the row before it */
    long j = r->kind == SLURMDL_EVENT ? number_of (r->data) : (long)r->step;
    struct slurmdl_histogram h;
    struct slurmdl_image i;
    char text[64];

    snprintf (text, sizeof (text), "{\"j\": %ld}", j);
    if (r->kind != (enum slurmdl_kind) (j % 5 + 1) || strcmp (r->name, names[j % 5]) != 0
        || j < s->records)
        return 1;
    s->records += j == s->records;
    switch (r->kind) {
    case SLURMDL_VECTOR:
        return r->size != (size_t)(j % 39 + 1) * sizeof (double)
               || *(const double *)r->data != (double)j;
    case SLURMDL_HISTOGRAM:
        return slurmdl_record_histogram (r, &h) < 0 || h.nbins != (uint64_t)(j % 39) + 1
               || h.counts[h.nbins - 1] != (uint64_t)j * (h.nbins - 1);
    case SLURMDL_IMAGE:
        return slurmdl_record_image (r, &i) < 0 || i.height != 2
               || i.pixels[i.width * 6 - 1] != (j & 255);
    case SLURMDL_TEXT:
    case SLURMDL_EVENT:
        break;
    }
    return strcmp (r->data, text) != 0;
}

static int check (const char *path)
{
    struct slurmdl_error err = { "" };
    struct seen s = { 0, 0 };
    int rv = slurmdl_metrics_read (path, check_row, &s, &err);
    bool damaged = rv < 0 && errno == EBADMSG;

    if (rv == 0 || damaged)
        rv = slurmdl_records_read (path, check_record, &s, &err);
    if (rv < 0 && errno == EBADMSG) {
        damaged = true;
        rv = 0;
    }
    if (rv || damaged)
        fprintf (stderr, "row %ld, record %ld: %s\n", s.rows, s.records, err.text);
    printf ("%ld %ld\n", s.records, s.rows);
    return rv ? 1 : damaged ? DAMAGED : 0;
}

static int save_for_ever (const char *dir)
{
    static float w[FLOATS];
    struct slurmdl_error err = { "" };
    struct slurmdl *run = slurmdl_open (dir, &err);
    uint64_t n = FLOATS;
    int64_t step = 0;

    if (!run || slurmdl_protect (run, "w", SLURMDL_F32, 1, &n, w) < 0
        || slurmdl_restore (run, &step, &err) < 0)
        return 1;
    for (int i = 0; i < FLOATS; i++)
        if (w[i] != (float)step)
            return 2; /* it restored what was never saved */
    dprintf (1, "restored %lld\n", (long long)step);
    for (;;) {
        step++;
        for (int i = 0; i < FLOATS; i++)
            w[i] = (float)step;
        if (slurmdl_save (run, step, &err) < 0)
            return 3;
        dprintf (1, "%lld\n", (long long)step);
    }
}

static int train (void)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run = slurmdl_open (NULL, &err);
    double lr = run ? slurmdl_float (run, "lr", 1) : 1;
    int64_t step = 0;
    uint64_t n = 1;

    if (!run || slurmdl_protect (run, "lr", SLURMDL_F64, 1, &n, &lr) < 0
        || slurmdl_restore (run, &step, &err) < 0)
        return 1;
    while (step < slurmdl_length (run)) {
        step++;
        if (slurmdl_log (run, "loss", step, lr + (double)step) < 0
            || slurmdl_log (run, "lr", step, lr) < 0 || slurmdl_save (run, step, &err) < 0)
            return 3;
    }
    return slurmdl_close (run) < 0;
}

/* ---- several ranks ---- */

struct ranks {
    const char *dir;
    int n;
    int async;
    long steps;
    int each;   /* every rank prints how its saves end */
    int floats; /* per rank, up to MANY */
};

/* Set memory and state to what they are at a step. */
static int put_step (struct slurmdl *run, const struct ranks *r, float *w, int64_t step)
{
    for (int i = 0; i < r->floats; i++)
        w[i] = (float)step;
    return slurmdl_state (run, "rng.%r", &step, sizeof (step));
}

static int check_step (struct slurmdl *run, const struct ranks *r, const float *w, int64_t step)
{
    void *bytes;
    int64_t state;
    size_t n;

    for (int i = 0; i < r->floats; i++)
        if (w[i] != (float)step)
            return -1;
    if (slurmdl_read_state (run, "rng.%r", &bytes, &n) < 0)
        return -1;
    memcpy (&state, bytes, sizeof (state));
    free (bytes);
    return n == sizeof (state) && state == step ? 0 : -1;
}

static int save_step (struct slurmdl *run, const struct ranks *r, int64_t step)
{
    struct slurmdl_error err = { "" };
    int rv = r->async ? slurmdl_save_async (run, step, &err) : slurmdl_save (run, step, &err);

    /* wait for every third save, so that two are in flight when it starts */
    if (rv == 0 && r->async && (step % 3 == 0 || step == r->steps))
        rv = slurmdl_save_wait (run, &err);
    else if (rv == 0 && r->async)
        return 0;
    if (r->each)
        dprintf (1, "%s %lld\n", rv ? "failed" : "saved", (long long)step);
    else if (slurmdl_rank (run) == 0 && rv == 0)
        dprintf (1, "%lld\n", (long long)step);
    else if (slurmdl_rank (run) == 0)
        dprintf (1, "failed %s\n", err.text);
    return rv;
}

static int run_rank (const struct ranks *r, int rank)
{
    static float w[MANY];
    struct slurmdl_error err = { "" };
    uint64_t n = (uint64_t)r->floats;
    uint64_t all = n * (uint64_t)r->n;
    uint64_t from = n * (uint64_t)rank;
    struct slurmdl *run;
    int64_t step = 0;
    int found;

    snprintf ((char *)w, sizeof (w), "%d", rank);
    setenv ("RANK", (char *)w, 1);
    snprintf ((char *)w, sizeof (w), "%d", r->n);
    setenv ("WORLD_SIZE", (char *)w, 1);
    if (!(run = slurmdl_open (r->dir, &err))
        || slurmdl_protect_shard (run, "w", SLURMDL_F32, 1, &all, &from, &n, w) < 0
        || put_step (run, r, w, 0) < 0 || (found = slurmdl_restore (run, &step, &err)) < 0) {
        fprintf (stderr, "rank %d: %s\n", rank, err.text);
        return 1;
    }
    if (found && check_step (run, r, w, step) < 0)
        return 2; /* it restored what was never saved */
    if (rank == 0)
        dprintf (1, "restored %lld\n", (long long)step);
    for (int64_t end = step + r->steps; r->steps == 0 || step < end;)
        if (put_step (run, r, w, ++step) < 0 || (save_step (run, r, step) < 0 && r->steps == 0))
            return 3;
    return slurmdl_close (run) < 0 ? 4 : 0;
}

static int run_ranks (const struct ranks *r)
{
    int rv = 0;
    int status;

    for (int rank = 1; rank < r->n; rank++)
        if (fork () == 0)
            _exit (run_rank (r, rank));
    rv = run_rank (r, 0);
    while (wait (&status) > 0)
        if (status && rv == 0)
            rv = WIFEXITED (status) ? WEXITSTATUS (status) : 9;
    return rv;
}

int main (int argc, char **argv)
{
    if (argc == 6 && !strcmp (argv[1], "ranks"))
        return run_ranks (&(struct ranks){ .dir = argv[2],
                                           .n = atoi (argv[3]),
                                           .async = !strcmp (argv[4], "async"),
                                           .steps = atol (argv[5]),
                                           .floats = FLOATS });
    if (argc == 7 && !strcmp (argv[1], "rank"))
        return run_rank (&(struct ranks){ .dir = argv[2],
                                          .n = atoi (argv[3]),
                                          .async = !strcmp (argv[4], "async"),
                                          .steps = atol (argv[5]),
                                          .each = 1,
                                          .floats = MANY },
                         atoi (argv[6]));
    if (argc == 3 && !strcmp (argv[1], "metrics"))
        return log_for_ever (argv[2]);
    if (argc >= 3 && !strcmp (argv[1], "mixed"))
        return log_mixed (argv[2], argc > 3 ? atol (argv[3]) : 0);
    if (argc == 3 && !strcmp (argv[1], "check"))
        return check (argv[2]);
    if (argc == 3 && !strcmp (argv[1], "save"))
        return save_for_ever (argv[2]);
    if (argc == 2 && !strcmp (argv[1], "train"))
        return train ();
    return 64;
}
