/* SPDX-License-Identifier: Apache-2.0 */
/* Small floating-point formats, implemented by definition. */
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

/* Returns NULL if the type is not such a format. */
const struct format *format_of (enum slurmdl_type type);

/* The number of codes; the value of a code; and the code nearest to a number,
 * ties to even.
 */
uint32_t codes (const struct format *f);
double decode (const struct format *f, uint32_t code);
uint32_t encode (const struct format *f, double x);

/* Get or set the i-th code of an array. */
uint32_t code_at (const struct format *f, const void *data, size_t i);
void code_put (const struct format *f, void *data, size_t i, uint32_t x);

/* Assert that both have the same bits, or are NaN. */
void assert_code (const struct format *f, uint32_t got, uint32_t want, double of);
void same_double (double got, double want);

/* The next random number. */
uint64_t draw (uint64_t *seed);
