/* SPDX-License-Identifier: Apache-2.0 */
/* Advice from the resource usage of a step. */
#include "launcher/monitor/monitor.h"

#include <math.h>
#include <stdio.h>

static const double too_short = 5;  /* seconds */
static const double gpu_unused = 1; /* per cent */

/* clang-format off */
#define LOW_GPU { Q_GPU_BUSY, 0, 60 }
#define NO_GPU  { Q_GPUS, 0, 1 }
const struct pattern_row advice_table[] = {
    /* why the GPUs wait */
    { "idle",        1, { { Q_GPU_BUSY, 0, 5 }, { Q_CORES, 0, 0.05 }, { Q_BLOCKED, 0, 0.3 } }, OF_ALL,
      "neither GPUs nor cores did anything: the ranks waited for each other, or for something outside of the job" },
    { "gpu-storage", 1, { LOW_GPU, { Q_BLOCKED, 0.3, INFINITY } }, OF_ALL,
      "the GPUs waited for storage: copy the data to the node's own disk, read it in larger pieces, or prefetch more" },
    { "gpu-network", 1, { LOW_GPU, { Q_LINK, 0.5, INFINITY } }, OF_ALL,
      "the GPUs waited for the network: larger batches, gradients accumulated or in 16 bits, fewer nodes, or --dl-nccl=auto" },
    { "gpu-cores",   1, { LOW_GPU, { Q_CORES, 0.85, INFINITY } }, OF_ALL,
      "the GPUs waited for the data loader, which had all cores busy: more --cpus-per-task, or less work on each sample" },
    { "gpu-loader",  1, { LOW_GPU, { Q_BUSIEST, 0.85, INFINITY }, { Q_CORES, 0, 0.85 } }, OF_ALL,
      "the GPUs waited for one process that filled its core while others were free: more workers in the data loader (num_workers)" },
    { "gpu-wait",    1, { LOW_GPU }, OF_ALL,
      "the GPUs waited, and cores, storage and network were not busy: larger batches, fewer synchronisations (.item(), printing), compiled graphs" },
    /* GPUs by themselves */
    { "gpu-unused",  2, { { Q_GPU_UNUSED, 1, INFINITY }, { Q_GPU_BUSY, 5, 101 } }, OF_ALL,
      "some allocated GPUs were never used: ask for fewer, or start a rank for each" },
    { "gpu-balance", 2, { { Q_GPU_LOWEST, 0, 0.6 }, { Q_RANKS, 2, INFINITY } }, OF_LOWEST_GPU,
      "its GPU was much less busy than the others'" },
    { "gpu-hot",     3, { { Q_HOT, 0.1, INFINITY } }, OF_ALL,
      "GPUs were throttled by heat: tell the administrators" },
    { "gpu-capped",  3, { { Q_CAPPED, 0.5, INFINITY }, { Q_GPU_BUSY, 60, 101 } }, OF_ALL,
      "GPUs were throttled by their power limit" },
    { "gpu-memory",  4, { { Q_GPU_MEMORY, 0, 0.4 } }, OF_ALL,
      "most of the GPU memory stayed free: a larger batch fits" },
    /* without GPUs */
    { "storage",     1, { NO_GPU, { Q_BLOCKED, 0.3, INFINITY } }, OF_ALL,
      "the ranks waited for storage: copy the data to the node's own disk, read it in larger pieces, or prefetch more" },
    { "network",     1, { NO_GPU, { Q_LINK, 0.5, INFINITY } }, OF_ALL,
      "a network link was more than half full: larger batches, or gradients accumulated" },
    { "balance",     2, { NO_GPU, { Q_CORES_LOWEST, 0, 0.5 }, { Q_RANKS, 2, INFINITY } }, OF_LOWEST_CORES,
      "it had much less to do than the others" },
    { "crowded",     3, { { Q_CORES, 0.9, INFINITY }, { Q_SWITCHES, 200, INFINITY } }, OF_ALL,
      "more threads than cores: set OMP_NUM_THREADS, or --dl-bind=closest" },
    { "cores",       3, { NO_GPU, { Q_CORES, 0, 0.5 }, { Q_CORES_GIVEN, 2, INFINITY } }, OF_ALL,
      "more than half of the cores did nothing: ask for fewer, or start more threads or workers" },
    { "memory-full", 4, { { Q_MEMORY, 0.9, INFINITY } }, OF_ALL,
      "the memory was nearly full: ask for more (--mem), before the kernel ends the job" },
    { "memory-free", 5, { { Q_MEMORY, 0, 0.25 } }, OF_ALL,
      "less than a quarter of the memory was used: with a smaller --mem the job may start sooner" },
    { NULL },
};
/* clang-format on */

static double advised_value (const struct usage_rank *r, enum advice_of of)
{
    return of == OF_LOWEST_GPU ? r->gpu_busy : r->cores;
}

