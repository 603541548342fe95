/* SPDX-License-Identifier: Apache-2.0 */
/* Train a perceptron on handwritten digits on all ranks of a step.
 *
 *     cc -I../digits parallel.c ../digits/data.c ../digits/mlp.c \
 *         $(pkg-config --cflags --libs slurmdl-comm) -lz -lm -o parallel
 *     srun --dl -N2 --ntasks-per-node=4 ./parallel digits.csv.gz [EPOCHS]
 *
 * Each rank computes the gradient of its part of every batch; their sum is
 * that of the batch, so any number of ranks learns the same.  Rank 0 logs the
 * metrics and saves a checkpoint after each epoch.  When the program is started
 * again, it continues from there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <slurmdl_comm.h>

#include "data.h"

enum { HIDDEN = 64, BATCH = 64, EPOCHS = 10 };

struct training {
    struct slurmdl *run;
    struct slurmdl_comm *world;
    struct slurmdl_error err;
    int64_t step; /* batches, the same on all ranks */
};

static int sum_gradients (void *arg, float *gradient, size_t n)
{
    struct training *t = arg;

    return slurmdl_allreduce (t->world, gradient, gradient, n, SLURMDL_F32, SLURMDL_SUM, &t->err);
}

/* The same answer on all ranks, so that none waits for one that has left. */
static int stop_asked (void *arg)
{
    struct training *t = arg;

    return slurmdl_stop_here (t->run, ++t->step);
}

static int epoch (struct training *t, struct mlp *m, const struct data *train,
                  const struct data *valid, const struct sgd *sgd, int64_t number)
{
    double loss, accuracy;

    if (mlp_epoch (m, train, sgd, (uint64_t)number, stop_asked, t, &loss))
        return *t->err.text ? -1 : 1;
    accuracy = mlp_accuracy (m, valid);
    slurmdl_log (t->run, "training_loss", number, loss);
    slurmdl_log (t->run, "accuracy", number, accuracy);
    if (sgd->rank == 0)
        printf ("epoch %" PRId64 " loss %.4f accuracy %.4f\n", number, loss, accuracy);
    fflush (stdout);
    return slurmdl_save (t->run, number, &t->err);
}

static int train (struct training *t, struct mlp *m, const struct data *all, int64_t epochs)
{
    struct sgd sgd = { .lr = 0.1f,
                       .momentum = 0.9f,
                       .weight_decay = 1e-5f,
                       .batch = BATCH,
                       .rank = (size_t)slurmdl_comm_rank (t->world),
                       .size = (size_t)slurmdl_comm_size (t->world),
                       .sum = sum_gradients };
    struct data training, valid;
    uint64_t n = m->n;
    int64_t at = 0;
    int rv;

    slurmdl_protect (t->run, "model/weights", SLURMDL_F32, 1, &n, m->weights);
    slurmdl_protect (t->run, "optimizer/velocity", SLURMDL_F32, 1, &n, m->velocity);
    rv = slurmdl_restore (t->run, &at, &t->err);
    data_split (all, &training, &valid);
    while (rv >= 0 && at < epochs && (rv = epoch (t, m, &training, &valid, &sgd, at + 1)) == 0)
        at++;
    return rv;
}

int main (int argc, char **argv)
{
    int64_t epochs = argc > 2 ? atoll (argv[2]) : EPOCHS;
    struct training t = { 0 };
    struct data all = { 0 };
    struct mlp m = { 0 };
    int rv = -1;

    if (argc < 2 || data_read (argv[1], &all) < 0) {
        fprintf (stderr, "usage: parallel digits.csv.gz [EPOCHS]\n");
        return EXIT_FAILURE;
    }
    if ((t.run = slurmdl_open (NULL, &t.err)) && (t.world = slurmdl_comm_open (NULL, &t.err))
        && mlp_init (&m, HIDDEN, RELU, 1) == 0)
        rv = train (&t, &m, &all, epochs);
    if (rv < 0)
        fprintf (stderr, "parallel: %s\n", t.err.text);
    if (rv < 0 && t.world)
        slurmdl_comm_abort (t.world, t.err.text);
    slurmdl_comm_close (t.world, NULL);
    if (t.run)
        slurmdl_close (t.run);
    mlp_free (&m);
    data_free (&all);
    return rv < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
