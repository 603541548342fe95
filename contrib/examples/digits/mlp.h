/* SPDX-License-Identifier: Apache-2.0 */
/* A multilayer perceptron with one hidden layer, trained by SGD. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PIXELS = 64, CLASSES = 10 };

enum activation { RELU, TANH };

struct data {
    size_t n;
    float (*x)[PIXELS]; /* 0 .. 1 */
    int *y;
};

struct mlp {
    int hidden;
    enum activation activation;
    size_t n;        /* number of weights */
    float *weights;  /* input to hidden, its bias, hidden to output, its bias */
    float *velocity; /* of the momentum */
    float *gradient;
};

struct sgd {
    float lr, momentum, weight_decay;
    size_t batch; /* of all ranks together */
    /* Of several ranks each takes every size-th image of a batch, from 'rank'
     * on, and 'sum' adds up the gradients of all (its 'arg' is that of 'stop');
     * a failure of it ends the pass.  size 0: this process alone. */
    size_t rank, size;
    int (*sum) (void *arg, float *gradient, size_t n);
};

/* Weights drawn from N(0, 2/fan-in) by 'seed'.  Returns 0, or -1 (ENOMEM). */
int mlp_init (struct mlp *m, int hidden, enum activation a, uint64_t seed);
void mlp_free (struct mlp *m);

/* One pass over 'd' in an order that 'seed' gives.  'stop' is asked before
 * each batch; if it returns nonzero the pass ends early and 1 is returned.
 * '*loss' is the mean cross-entropy of the images that this rank took.
 */
int mlp_epoch (struct mlp *m, const struct data *d, const struct sgd *sgd, uint64_t seed,
               int (*stop) (void *arg), void *arg, double *loss);

/* The parts of an epoch: the order that 'seed' gives to n images; add the
 * gradient of image 'i' to m->gradient ('work': 2 * m->hidden numbers) and
 * return its cross-entropy; update the weights from 'begin' to 'end' by a
 * gradient that is the sum over 'batch' images.
 */
void mlp_order (size_t *order, size_t n, uint64_t seed);
double mlp_gradient (struct mlp *m, const struct data *d, size_t i, float *work);
void mlp_update (struct mlp *m, const struct sgd *sgd, size_t batch, size_t begin, size_t end);

/* Part of 'd' that is classified rightly. */
double mlp_accuracy (const struct mlp *m, const struct data *d);
