/* SPDX-License-Identifier: Apache-2.0 */
/* Records other than scalars: how they are stored in /bytes, and how to read them. */
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

static int invalid_record (void)
{
    errno = EINVAL;
    return -1;
}

static int put_text_record (struct slurmdl_metrics *m, const char *name, int64_t step,
                            enum slurmdl_kind kind, const char *text)
{
    struct item *item;

    if (!text || strnlen (text, RECORD_MAX) == RECORD_MAX || !is_utf8 (text))
        return invalid_record ();
    if (!(item = item_create (m, name, step, kind, strlen (text))))
        return -1;
    memcpy (item->data, text, item->record.bytes);
    item_put (m, item);
    return 0;
}

int metrics_event (struct slurmdl_metrics *m, const char *kind, int64_t step, const char *json)
{
    return put_text_record (m, kind, step, SLURMDL_EVENT, json);
}

int slurmdl_log_text (struct slurmdl *run, const char *name, int64_t step, const char *text)
{
    return run->metrics ? put_text_record (run->metrics, name, step, SLURMDL_TEXT, text) : 0;
}

int slurmdl_log_vector (struct slurmdl *run, const char *name, int64_t step, size_t n,
                        const double *values)
{
    struct item *item;

    if (!run->metrics)
        return 0;
    if (n == 0 || n > RECORD_MAX / sizeof (*values) || !values)
        return invalid_record ();
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

static int metrics_histogram (struct slurmdl_metrics *m, const char *name, int64_t step,
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
        return invalid_record ();
    for (size_t i = 0; i < nbins; i++)
        h.n += counts[i];
    return metrics_histogram (run->metrics, name, step, &h);
}

int slurmdl_record_histogram (const struct slurmdl_record *r, struct slurmdl_histogram *h)
{
    const char *data = r->data;
    struct histogram_head head;

    if (r->kind != SLURMDL_HISTOGRAM || r->size < sizeof (head))
        return invalid_record ();
    memcpy (&head, data, sizeof (head));
    if (head.nbins == 0 || head.nbins > r->size / 16 || r->size != histogram_size (head.nbins))
        return invalid_record ();
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
        return invalid_record ();
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
        return invalid_record ();
    memcpy (&head, data, sizeof (head));
    if (!image_size (head.width, head.height, head.channels, &size) || size != r->size)
        return invalid_record ();
    *image = (struct slurmdl_image){ head.width, head.height, head.channels, data + sizeof (head) };
    return 0;
}

enum { BINS = 64, BLOCK = 1024 };

/* Decode sign, exponent and mantissa of a small float.  If 'all', the highest
 * exponent stands for infinity and NaN.
 */
static double small_float (unsigned bits, int exponent, int mantissa, bool all)
{
    int bias = (1 << (exponent - 1)) - 1;
    int e = (int)(bits >> mantissa & ((1u << exponent) - 1));
    unsigned m = bits & ((1u << mantissa) - 1);
    double sign = bits >> (exponent + mantissa) & 1 ? -1 : 1;

    if (all && e == (1 << exponent) - 1)
        return m ? (double)NAN : sign * (double)INFINITY;
    if (e == 0)
        return sign * ldexp (m, 1 - bias - mantissa);
    return sign * ldexp (m + (double)(1u << mantissa), e - bias - mantissa);
}

static double half_float (uint16_t v)
{
    return small_float (v, 5, 10, true);
}

static double bfloat (uint16_t v)
{
    uint32_t bits = (uint32_t)v << 16;
    float f;

    memcpy (&f, &bits, sizeof (f));
    return (double)f;
}

/* This type has no infinity; its only special values are two NaNs. */
static double e4m3 (uint8_t v)
{
    return (v & 0x7f) == 0x7f ? (double)NAN : small_float (v, 4, 3, false);
}

static double e5m2 (uint8_t v)
{
    return small_float (v, 5, 2, true);
}

#define PLAIN(v) ((double)(v))
/* The arrays may be unaligned. */
#define CONVERTER(name, type, number)                                                              \
    static void name (const void *from, size_t n, double *to)                                      \
    {                                                                                              \
        type v;                                                                                    \
        for (size_t i = 0; i < n; i++) {                                                           \
            memcpy (&v, (const char *)from + i * sizeof (v), sizeof (v));                          \
            to[i] = number (v);                                                                    \
        }                                                                                          \
    }
#define ABSOLUTE(name, type)                                                                       \
    static void name (const void *from, size_t n, double *to)                                      \
    {                                                                                              \
        type v[2];                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                           \
            memcpy (v, (const char *)from + i * sizeof (v), sizeof (v));                           \
            to[i] = hypot ((double)v[0], (double)v[1]);                                            \
        }                                                                                          \
    }
