/* SPDX-License-Identifier: Apache-2.0 */
/* An embedding and a logistic layer, trained over a parameter server.
 *
 *     cc embedding.c $(pkg-config --cflags --libs slurmdl-ps) -lz -lm \
 *         -o embedding
 *     srun --dl=ps --dl-roles=ps:1,worker:* -n4 ./embedding digits.csv.gz
 *
 * Each of the 64 pixels of a digit is a word: its place and its grey value.
 * The rows of a picture's words are added and go through a logistic layer.
 * The rows live in a sparse table, the layer in a dense one; each worker
 * trains on its part of the pictures, and by default waits for nobody
 * (DL_PS_MODE=sync, bounded).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <slurmdl_ps.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    WORDS = 64,
    GREYS = 5, /* of the data's 17 */
    CLASSES = 10,
    WIDTH = 16,
    BATCH = 16,
    EPOCHS = 12,
    PICTURES = 4096,
    LAYER = WIDTH * CLASSES + CLASSES
};

struct picture {
    uint64_t words[WORDS];
    int digit;
};

static struct picture pictures[PICTURES];

static size_t read_pictures (const char *path)
{
    gzFile f = gzopen (path, "rb");
    char line[1024];
    char *save;
    size_t n = 0;

    while (f && n < PICTURES && gzgets (f, line, sizeof (line))) {
        char *field = strtok_r (line, ",", &save);
        int i;
        for (i = 0; i < WORDS && field; i++) {
            pictures[n].words[i] = (uint64_t)(i * GREYS + atoi (field) / 4);
            field = strtok_r (NULL, ",", &save);
        }
        if (!field)
            continue;
        pictures[n++].digit = atoi (field);
    }
    if (f)
        gzclose (f);
    return n;
}

/* The sum of a picture's rows, and the probabilities of the digits. */
static void
forward (const float (*rows)[WIDTH], const float *layer, float *sum, float *p)
{
    float most = -INFINITY;
    float all = 0;

    memset (sum, 0, WIDTH * sizeof (*sum));
    for (int i = 0; i < WORDS; i++)
        for (int j = 0; j < WIDTH; j++)
            sum[j] += rows[i][j];
    for (int c = 0; c < CLASSES; c++) {
        p[c] = layer[WIDTH * CLASSES + c];
        for (int j = 0; j < WIDTH; j++)
            p[c] += sum[j] * layer[c * WIDTH + j];
        most = p[c] > most ? p[c] : most;
    }
    for (int c = 0; c < CLASSES; c++)
        all += p[c] = expf (p[c] - most);
    for (int c = 0; c < CLASSES; c++)
        p[c] /= all;
}

/* Adds to 'dlayer', fills 'drows'. */
static void backward (const float *sum,
                      const float *p,
                      const float *layer,
                      int digit,
                      float *dlayer,
                      float (*drows)[WIDTH])
{
    float dsum[WIDTH] = { 0 };

    for (int c = 0; c < CLASSES; c++) {
        float d = (p[c] - (c == digit)) / BATCH;
        dlayer[WIDTH * CLASSES + c] += d;
        for (int j = 0; j < WIDTH; j++) {
            dlayer[c * WIDTH + j] += d * sum[j];
            dsum[j] += d * layer[c * WIDTH + j];
        }
    }
    for (int i = 0; i < WORDS; i++)
        memcpy (drows[i], dsum, sizeof (dsum));
}

struct model {
    struct slurmdl_ps *ps;
    int rows, layer; /* tables */
};

/* One batch: an iteration. */
static int
step (struct model *m, const size_t *batch, struct slurmdl_error *err)
{
    static uint64_t ids[BATCH * WORDS];
    static float rows[BATCH * WORDS][WIDTH], drows[BATCH * WORDS][WIDTH];
    float layer[LAYER], dlayer[LAYER] = { 0 };
    float sum[WIDTH], p[CLASSES];
    int64_t ticket;

    for (int b = 0; b < BATCH; b++)
        memcpy (ids + b * WORDS,
                pictures[batch[b]].words,
                sizeof (pictures->words));
    /* both questions are on their way before the first answer comes */
    if (slurmdl_ps_pull (m->ps, m->layer, layer, &ticket, err) < 0
        || slurmdl_ps_pull_rows (
               m->ps, m->rows, ids, BATCH * WORDS, rows[0], NULL, err)
               < 0
        || slurmdl_ps_wait (m->ps, ticket, err) < 0)
        return -1;
    for (int b = 0; b < BATCH; b++) {
        forward ((const float (*)[WIDTH])rows + b * WORDS, layer, sum, p);
        backward (
            sum, p, layer, pictures[batch[b]].digit, dlayer, drows + b * WORDS);
    }
    if (slurmdl_ps_push_rows (
            m->ps, m->rows, ids, BATCH * WORDS, drows[0], NULL, err)
            < 0
        || slurmdl_ps_push (m->ps, m->layer, dlayer, NULL, err) < 0)
        return -1;
    return slurmdl_ps_clock (m->ps, err);
}

