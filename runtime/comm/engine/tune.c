/* SPDX-License-Identifier: Apache-2.0 */
/* A coordinate search over settings, each measured while training goes on. */
#include "runtime/comm/engine/tune.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 3, BATCHES = 10, AXES = 2 };

static const double SECONDS = 0.2; /* of a sample, at least */
static const double BETTER = 1.02;
static const double LEAST[AXES] = { 1 << 18, 1.25e-4 };
static const double MOST[AXES] = { 1 << 28, 8e-3 };

struct tune {
    FILE *log;
    double best[AXES]; /* bytes, seconds */
    double best_score; /* 0: not measured yet */
    double now[AXES];
    int axis;
    double factor; /* of the step that is being tried: 2 or 1/2 */
    bool moved;    /* by this factor, along this axis */
    int unmoved;   /* axes in turn that gave nothing */
    bool begun, settled;
    double since, bytes; /* of the sample */
    unsigned long batches;
    int samples; /* -1: the first does not count */
    double score[SAMPLES];
};

struct tune *tune_create (size_t fusion, double cycle, const char *log)
{
    struct tune *t = calloc (1, sizeof (*t));

    if (!t)
        return NULL;
    t->best[0] = t->now[0] = (double)fusion;
    t->best[1] = t->now[1] = cycle;
    t->factor = 2;
    t->samples = -1;
    if (log && *log && (t->log = fopen (log, "we")))
        fputs ("fusion_bytes,cycle_ms,bytes_per_second,settled\n", t->log);
    return t;
}

void tune_destroy (struct tune *t)
{
    if (t && t->log)
        fclose (t->log);
    free (t);
}

bool tune_has_settled (const struct tune *t)
{
    return t->settled;
}

static void write_line (struct tune *t, const double *at, double score)
{
    if (!t->log)
        return;
    fprintf (
        t->log, "%.0f,%g,%.0f,%d\n", at[0], at[1] * 1e3, score, t->settled);
    fflush (t->log);
}

/* Others on the machine make it slower, never faster. */
static double best_of (const double *s)
{
    double best = s[0];

    for (int i = 1; i < SAMPLES; i++)
        best = s[i] > best ? s[i] : best;
    return best;
}

/* The other direction, else the other axis, else it has settled. */
static void turn (struct tune *t)
{
    if (t->factor > 1 && !t->moved) {
        t->factor = 0.5;
        return;
    }
    t->unmoved = t->moved ? 0 : t->unmoved + 1;
    t->moved = false;
    t->factor = 2;
    t->axis = (t->axis + 1) % AXES;
    t->settled = t->unmoved == AXES;
}

/* The next setting within bounds. */
static void propose (struct tune *t)
{
    while (!t->settled) {
        double v = t->best[t->axis] * t->factor;
        if (v >= LEAST[t->axis] && v <= MOST[t->axis]) {
            memcpy (t->now, t->best, sizeof (t->now));
            t->now[t->axis] = v;
            return;
        }
        turn (t);
    }
    memcpy (t->now, t->best, sizeof (t->now));
    write_line (t, t->now, t->best_score);
}

static void judge (struct tune *t, double score)
{
    write_line (t, t->now, score);
    if (t->best_score == 0) {
        t->best_score = score;
    } else if (score > t->best_score * BETTER) {
        t->best_score = score;
        memcpy (t->best, t->now, sizeof (t->best));
        t->moved = true;
    } else {
        turn (t);
    }
    propose (t);
}

static void
begin_sample (struct tune *t, double now, double bytes, unsigned long batches)
{
    t->begun = true;
    t->since = now;
    t->bytes = bytes;
    t->batches = batches;
}

bool tune_step (struct tune *t,
                double now,
                double bytes,
                unsigned long batches,
                size_t *fusion,
                double *cycle)
{
    double score;

    if (t->settled || batches == 0)
        return false;
    if (!t->begun) {
        begin_sample (t, now, bytes, batches);
        return false;
    }
    if (now - t->since < SECONDS || batches - t->batches < BATCHES)
        return false;
    score = (bytes - t->bytes) / (now - t->since);
    begin_sample (t, now, bytes, batches);
    if (t->samples >= 0)
        t->score[t->samples] = score;
    if (++t->samples < SAMPLES)
        return false;
    t->samples = -1;
    judge (t, best_of (t->score));
    *fusion = (size_t)t->now[0];
    *cycle = t->now[1];
    return true;
}
