/* SPDX-License-Identifier: Apache-2.0 */
/* What population based training finds, by rules and workers:
 *     make tests/bench/population && tests/bench/population [SEEDS]
 * Each seed is a population of 16 in 10 generations, by the rules of now and by
 * those of before.  Nodes differ in speed (log-normal, 0.3); the clock is
 * simulated.  Printed are means over the seeds: the true quality (larger is
 * better) of the member with the best last metric, which is noisy; of the
 * difference now - before also its standard error; the clones; the time, in
 * generations of the mean worker.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/numeric/rng.h"
#include "searcher/searcher.h"

enum { POPULATION = 16, GENERATIONS = 10, SEEDS = 100, WORKERS = 16 };
enum { TRIALS = POPULATION * GENERATIONS + 1 };

struct model {
    double state[2];
};

struct problem {
    const char *name;
    struct param params[2];
    size_t n;
    double noise;
    struct model start;
    void (*train) (struct model *m, const double *x, double time);
    double (*quality) (const struct model *m);
};

/* The toy of the paper: theta goes up the gradient of 1.2 - h theta^2, but is
 * judged by 1.2 - theta^2.
 */
static void train_quadratic (struct model *m, const double *x, double time)
{
    (void)time;
    for (int step = 0; step < 4; step++)
        for (int i = 0; i < 2; i++)
            m->state[i] -= 0.02 * 2 * x[i] * m->state[i];
}

static double quality_quadratic (const struct model *m)
{
    return 1.2 - m->state[0] * m->state[0] - m->state[1] * m->state[1];
}

/* The best learning rate falls with the time. */
static void train_schedule (struct model *m, const double *x, double time)
{
    double far = log10 (x[0]) + 1 + 4 * time;

    m->state[0] += exp (-far * far);
}

static double quality_schedule (const struct model *m)
{
    return m->state[0];
}

/* A learning curve: a large learning rate is fast, but ends higher. */
static void train_curve (struct model *m, const double *x, double time)
{
    double rate = log10 (x[0]), far = rate + 1 + 2 * time;
    double end = 0.05 * (rate + 4) + (x[1] - 0.3) * (x[1] - 0.3);

    m->state[0] += 0.5 * exp (-far * far) * (end - m->state[0]);
}

static double quality_curve (const struct model *m)
{
    return -m->state[0];
}

/* clang-format off */
static const struct problem problems[] = {
    { "quadratic", { { .name = "h0", .max = 1 }, { .name = "h1", .max = 1 } }, 2, 0.03,
      { { 0.9, 0.9 } }, train_quadratic, quality_quadratic },
    { "schedule",
      { { .name = "lr", .type = PARAM_LOG, .min = -5, .max = -1, .base = 10 } }, 1, 0.3,
      { { 0, 0 } }, train_schedule, quality_schedule },
    { "curve",
      { { .name = "lr", .type = PARAM_LOG, .min = -4, .max = 0, .base = 10 },
        { .name = "drop", .max = 1 } }, 2, 0.1,
      { { 3, 0 } }, train_curve, quality_curve },
};
/* clang-format on */

/* What a trial has at the end of each generation. */
struct trial {
    double x[2];
    struct model after[GENERATIONS + 1];
};

struct job {
    struct search_op op;
    double end; /* 0: the worker is free */
};

struct found {
    double quality, time, clones;
};

static struct trial trials[TRIALS + 1];

static double normal (struct rng *r)
{
    return sqrt (-2 * log (1 - rng_next (r)))
           * cos (6.283185307179586 * rng_next (r));
}

static bool ask (struct searcher *s, const struct problem *p, struct job *job)
{
    double x[2];

    if (searcher_ask (s, &job->op, x) != SEARCH_RUN
        || searcher_begin (s, &job->op, x) < 0)
        return false;
    if (job->op.fresh) {
        struct trial *t = trials + job->op.trial;
        memcpy (t->x, x, sizeof (x));
        t->after[job->op.from_length] =
            job->op.from ? trials[job->op.from].after[job->op.from_length]
                         : p->start;
    }
    return true;
}

