/* SPDX-License-Identifier: Apache-2.0 */
/* What is logged beside scalars: how it lies in /bytes, and back. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/base/utf8.h"
#include "runtime/metrics/metrics.h"
#include "runtime/run/run.h"

struct histogram_head {
    uint64_t nbins;
    double min, max, mean, sd;
    uint64_t n, nan, infinite;
    /* then edges[nbins + 1], counts[nbins] */
};

struct image_head {
    uint32_t width, height, channels, reserved;
    /* then the pixels */
};

enum { CHANNELS_MAX = 4 };

static int invalid (void)
{
    errno = EINVAL;
    return -1;
}

static int put_text (struct slurmdl_metrics *m, const char *name, int64_t step,
                     enum slurmdl_kind kind, const char *text)
{
    struct item *item;

    if (!text || strnlen (text, RECORD_MAX) == RECORD_MAX || !is_utf8 (text))
        return invalid ();
    if (!(item = item_create (m, name, step, kind, strlen (text))))
        return -1;
    memcpy (item->data, text, item->record.bytes);
    item_put (m, item);
    return 0;
}

int metrics_event (struct slurmdl_metrics *m, const char *kind, int64_t step, const char *json)
{
    return put_text (m, kind, step, SLURMDL_EVENT, json);
}

int slurmdl_log_text (struct slurmdl *run, const char *name, int64_t step, const char *text)
{
    return run->metrics ? put_text (run->metrics, name, step, SLURMDL_TEXT, text) : 0;
}

int slurmdl_log_vector (struct slurmdl *run, const char *name, int64_t step, size_t n,
                        const double *values)
{
    struct item *item;

    if (!run->metrics)
        return 0;
    if (n == 0 || n > RECORD_MAX / sizeof (*values) || !values)
        return invalid ();
    item = item_create (run->metrics, name, step, SLURMDL_VECTOR, n * sizeof (*values));
    if (!item)
        return -1;
    memcpy (item->data, values, item->record.bytes);
    item_put (run->metrics, item);
    return 0;
}

static size_t histogram_size (uint64_t nbins)
{
    return sizeof (struct histogram_head) + (2 * nbins + 1) * 8;
}

static bool ascend (const double *edges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(edges[i] < edges[i + 1]))
            return false;
    return true;
}

int metrics_histogram (struct slurmdl_metrics *m, const char *name, int64_t step,
                       const struct slurmdl_histogram *h)
{
    struct histogram_head head = { h->nbins, h->min, h->max, h->mean,
                                   h->sd,    h->n,   h->nan, h->infinite };
    size_t edges = (h->nbins + 1) * sizeof (*h->edges);
    struct item *item = item_create (m, name, step, SLURMDL_HISTOGRAM, histogram_size (h->nbins));

    if (!item)
        return -1;
    memcpy (item->data, &head, sizeof (head));
    memcpy (item->data + sizeof (head), h->edges, edges);
    memcpy (item->data + sizeof (head) + edges, h->counts, h->nbins * sizeof (*h->counts));
    item_put (m, item);
    return 0;
}

int slurmdl_log_histogram (struct slurmdl *run, const char *name, int64_t step, size_t nbins,
                           const double *edges, const uint64_t *counts)
{
    struct slurmdl_histogram h = { .nbins = nbins,
                                   .min = NAN,
                                   .max = NAN,
                                   .mean = NAN,
                                   .sd = NAN,
                                   .edges = edges,
                                   .counts = counts };

    if (!run->metrics)
        return 0;
    if (nbins == 0 || nbins > RECORD_MAX / 16 || !edges || !counts || !ascend (edges, nbins))
        return invalid ();
    for (size_t i = 0; i < nbins; i++)
        h.n += counts[i];
    return metrics_histogram (run->metrics, name, step, &h);
}

int slurmdl_record_histogram (const struct slurmdl_record *r, struct slurmdl_histogram *h)
{
    const char *data = r->data;
    struct histogram_head head;

    if (r->kind != SLURMDL_HISTOGRAM || r->size < sizeof (head))
        return invalid ();
    memcpy (&head, data, sizeof (head));
    if (head.nbins == 0 || head.nbins > r->size / 16 || r->size != histogram_size (head.nbins))
        return invalid ();
    data += sizeof (head);
    *h = (struct slurmdl_histogram){
        head.nbins,
        head.min,
        head.max,
        head.mean,
        head.sd,
        head.n,
        head.nan,
        head.infinite,
        (const double *)(const void *)data,
        (const uint64_t *)(const void *)(data + (head.nbins + 1) * 8),
    };
    return 0;
}

static bool image_size (uint64_t width, uint64_t height, uint64_t channels, size_t *size)
{
    if (width == 0 || width > RECORD_MAX || height == 0 || height > RECORD_MAX || channels == 0
        || channels > CHANNELS_MAX)
        return false;
    *size = sizeof (struct image_head) + width * height * channels;
    return *size <= RECORD_MAX;
}

int slurmdl_log_image (struct slurmdl *run, const char *name, int64_t step, unsigned width,
                       unsigned height, unsigned channels, const unsigned char *pixels)
{
    struct image_head head = { width, height, channels, 0 };
    struct item *item;
    size_t size;

    if (!run->metrics)
        return 0;
    if (!pixels || !image_size (width, height, channels, &size))
        return invalid ();
    item = item_create (run->metrics, name, step, SLURMDL_IMAGE, size);
    if (!item)
        return -1;
    memcpy (item->data, &head, sizeof (head));
    memcpy (item->data + sizeof (head), pixels, size - sizeof (head));
    item_put (run->metrics, item);
    return 0;
}

int slurmdl_record_image (const struct slurmdl_record *r, struct slurmdl_image *image)
{
    const unsigned char *data = r->data;
    struct image_head head;
    size_t size;

    if (r->kind != SLURMDL_IMAGE || r->size < sizeof (head))
        return invalid ();
    memcpy (&head, data, sizeof (head));
    if (!image_size (head.width, head.height, head.channels, &size) || size != r->size)
        return invalid ();
    *image = (struct slurmdl_image){ head.width, head.height, head.channels, data + sizeof (head) };
    return 0;
}
