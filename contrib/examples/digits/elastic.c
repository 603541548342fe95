/* SPDX-License-Identifier: Apache-2.0 */
/* Train a perceptron on handwritten digits on nodes that may fail.
 *
 *     cc elastic.c data.c mlp.c \
 *         $(pkg-config --cflags --libs slurmdl-comm) -lz -lm \
 *         -o elastic
 *     sbatch --nodes=4 --no-kill --wrap \
 *         'dl elastic --min=2 ./elastic digits.csv.gz'
 *     dl elastic --local --nodes=3 ./elastic digits.csv.gz 50
 *
 * Each rank computes the gradient of a part of each batch; the sum moves the
 * weights.  The momentum is in pieces, one on each rank (sharded optimizer).
 * When a rank is lost, the others continue from the last batch, with what they
 * have in memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurmdl_comm.h>

#include "data.h"

enum { HIDDEN = 64, BATCH = 64, EPOCHS = 20 };

struct training {
    struct data all, train, valid;
    struct mlp m;
    struct sgd sgd;
    int64_t steps, epoch; /* batches in all, and of an epoch */
    size_t *order;        /* of the images of an epoch */
    float *work;
    size_t *bytes;     /* of the weights that each rank updates */
    size_t begin, end; /* ours */
    float *first;      /* the weights at the start */
};

static void print_error (const char *what, const struct slurmdl_error *err)
{
    fprintf (stderr, "elastic: %s: %s\n", what, err->text);
}

/* The weights that a rank updates. */
static void share (struct training *t, struct slurmdl_comm *world)
{
    size_t size = (size_t)slurmdl_comm_size (world);
    size_t rank = (size_t)slurmdl_comm_rank (world);

    for (size_t r = 0; r < size; r++)
        t->bytes[r] = (t->m.n * (r + 1) / size - t->m.n * r / size) * sizeof (float);
    t->begin = t->m.n * rank / size;
    t->end = t->m.n * (rank + 1) / size;
}

static int batch (struct training *t, struct slurmdl_comm *world, int64_t step,
                  struct slurmdl_error *err)
{
    size_t size = (size_t)slurmdl_comm_size (world);
    size_t rank = (size_t)slurmdl_comm_rank (world);
    size_t at = (size_t)(step % t->epoch) * BATCH;
    size_t end = at + BATCH < t->train.n ? at + BATCH : t->train.n;
    float *g = t->m.gradient;

    mlp_order (t->order, t->train.n, (uint64_t)(step / t->epoch) + 1);
    memset (g, 0, t->m.n * sizeof (*g));
    for (size_t i = at + rank; i < end; i += size)
        mlp_gradient (&t->m, &t->train, t->order[i], t->work);
    if (slurmdl_allreduce (world, g, g, t->m.n, SLURMDL_F32, SLURMDL_SUM, err) < 0)
        return -1;
    mlp_update (&t->m, &t->sgd, end - at, t->begin, t->end);
    memcpy (g, t->m.weights + t->begin, t->bytes[rank]);
    return slurmdl_allgather (world, g, t->bytes[rank], t->m.weights, t->bytes, err);
}

static void report (const struct training *t, struct slurmdl_comm *world, int64_t step)
{
    if (slurmdl_comm_rank (world) == 0 && step % t->epoch == 0) {
        printf ("epoch %lld error %.4f, %ld ranks\n", (long long)(step / t->epoch),
                1 - mlp_accuracy (&t->m, &t->valid), slurmdl_comm_size (world));
        fflush (stdout);
    }
}

/* No commit is left: begin again.  A program that saves checkpoints would
 * restore the newest one here.
 */
static void begin (struct training *t, int64_t *step)
{
    memcpy (t->m.weights, t->first, t->m.n * sizeof (float));
    memset (t->m.velocity, 0, t->m.n * sizeof (float));
    *step = 0;
}

static int enter (struct slurmdl_elastic *e, struct training *t, struct slurmdl_comm *world,
                  int64_t *step, struct slurmdl_error *err)
{
    struct slurmdl_elastic_world w;
    uint64_t all = t->m.n, offset, local;
    int rv;

    share (t, world);
    offset = t->begin;
    local = t->end - t->begin;
    if (slurmdl_elastic_protect_shard (e, "velocity", SLURMDL_F32, 1, &all, &offset, &local,
                                       t->m.velocity + t->begin, err)
        < 0)
        return -1;
    if ((rv = slurmdl_elastic_restore (e, step, err)) < 0)
        return -1;
    if (rv == 0)
        begin (t, step);
    slurmdl_elastic_world (e, &w);
    if (slurmdl_comm_rank (world) == 0)
        printf ("world %lld: %ld ranks, %ld lost, %ld left; step %lld\n", (long long)w.generation,
                w.size, w.lost, w.left, (long long)*step);
    return 0;
}

static int train (struct slurmdl_elastic *e, struct training *t, struct slurmdl_error *err)
{
    struct slurmdl_comm *world;
    uint64_t n = t->m.n;
    int64_t step = 0;

    if (slurmdl_elastic_protect (e, "weights", SLURMDL_F32, 1, &n, t->m.weights, err) < 0)
        return -1;
    while (step < t->steps) {
        if (!(world = slurmdl_elastic_form (e, err)))
            return -1;
        if (enter (e, t, world, &step, err) < 0) {
            if (errno == EINVAL)
                return -1;
            continue;
        }
        while (step < t->steps && batch (t, world, step, err) == 0) {
            report (t, world, ++step);
            if (slurmdl_elastic_commit (e, step, err) != 0)
                break;
        }
    }
    return 0;
}

static int prepare (struct training *t, char **args, int n)
{
    if (n < 1 || data_read (args[0], &t->all) < 0)
        return -1;
    data_split (&t->all, &t->train, &t->valid);
    t->sgd = (struct sgd){ .lr = 0.1f, .momentum = 0.9f, .weight_decay = 1e-4f, .batch = BATCH };
    t->epoch = (int64_t)((t->train.n + BATCH - 1) / BATCH);
    t->steps = t->epoch * (n > 1 ? atol (args[1]) : EPOCHS);
    t->order = calloc (t->train.n, sizeof (*t->order));
    t->work = calloc (2 * HIDDEN, sizeof (*t->work));
    t->bytes = calloc (65536, sizeof (*t->bytes));
    if (!t->order || !t->work || !t->bytes || mlp_init (&t->m, HIDDEN, RELU, 1) < 0
        || !(t->first = malloc (t->m.n * sizeof (float))))
        return -1;
    memcpy (t->first, t->m.weights, t->m.n * sizeof (float));
    return 0;
}

static void tidy (struct training *t)
{
    data_free (&t->all);
    mlp_free (&t->m);
    free (t->order);
    free (t->work);
    free (t->bytes);
    free (t->first);
}

int main (int argc, char **argv)
{
    struct slurmdl_error err;
    struct training t = { .steps = 0 };
    struct slurmdl_elastic *e;
    int status = 0;

    if (prepare (&t, argv + 1, argc - 1) < 0) {
        fputs ("usage: elastic digits.csv.gz [EPOCHS]\n", stderr);
        tidy (&t);
        return 2;
    }
    if (!(e = slurmdl_elastic_open (NULL, &err))) {
        print_error ("open", &err);
        tidy (&t);
        return 1;
    }
    /* one that is not needed any more has done its part */
    if (train (e, &t, &err) < 0 && errno != ECANCELED) {
        print_error ("train", &err);
        status = 1;
    }
    slurmdl_elastic_close (e);
    tidy (&t);
    return status;
}
