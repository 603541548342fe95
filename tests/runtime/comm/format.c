/* SPDX-License-Identifier: Apache-2.0 */
/* Small floating-point formats, implemented by definition. */
#include "tests/runtime/comm/format.h"

#include "tests/unit.h"

const struct format formats[FORMATS] = {
    { SLURMDL_F16, 5, 10, 15, 65504, 0x7c00, 0x7e00 },
    { SLURMDL_BF16, 8, 7, 127, 0x1.fep127, 0x7f80, 0x7fc0 },
    { SLURMDL_F8_E4M3, 4, 3, 7, 448, 0x7f, 0x7f },
    { SLURMDL_F8_E5M2, 5, 2, 15, 57344, 0x7c, 0x7e },
};
const struct format *format_of (enum slurmdl_type type)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].type == type)
            return &formats[i];
    return NULL;
}

uint32_t codes (const struct format *f)
{
    return 1u << (f->e + f->m + 1);
}

double decode (const struct format *f, uint32_t code)
{
    uint32_t bits = code & (codes (f) / 2 - 1);
    int e = (int)(bits >> f->m), m = (int)(bits & ((1u << f->m) - 1));
    double x = e ? ldexp (m + (1 << f->m), e - f->bias - f->m) : ldexp (m, 1 - f->bias - f->m);

    if (bits == f->infinity && f->infinity != f->nan)
        x = INFINITY;
    else if (bits >= f->infinity)
        x = NAN;
    return code & codes (f) / 2 ? -x : x;
}

uint32_t encode (const struct format *f, double x)
{
    uint32_t sign = signbit (x) ? codes (f) / 2 : 0;
    double size = fabs (x), step, rounded;
    int e;

    if (isnan (x))
        return f->nan | sign;
    if (size == 0)
        return sign;
    frexp (size, &e);
    e = e - 1 < 1 - f->bias ? 1 - f->bias : e - 1;
    step = ldexp (1, e - f->m);
    rounded = rint (size / step);
    if (rounded * step > f->most)
        return f->infinity | sign;
    if (e == 1 - f->bias && rounded < 1 << f->m)
        return (uint32_t)rounded | sign;
    if (rounded >= 2 << f->m) {
        rounded /= 2;
        e++;
    }
    return (((uint32_t)(e + f->bias) << f->m) + ((uint32_t)rounded - (1u << f->m))) | sign;
}

uint32_t code_at (const struct format *f, const void *data, size_t i)
{
    return codes (f) > 256 ? ((const uint16_t *)data)[i] : ((const uint8_t *)data)[i];
}

void code_put (const struct format *f, void *data, size_t i, uint32_t x)
{
    if (codes (f) > 256)
        ((uint16_t *)data)[i] = (uint16_t)x;
    else
        ((uint8_t *)data)[i] = (uint8_t)x;
}

void assert_code (const struct format *f, uint32_t got, uint32_t want, double of)
{
    if (isnan (decode (f, want)) && isnan (decode (f, got)))
        return;
    if (got != want)
        print_message ("# %s: %a: %x for %x\n", slurmdl_type_name (f->type), of, got, want);
    assert_int_equal (got, want);
}

void same_double (double got, double want)
{
    if (isnan (want) && isnan (got))
        return;
    assert_memory_equal (&got, &want, sizeof (got));
}

uint64_t draw (uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}
