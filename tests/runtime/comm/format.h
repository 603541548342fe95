/* SPDX-License-Identifier: Apache-2.0 */
/* Small floating-point numbers, by the book. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/slurmdl_comm.h"

struct format {
    enum slurmdl_type type;
    int e, m, bias;
    double most;
    uint32_t infinity, nan; /* E4M3 has no infinity */
};

enum { FORMATS = 4 };
extern const struct format formats[FORMATS];

/* NULL: the type has none. */
const struct format *format_of (enum slurmdl_type type);

/* How many codes there are; what one stands for; the nearest code of a number,
 * to even between two.
 */
uint32_t codes (const struct format *f);
double decode (const struct format *f, uint32_t code);
uint32_t encode (const struct format *f, double x);

/* The code in an array. */
uint32_t code_at (const struct format *f, const void *data, size_t i);
void code_put (const struct format *f, void *data, size_t i, uint32_t x);

/* Equal bits, or both NaN. */
void assert_code (const struct format *f, uint32_t got, uint32_t want, double of);
void same_double (double got, double want);

/* Numbers by lot. */
uint64_t draw (uint64_t *seed);
