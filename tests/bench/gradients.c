/* SPDX-License-Identifier: Apache-2.0 */
/* Measure how long it takes to reduce gradients by name.  gradients.py compares it with gloo. */
#include <stdbool.h>

#include "runtime/slurmdl_comm.h"
#include "tests/bench/bench.h"

/* Each input line "WHAT ROUNDS" is an order, which all ranks get.  Rank 0 prints the seconds of
 * each round on the slowest rank.
 */
enum { RESNET50 = 161, SMALL = 1000, SMALL_ELEMENTS = 256, MOST = 1000 };

struct gradients {
    size_t n, total;
    size_t sizes[MOST];
    float *data;
};

static void add (struct gradients *g, size_t n)
{
    g->sizes[g->n++] = n;
    g->total += n;
}

static void convolution (struct gradients *g, size_t out, size_t in, size_t width)
{
    add (g, out * in * width * width);
    add (g, out); /* batch normalization */
    add (g, out);
}

/* ResNet-50 (He et al. 2016, arXiv:1512.03385) as in torchvision. */
static void resnet50 (struct gradients *g)
{
    static const size_t blocks[] = { 3, 4, 6, 3 };
    size_t in = 64;

    convolution (g, 64, 3, 7);
    for (size_t stage = 0; stage < 4; stage++)
        for (size_t b = 0; b < blocks[stage]; b++) {
            size_t width = 64u << stage;
            convolution (g, width, in, 1);
            convolution (g, width, width, 3);
            convolution (g, 4 * width, width, 1);
            if (b == 0)
                convolution (g, 4 * width, in, 1);
            in = 4 * width;
        }
    add (g, 1000 * 2048);
    add (g, 1000);
}

static void small (struct gradients *g)
{
    for (int i = 0; i < SMALL; i++)
        add (g, SMALL_ELEMENTS);
}

/* Submit all at once, or wait for each before the next. */
static int by_name (struct slurmdl_comm *c, struct gradients *g, char kind, bool at_once)
{
    float *end = g->data + g->total;
    char name[16];

    for (size_t i = g->n; i-- > 0;) {
        struct slurmdl_request r = {
            .name = name, .type = SLURMDL_F32, .op = SLURMDL_AVERAGE, .n = g->sizes[i]
        };
        end -= g->sizes[i];
        r.in = r.out = end;
        snprintf (name, sizeof (name), "%c%zu", kind, i);
        int64_t ticket = slurmdl_submit (c, &r, NULL);
        if (ticket < 0 || (!at_once && slurmdl_wait (c, ticket, NULL) < 0))
            return -1;
    }
    return slurmdl_wait (c, 0, NULL);
}

static int one_by_one (struct slurmdl_comm *c, struct gradients *g)
{
    float *at = g->data;

    for (size_t i = 0; i < g->n; at += g->sizes[i++])
        if (slurmdl_allreduce (c, at, at, g->sizes[i], SLURMDL_F32, SLURMDL_AVERAGE, NULL) < 0)
            return -1;
    return 0;
}

static int run (struct slurmdl_comm *c, const char *what, struct gradients *large,
                struct gradients *little)
{
    if (!strcmp (what, "resnet50"))
        return by_name (c, large, 'r', true);
    if (!strcmp (what, "resnet50-single"))
        return one_by_one (c, large);
    if (!strcmp (what, "small"))
        return by_name (c, little, 's', true);
    if (!strcmp (what, "small-waited"))
        return by_name (c, little, 's', false);
    return one_by_one (c, little);
}

int main (void)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_comm *c = slurmdl_comm_open (NULL, &err);
    struct gradients large = { 0 }, little = { 0 };
    char what[32];
    int rounds;

    if (!c) {
        fprintf (stderr, "gradients: %s\n", err.text);
        return 1;
    }
    resnet50 (&large);
    small (&little);
    if (large.n != RESNET50 || large.total != 25557032)
        return 2;
    large.data = calloc (large.total, sizeof (float));
    little.data = calloc (little.total, sizeof (float));
    while (scanf ("%31s %d", what, &rounds) == 2) {
        for (int k = 0; k < rounds; k++) {
            double start, took;
            if (slurmdl_barrier (c, NULL) < 0)
                return 3;
            start = now ();
            if (run (c, what, &large, &little) < 0)
                return 4;
            took = now () - start;
            if (slurmdl_allreduce (c, &took, &took, 1, SLURMDL_F64, SLURMDL_MAX, NULL) < 0)
                return 5;
            if (slurmdl_comm_rank (c) == 0)
                printf ("%.9f%c", took, k + 1 < rounds ? ' ' : '\n');
        }
        fflush (stdout);
    }
    slurmdl_comm_close (c, NULL);
    free (large.data);
    free (little.data);
    return 0;
}