/* The segment ends.  Returns the metric. */
static double
train (const struct problem *p, const struct search_op *op, struct rng *r)
{
    struct trial *t = trials + op->trial;
    struct model *m = t->after + op->length;

    *m = m[-1];
    p->train (m, t->x, (double)(op->length - 1) / GENERATIONS);
    return p->quality (m) + p->noise * normal (r);
}

static int first_end (const struct job *jobs, int workers)
{
    int first = -1;

    for (int i = 0; i < workers; i++)
        if (jobs[i].end > 0 && (first < 0 || jobs[i].end < jobs[first].end))
            first = i;
    return first;
}

static struct found
search (const struct problem *p, int workers, int rules, uint64_t seed)
{
    const struct search_config config = { .name = "pbt",
                                          .seed = seed,
                                          .max_length = GENERATIONS,
                                          .min_length = 1,
                                          .population = POPULATION,
                                          .rules = rules };
    struct searcher *s = searcher_create (&config, p->params, p->n);
    struct rng r = { seed, 1, rng_key ("bench"), 0 };
    struct job jobs[WORKERS] = { { .end = 0 } };
    struct found f = { 0 };
    double speed[WORKERS], best = -INFINITY, now = 0;
    int i;

    if (!s)
        exit (1);
    for (int k = 0; k < WORKERS; k++)
        speed[k] = exp (0.3 * normal (&r));
    do {
        for (int k = 0; k < workers; k++)
            if (jobs[k].end == 0 && ask (s, p, jobs + k)) {
                jobs[k].end = now + speed[k] * exp (0.05 * normal (&r));
                f.clones += jobs[k].op.from > 0;
            }
        if ((i = first_end (jobs, workers)) >= 0) {
            const struct search_op *op = &jobs[i].op;
            double value = train (p, op, &r);
            now = jobs[i].end;
            jobs[i].end = 0;
            searcher_observe (s, op->trial, op->length, &value);
            if (op->length == GENERATIONS && value > best) {
                best = value;
                f.quality = p->quality (trials[op->trial].after + GENERATIONS);
            }
        }
    } while (i >= 0);
    f.time = now * workers / POPULATION;
    searcher_destroy (s);
    return f;
}

static void compare (const struct problem *p, int workers, long seeds)
{
    struct found old = { 0 }, new = { 0 };
    double sum = 0, squares = 0, n = (double)seeds;

    for (long seed = 1; seed <= seeds; seed++) {
        struct found a = search (p, workers, SEARCH_RULES_FORGET, seed);
        struct found b = search (p, workers, SEARCH_RULES_NOW, seed);
        double more = b.quality - a.quality;
        old = (struct found){ old.quality + a.quality,
                              old.time + a.time,
                              old.clones + a.clones };
        new = (struct found){ new.quality + b.quality,
                              new.time + b.time,
                              new.clones + b.clones };
        sum += more;
        squares += more * more;
    }
    printf ("%-10s %7d  %8.4f %8.4f  %+8.4f %6.4f  %6.1f %6.1f  %5.1f %5.1f\n",
            p->name,
            workers,
            old.quality / n,
            new.quality / n,
            sum / n,
            sqrt ((squares - sum * sum / n) / (n * (n - 1))),
            old.clones / n,
            new.clones / n,
            old.time / n,
            new.time / n);
}

int main (int argc, char **argv)
{
    static const int workers[] = { 1, 4, 8, 16 };
    long seeds = argc > 1 ? strtol (argv[1], NULL, 10) : SEEDS;

    if (seeds < 2) {
        fprintf (stderr, "usage: population [SEEDS, at least 2]\n");
        return 2;
    }
    printf ("%18s  %17s  %15s  %13s  %11s\n",
            "",
            "before / now",
            "difference",
            "clones",
            "time");
    for (size_t i = 0; i < sizeof (problems) / sizeof (*problems); i++)
        for (size_t k = 0; k < sizeof (workers) / sizeof (*workers); k++)
            compare (problems + i, workers[k], seeds);
    return 0;
}