/* Share of right answers among pictures from 'first' on. */
static double
accuracy (struct model *m, size_t first, size_t n, struct slurmdl_error *err)
{
    float rows[WORDS][WIDTH], layer[LAYER], sum[WIDTH], p[CLASSES];
    size_t right = 0;

    if (slurmdl_ps_pull (m->ps, m->layer, layer, NULL, err) < 0)
        return -1;
    for (size_t i = first; i < n; i++) {
        int best = 0;
        if (slurmdl_ps_pull_rows (
                m->ps, m->rows, pictures[i].words, WORDS, rows[0], NULL, err)
            < 0)
            return -1;
        forward ((const float (*)[WIDTH])rows, layer, sum, p);
        for (int c = 1; c < CLASSES; c++)
            best = p[c] > p[best] ? c : best;
        right += best == pictures[i].digit;
    }
    return (double)right / (double)(n - first);
}

static int make_tables (struct model *m, struct slurmdl_error *err)
{
    struct slurmdl_ps_table rows = { .name = "words",
                                     .row = WIDTH,
                                     .rule = SLURMDL_PS_ADAGRAD,
                                     .rate = 0.1,
                                     .low = -0.05,
                                     .high = 0.05 };
    struct slurmdl_ps_table layer = {
        .name = "layer", .n = LAYER, .rule = SLURMDL_PS_ADAGRAD, .rate = 0.1
    };
    float initial[LAYER];

    for (int i = 0; i < LAYER; i++)
        initial[i] = 0.3F * sinf ((float)(7 * i));
    m->rows = slurmdl_ps_table (m->ps, &rows, NULL, err);
    m->layer = slurmdl_ps_table (m->ps, &layer, initial, err);
    return m->rows < 0 || m->layer < 0 ? -1 : 0;
}

/* The first four fifths train; worker w takes every workers-th of them. */
static int train (struct slurmdl_ps *ps, size_t n, struct slurmdl_error *err)
{
    struct model m = { .ps = ps };
    size_t training = n * 4 / 5;
    size_t workers = (size_t)slurmdl_ps_workers (ps);
    size_t mine = training / workers;
    int64_t end = (int64_t)(EPOCHS * mine / BATCH);
    size_t batch[BATCH];
    double right;

    if (make_tables (&m, err) < 0)
        return -1;
    for (int64_t t = slurmdl_ps_iteration (ps); t < end; t++) {
        for (size_t b = 0; b < BATCH; b++)
            batch[b] = ((size_t)t * BATCH + b) % mine * workers
                       + (size_t)slurmdl_ps_index (ps);
        if (step (&m, batch, err) < 0)
            return -1;
    }
    if ((right = accuracy (&m, training, n, err)) < 0)
        return -1;
    printf ("worker %ld: %" PRId64 " iterations, accuracy %.4f\n",
            slurmdl_ps_index (ps),
            slurmdl_ps_iteration (ps),
            right);
    return 0;
}

int main (int argc, char **argv)
{
    struct slurmdl_ps_options o = { .mode = getenv ("DL_PS_MODE")
                                                ? 0
                                                : SLURMDL_PS_ASYNC };
    struct slurmdl_error err;
    struct slurmdl_ps *ps = slurmdl_ps_open (&o, &err);
    bool server = ps && slurmdl_ps_is_server (ps);
    size_t n;
    int rv = -1;

    if (!ps)
        goto out;
    if (server) {
        rv = slurmdl_ps_serve (ps, &err);
        goto out;
    }
    if ((n = read_pictures (argc > 1 ? argv[1] : "digits.csv.gz")) > 100)
        rv = train (ps, n, &err);
    else
        snprintf (err.text, sizeof (err.text), "no pictures to train on");
out:
    if (rv < 0)
        fprintf (stderr, "embedding: %s\n", err.text);
    return slurmdl_ps_close (ps) < 0 || rv < 0;
}