const struct usage_rank *advise_lowest (const struct usage *u, enum advice_of of)
{
    const struct usage_rank *lowest = NULL;
    int n = 0;

    for (size_t i = 0; i < u->nranks; i++) {
        double v = advised_value (&u->ranks[i], of);
        if (isnan (v))
            continue;
        n++;
        if (!lowest || v < advised_value (lowest, of))
            lowest = &u->ranks[i];
    }
    return n > 1 ? lowest : NULL;
}

/* Sum of the known values, for their mean. */
struct usage_sum {
    double total;
    int n;
};

static void add_to_sum (struct usage_sum *s, double v)
{
    if (!isnan (v)) {
        s->total += v;
        s->n++;
    }
}

static double mean_of_sum (const struct usage_sum *s)
{
    return s->n ? s->total / s->n : NAN;
}

static double larger_number (double a, double b)
{
    return fmax (a, b); /* ignores NaN */
}

static void measure_ranks (const struct usage *u, double *q)
{
    struct usage_sum cores = { 0 }, share = { 0 }, given = { 0 };
    struct usage_sum busiest = { 0 }, blocked = { 0 }, switches = { 0 };
    struct usage_sum gpu = { 0 };
    const struct usage_rank *low;

    for (size_t i = 0; i < u->nranks; i++) {
        const struct usage_rank *r = &u->ranks[i];
        add_to_sum (&cores, r->cores);
        add_to_sum (&share, r->cores / r->cores_given);
        add_to_sum (&given, r->cores_given);
        add_to_sum (&busiest, r->busiest);
        add_to_sum (&blocked, r->blocked > 1 ? 1 : r->blocked);
        add_to_sum (&switches, r->switches);
        add_to_sum (&gpu, r->gpu_busy);
    }
    q[Q_RANKS] = (double)u->nranks;
    q[Q_CORES] = mean_of_sum (&share);
    q[Q_CORES_GIVEN] = mean_of_sum (&given);
    q[Q_BUSIEST] = mean_of_sum (&busiest);
    q[Q_BLOCKED] = mean_of_sum (&blocked);
    q[Q_SWITCHES] = mean_of_sum (&switches);
    if ((low = advise_lowest (u, OF_LOWEST_CORES)) && mean_of_sum (&cores) > 0.1)
        q[Q_CORES_LOWEST] = low->cores / mean_of_sum (&cores);
    if ((low = advise_lowest (u, OF_LOWEST_GPU)) && mean_of_sum (&gpu) > 5)
        q[Q_GPU_LOWEST] = low->gpu_busy / mean_of_sum (&gpu);
}

static void measure_gpus (const struct usage *u, double *q)
{
    struct usage_sum busy = { 0 };

    q[Q_GPUS] = 0;
    for (size_t i = 0; i < u->nnodes; i++)
        for (int k = 0; k < u->nodes[i].ngpus; k++) {
            const struct usage_gpu *g = &u->nodes[i].gpus[k];
            q[Q_GPUS]++;
            add_to_sum (&busy, g->busy);
            q[Q_GPU_MEMORY] = larger_number (q[Q_GPU_MEMORY], g->memory / g->memory_size);
            q[Q_HOT] = larger_number (q[Q_HOT], g->hot);
            q[Q_CAPPED] = larger_number (q[Q_CAPPED], g->capped);
            if (!isnan (g->busy))
                q[Q_GPU_UNUSED] = larger_number (q[Q_GPU_UNUSED], 0) + (g->busy < gpu_unused);
        }
    q[Q_GPU_BUSY] = mean_of_sum (&busy);
}

void advise_measure (const struct usage *u, double q[QUANTITIES])
{
    for (int i = 0; i < QUANTITIES; i++)
        q[i] = NAN;
    measure_ranks (u, q);
    measure_gpus (u, q);
    for (size_t i = 0; i < u->nnodes; i++) {
        const struct usage_node *n = &u->nodes[i];
        q[Q_LINK] = larger_number (q[Q_LINK], n->link);
        if (n->job_memory)
            q[Q_MEMORY] = larger_number (q[Q_MEMORY], n->memory / n->limit);
    }
}

static bool pattern_fits (const struct pattern_row *row, const double *q)
{
    for (int i = 0; i < CONDITIONS && row->when[i].below > 0; i++) {
        const struct condition *c = &row->when[i];
        if (!(q[c->what] >= c->from && q[c->what] < c->below))
            return false;
    }
    return true;
}

int advise (const struct usage *u, const struct pattern_row **rows, int max)
{
    double q[QUANTITIES];
    unsigned groups = 0;
    int n = 0;

    if (u->seconds < too_short)
        return 0;
    advise_measure (u, q);
    for (const struct pattern_row *r = advice_table; r->name && n < max; r++)
        if (!(groups & 1u << r->group) && pattern_fits (r, q)) {
            groups |= 1u << r->group;
            rows[n++] = r;
        }
    return n;
}

void advice_text (const struct usage *u, const struct pattern_row *row, char *buf, size_t size)
{
    const struct usage_rank *r = row->of == OF_ALL ? NULL : advise_lowest (u, row->of);

    if (r)
        snprintf (buf, size, "rank %ld on %s: %s", r->rank, u->nodes[r->node].name, row->text);
    else
        snprintf (buf, size, "%s", row->text);
}
