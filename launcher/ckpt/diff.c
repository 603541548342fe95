/* SPDX-License-Identifier: Apache-2.0 */
/* dl ckpt diff: how two checkpoints differ. */
#include "launcher/ckpt/diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "launcher/ckpt/open.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/say.h"
#include "runtime/base/error.h"

/* A float with so many bits of exponent and mantissa. */
static double small_float (unsigned bits, int exponent, int mantissa, bool ieee)
{
    int e = (int)(bits >> mantissa) & ((1 << exponent) - 1);
    int m = (int)bits & ((1 << mantissa) - 1);
    int bias = (1 << (exponent - 1)) - 1;
    double sign = bits >> (exponent + mantissa) & 1 ? -1 : 1;
    int top = (1 << exponent) - 1;

    if (e == top && ieee)
        return m ? NAN : sign * HUGE_VAL;
    if (e == top && m == (1 << mantissa) - 1)
        return NAN;
    if (e == 0)
        return sign * ldexp (m, 1 - bias - mantissa);
    return sign * ldexp (m + (1 << mantissa), e - bias - mantissa);
}

#define AS(ctype)                                                              \
    {                                                                          \
        ctype v;                                                               \
        memcpy (&v, p + i * sizeof (v), sizeof (v));                           \
        return (double)v;                                                      \
    }

/* Number 'i'; a complex one is two. */
static double number (enum slurmdl_type type, const unsigned char *p, size_t i)
{
    uint16_t half;

    memcpy (&half,
            p + (slurmdl_type_size (type) == 2 ? i * 2 : 0),
            slurmdl_type_size (type) == 2 ? 2 : 0);
    switch (type) {
    case SLURMDL_I8:
        AS (int8_t)
    case SLURMDL_U8:
    case SLURMDL_BOOL:
        AS (uint8_t)
    case SLURMDL_I16:
        AS (int16_t)
    case SLURMDL_U16:
        AS (uint16_t)
    case SLURMDL_I32:
        AS (int32_t)
    case SLURMDL_U32:
        AS (uint32_t)
    case SLURMDL_I64:
        AS (int64_t)
    case SLURMDL_U64:
        AS (uint64_t)
    case SLURMDL_F32:
    case SLURMDL_C64:
        AS (float)
    case SLURMDL_F64:
    case SLURMDL_C128:
        AS (double)
    case SLURMDL_F16:
        return small_float (half, 5, 10, true);
    case SLURMDL_BF16:
        return small_float (half, 8, 7, true);
    case SLURMDL_F8_E4M3:
        return small_float (p[i], 4, 3, false);
    case SLURMDL_F8_E5M2:
        return small_float (p[i], 5, 2, true);
    }
    return NAN;
}

/* The largest difference; NaN against a number is infinite. */
static double largest (const struct slurmdl_tensor *t,
                       const unsigned char *a,
                       const unsigned char *b)
{
    bool pairs = t->type == SLURMDL_C64 || t->type == SLURMDL_C128;
    size_t n = t->bytes / slurmdl_type_size (t->type) * (pairs ? 2 : 1);
    double most = 0;

    for (size_t i = 0; i < n; i++) {
        double x = number (t->type, a, i);
        double y = number (t->type, b, i);
        double d = x == y || (isnan (x) && isnan (y)) ? 0 : fabs (x - y);
        if (isnan (d))
            d = HUGE_VAL;
        if (d > most)
            most = d;
    }
    return most;
}

enum difference { SAME, VALUES, TYPE, SHAPE, ONLY_FIRST, ONLY_SECOND };

static const char *const texts[] = {
    [SAME] = "same",
    [VALUES] = "values",
    [TYPE] = "type",
    [SHAPE] = "shape",
    [ONLY_FIRST] = "only in the first",
    [ONLY_SECOND] = "only in the second",
};

static int compare_values (struct slurmdl_checkpoint *a,
                           struct slurmdl_checkpoint *b,
                           const struct slurmdl_tensor *t,
                           double *most,
                           struct slurmdl_error *err)
{
    unsigned char *x = malloc (t->bytes + 1);
    unsigned char *y = malloc (t->bytes + 1);
    int rv = -1;

    if (!x || !y)
        errorf (err, "out of memory");
    else if (slurmdl_checkpoint_read (a, t->name, NULL, NULL, x, err) == 0
             && slurmdl_checkpoint_read (b, t->name, NULL, NULL, y, err) == 0) {
        rv = memcmp (x, y, t->bytes) ? VALUES : SAME;
        if (rv == VALUES)
            *most = largest (t, x, y);
    }
    free (x);
    free (y);
    return rv;
}

static int compare (struct slurmdl_checkpoint *a,
                    struct slurmdl_checkpoint *b,
                    const struct slurmdl_tensor *t,
                    double *most,
                    struct slurmdl_error *err)
{
    int64_t i = slurmdl_checkpoint_find_tensor (b, t->name);
    struct slurmdl_tensor u;

    *most = 0;
    if (i < 0 || slurmdl_checkpoint_info (b, (size_t)i, &u) < 0)
        return ONLY_FIRST;
    if (u.type != t->type)
        return TYPE;
    if (u.ndims != t->ndims || memcmp (u.dims, t->dims, sizeof (u.dims)))
        return SHAPE;
    return compare_values (a, b, t, most, err);
}

static void say (const char *name, int d, double most, json_t *list)
{
    json_t *v;

    if (d == SAME)
        return;
    if (list) {
        v = json_pack ("{s:s, s:s}", "name", name, "difference", texts[d]);
        if (d == VALUES)
            json_object_set_new (v,
                                 "largest",
                                 isfinite (most) ? json_real (most)
                                                 : json_string ("inf"));
        json_array_append_new (list, v);
    } else if (d == VALUES)
        printf ("%s: values differ by at most %g\n", name, most);
    else if (d == TYPE || d == SHAPE)
        printf ("%s: another %s\n", name, texts[d]);
    else
        printf ("%s: %s\n", name, texts[d]);
}

/* The number of differences; -1 on an error. */
static long compare_all (struct slurmdl_checkpoint *a,
                         struct slurmdl_checkpoint *b,
                         json_t *list,
                         struct slurmdl_error *err)
{
    struct slurmdl_tensor t;
    double most;
    long n = 0;

    for (size_t i = 0; slurmdl_checkpoint_info (a, i, &t) == 0; i++) {
        int d = compare (a, b, &t, &most, err);
        if (d < 0)
            return -1;
        say (t.name, d, most, list);
        n += d != SAME;
    }
    for (size_t i = 0; slurmdl_checkpoint_info (b, i, &t) == 0; i++)
        if (slurmdl_checkpoint_find_tensor (a, t.name) < 0) {
            say (t.name, ONLY_SECOND, 0, list);
            n++;
        }
    return n;
}

int ckpt_diff (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    int rv = 0;
    struct slurmdl_checkpoint *a = ckpt_open (st->args[1], &rv);
    struct slurmdl_checkpoint *b = a ? ckpt_open (st->args[2], &rv) : NULL;
    json_t *list = st->json ? json_array () : NULL;
    long n = 0;

    if (b && (n = compare_all (a, b, list, &err)) < 0)
        rv = fail (&err);
    if (b && n >= 0) {
        rv = n ? EXIT_FAILED : EXIT_OK;
        if (list
            && (json_put (list, stdout, JSON_INDENT (2)) < 0 || puts ("") < 0))
            rv = EXIT_IO;
    }
    json_decref (list);
    slurmdl_checkpoint_close (a);
    slurmdl_checkpoint_close (b);
    return rv;
}
