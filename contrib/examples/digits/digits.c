/* SPDX-License-Identifier: Apache-2.0 */
/* Train a perceptron on handwritten digits, with libslurmdl.
 *
 *     cc digits.c data.c mlp.c -o digits \
 *         $(pkg-config --cflags --libs slurmdl) -lz -lm
 *     ./digits digits.csv.gz            by hand: 20 epochs
 *     dl run asha.conf                  as a sweep
 *
 * Saves a checkpoint after each epoch, continues from the newest one, and ends
 * within a batch when it is asked to.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurmdl.h>

#include "data.h"

/* dl-trainer(7): 78 is a failure that another attempt would not fix. */
enum { EPOCHS_BY_HAND = 20, NO_RETRY = 78 };

static int stop_asked (void *run)
{
    return slurmdl_should_stop (run);
}

/* One epoch; returns 1 if it was cut short. */
static int epoch (struct slurmdl *run, struct mlp *m, const struct data *all, const struct sgd *sgd,
                  int64_t number)
{
    uint64_t seed = ((uint64_t)slurmdl_seed (run) << 32) + (uint64_t)number;
    struct data train, valid;
    double loss, accuracy;

    data_split (all, &train, &valid);
    if (mlp_epoch (m, &train, sgd, seed, stop_asked, run, &loss))
        return 1;
    accuracy = mlp_accuracy (m, &valid);
    slurmdl_log (run, "training_loss", number, loss);
    slurmdl_log (run, "accuracy", number, accuracy);
    printf ("epoch %" PRId64 " loss %.5f accuracy %.4f\n", number, loss, accuracy);
    fflush (stdout);
    return 0;
}

/* Returns the exit status. */
static int train (struct slurmdl *run, struct mlp *m, const struct data *all)
{
    struct sgd sgd = {
        .lr = (float)slurmdl_float (run, "lr", 0.1),
        .momentum = (float)slurmdl_float (run, "momentum", 0.9),
        .weight_decay = (float)slurmdl_float (run, "weight_decay", 1e-5),
        .batch = (size_t)slurmdl_int (run, "batch", 32),
    };
    uint64_t n = m->n;
    int64_t at = 0, end = slurmdl_length (run);
    struct slurmdl_error err;
    int rv, status = EXIT_FAILURE;

    slurmdl_protect (run, "model/weights", SLURMDL_F32, 1, &n, m->weights);
    slurmdl_protect (run, "optimizer/velocity", SLURMDL_F32, 1, &n, m->velocity);
    rv = slurmdl_restore (run, &at, &err);
    if (rv < 0 && errno == EBADMSG)
        status = NO_RETRY;
    if (rv >= 0 && *err.text) /* of a checkpoint that was passed over */
        fprintf (stderr, "digits: %s\n", err.text);
    if (rv > 0)
        printf ("restored epoch %" PRId64 "\n", at);
    if (end == INT64_MAX)
        end = at + EPOCHS_BY_HAND;
    while (rv >= 0 && at < end && epoch (run, m, all, &sgd, at + 1) == 0)
        rv = slurmdl_save (run, ++at, &err);
    if (rv < 0)
        fprintf (stderr, "digits: %s\n", err.text);
    return rv < 0 ? status : EXIT_SUCCESS;
}

int main (int argc, char **argv)
{
    struct slurmdl_error err;
    struct slurmdl *run = slurmdl_open (NULL, &err);
    struct mlp m = { 0 };
    struct data all;
    int rv = EXIT_FAILURE;

    if (!run) {
        fprintf (stderr, "digits: %s\n", err.text);
        return rv;
    }
    if (data_read (argc > 1 ? argv[1] : "digits.csv.gz", &all) == 0
        && mlp_init (&m, (int)slurmdl_int (run, "hidden", 32),
                     !strcmp (slurmdl_string (run, "activation", "relu"), "tanh") ? TANH : RELU,
                     slurmdl_seed (run))
               == 0)
        rv = train (run, &m, &all);
    slurmdl_close (run);
    mlp_free (&m);
    data_free (&all);
    return rv;
}