/* clang-format off */
CONVERTER (from_i8,   int8_t,   PLAIN)
CONVERTER (from_u8,   uint8_t,  PLAIN)
CONVERTER (from_i16,  int16_t,  PLAIN)
CONVERTER (from_u16,  uint16_t, PLAIN)
CONVERTER (from_i32,  int32_t,  PLAIN)
CONVERTER (from_u32,  uint32_t, PLAIN)
CONVERTER (from_i64,  int64_t,  PLAIN)
CONVERTER (from_u64,  uint64_t, PLAIN)
CONVERTER (from_f32,  float,    PLAIN)
CONVERTER (from_f64,  double,   PLAIN)
CONVERTER (from_f16,  uint16_t, half_float)
CONVERTER (from_bf16, uint16_t, bfloat)
CONVERTER (from_e4m3, uint8_t,  e4m3)
CONVERTER (from_e5m2, uint8_t,  e5m2)
ABSOLUTE (from_c64,  float)
ABSOLUTE (from_c128, double)

static const struct {
    void (*convert) (const void *from, size_t n, double *to);
    size_t size;
} record_types[] = {
    [SLURMDL_I8] = { from_i8, 1 },     [SLURMDL_U8] = { from_u8, 1 },
    [SLURMDL_I16] = { from_i16, 2 },   [SLURMDL_U16] = { from_u16, 2 },
    [SLURMDL_I32] = { from_i32, 4 },   [SLURMDL_U32] = { from_u32, 4 },
    [SLURMDL_I64] = { from_i64, 8 },   [SLURMDL_U64] = { from_u64, 8 },
    [SLURMDL_F16] = { from_f16, 2 },   [SLURMDL_BF16] = { from_bf16, 2 },
    [SLURMDL_F32] = { from_f32, 4 },   [SLURMDL_F64] = { from_f64, 8 },
    [SLURMDL_C64] = { from_c64, 8 },   [SLURMDL_C128] = { from_c128, 16 },
    [SLURMDL_BOOL] = { from_u8, 1 },   [SLURMDL_F8_E4M3] = { from_e4m3, 1 },
    [SLURMDL_F8_E5M2] = { from_e5m2, 1 },
};
/* clang-format on */
enum { TYPES = sizeof (record_types) / sizeof (*record_types) };

struct sample_summary {
    double min, max, sum, mean, squares;
    uint64_t finite, nan, infinite;
    uint64_t counts[BINS];
};

static void find_range (struct sample_summary *s, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite (v[i])) {
            s->nan += isnan (v[i]) != 0;
            s->infinite += isinf (v[i]) != 0;
            continue;
        }
        s->min = s->finite && s->min < v[i] ? s->min : v[i];
        s->max = s->finite && s->max > v[i] ? s->max : v[i];
        s->sum += v[i];
        s->finite++;
    }
}

/* Divide by two first, because the difference of two large numbers may overflow. */
static void count_bins (struct sample_summary *s, const double *v, size_t n)
{
    double scale = s->max > s->min ? BINS / (s->max / 2 - s->min / 2) : 0;

    for (size_t i = 0; i < n; i++) {
        double d = v[i] - s->mean;
        double bin;
        if (!isfinite (v[i]))
            continue;
        s->squares += d * d;
        bin = scale > 0 ? (v[i] / 2 - s->min / 2) * scale : BINS / 2;
        s->counts[bin < BINS - 1 ? (int)bin : BINS - 1]++;
    }
}

static void each_chunk (struct sample_summary *s,
                        void (*f) (struct sample_summary *s, const double *v, size_t n),
                        enum slurmdl_type type, size_t n, const void *values)
{
    const char *p = values;
    double block[BLOCK];

    while (n > 0) {
        size_t k = n < BLOCK ? n : BLOCK;
        record_types[type].convert (p, k, block);
        f (s, block, k);
        p += k * record_types[type].size;
        n -= k;
    }
}

/* If all values are equal, put them into the middle bin. */
static void set_edges (const struct sample_summary *s, double *edges)
{
    double min = s->finite ? s->min : 0;
    double max = s->finite ? s->max : 1;
    double margin = fabs (min) > 1 ? fabs (min) / 2 : 0.5;

    if (min == max) {
        min -= margin;
        max += margin;
    }
    for (int i = 0; i <= BINS; i++)
        edges[i] = min * (1 - (double)i / BINS) + max * ((double)i / BINS);
}

static int put_summary (struct slurmdl_metrics *m, const char *name, int64_t step,
                        const struct sample_summary *s, size_t n)
{
    double edges[BINS + 1];
    struct slurmdl_histogram h = { BINS, NAN,    NAN,         NAN,   NAN,
                                   n,    s->nan, s->infinite, edges, s->counts };

    if (s->finite) {
        h.min = s->min;
        h.max = s->max;
        h.mean = s->mean;
        h.sd = sqrt (s->squares / (double)s->finite);
    }
    set_edges (s, edges);
    return metrics_histogram (m, name, step, &h);
}

int slurmdl_log_samples (struct slurmdl *run, const char *name, int64_t step,
                         enum slurmdl_type type, size_t n, const void *values)
{
    struct sample_summary s = { 0 };

    if (!run->metrics)
        return 0;
    if ((size_t)type >= TYPES || (n > 0 && !values)) {
        errno = EINVAL;
        return -1;
    }
    each_chunk (&s, find_range, type, n, values);
    s.mean = s.finite ? s.sum / (double)s.finite : 0;
    each_chunk (&s, count_bins, type, n, values);
    return put_summary (run->metrics, name, step, &s, n);
}
