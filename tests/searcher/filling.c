/* SPDX-License-Identifier: Apache-2.0 */
/* Space-filling points: Sobol sequences and Latin hypercubes. */
#include "searcher/searcher.h"
#include "tests/searcher/params.h"
#include "tests/searcher/search.h"

enum { MANY = 70 };

static const struct param floats[] = {
    FLOAT ("a", 0, 1, 0), FLOAT ("b", 0, 1, 0), FLOAT ("c", 0, 1, 0),
    FLOAT ("d", 0, 1, 0), FLOAT ("e", 0, 1, 0), FLOAT ("f", 0, 1, 0),
};

/* If 2^k points split each dimension into 2^k equal parts, each part holds one point.  So does
 * each elementary box of that volume in the first two dimensions.
 */
CASE (sobol_is_a_net)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct searcher *s = search_create ("sobol", seed, 256, floats, 6);
        bool seen[6][256] = { { false } };
        bool box[9][256] = { { false } };
        double x[6];
        for (int i = 0; i < 256; i++) {
            search_begin (s, x);
            for (int d = 0; d < 6; d++) {
                int part = (int)(x[d] * 256);
                assert_false (seen[d][part]);
                seen[d][part] = true;
            }
            for (int k = 0; k <= 8; k++) {
                int at = (int)(x[0] * (1 << k)) << (8 - k);
                at += (int)(x[1] * (1 << (8 - k)));
                assert_false (box[k][at]);
                box[k][at] = true;
            }
        }
        searcher_destroy (s);
    }
}

/* Mean error of an integral; points with low discrepancy have a much smaller one than random
 * points.
 */
static double integral_error (const char *name, int n)
{
    double total = 0;

    for (uint64_t seed = 0; seed < 20; seed++) {
        struct searcher *s = search_create (name, seed, n, floats, 6);
        double sum = 0;
        double x[6];
        for (int i = 0; i < n; i++) {
            double product = 1;
            search_begin (s, x);
            for (int d = 0; d < 6; d++)
                product *= 0.5 + x[d];
            sum += product;
        }
        total += fabs (sum / n - 1); /* the exact integral is 1 */
        searcher_destroy (s);
    }
    return total / 20;
}

CASE (even_points_integrate_better)
{
    assert_true (integral_error ("sobol", 512) < 0.3 * integral_error ("random", 512));
    assert_true (integral_error ("lhs", 512) < 0.6 * integral_error ("random", 512));
}

CASE (latin_hypercube)
{
    static const int sizes[] = { 1, 2, 3, 7, 64, 100, 1000 };

    for (size_t k = 0; k < COUNT (sizes); k++) {
        int n = sizes[k];
        struct searcher *s = search_create ("lhs", k, n, floats, 6);
        bool *seen = calloc ((size_t)n * 6, sizeof (*seen));
        double x[6];
        for (int i = 0; i < n; i++) {
            search_begin (s, x);
            for (int d = 0; d < 6; d++) {
                int part = (int)(x[d] * n);
                assert_false (seen[d * n + part]);
                seen[d * n + part] = true;
            }
        }
        free (seen);
        searcher_destroy (s);
    }
}

/* Hashes of the direction numbers of S. Joe and F. Y. Kuo, computed with PyTorch's SobolEngine.
 * Each is a hash of how many leading bits points 1 to 2047 share with point 0: scrambling does
 * not change it, and other direction numbers do.
 */
static const uint32_t joe_kuo[64] = {
    0xf22f298c, 0x7ab791aa, 0x1ba1d06a, 0x300fb62a, 0x8c864e88, 0x6c8920c4, 0x991a69aa, 0x964f9f2a,
    0xe085a92a, 0x7f792aaa, 0x0c6b7eaa, 0x884c9aaa, 0x40302f2a, 0x64575a88, 0x8376fdea, 0x77dbddfc,
    0xf8ba4d2a, 0x844ff36a, 0x702dc8aa, 0xba960f2a, 0x7fc6b944, 0x59ad782a, 0xe3a4302a, 0xb3ed1c44,
    0xba3d7b2a, 0x81b132c8, 0xe8b6c0aa, 0x8e26e62a, 0x0c47106a, 0xc234676a, 0xdce35508, 0x856f31c4,
    0xd8e80284, 0x8442ec08, 0x1887b7aa, 0xc01197ea, 0xd842c46a, 0x4046a2c8, 0x8b7ffeea, 0x84c12ac8,
    0xddb79ac8, 0xd953d4aa, 0xdf5ae488, 0x460d38c8, 0xdd9cf9aa, 0x5e0bb408, 0x1a25fbaa, 0xb628fb08,
    0x36dd43c4, 0xf2d81b04, 0xc14c3488, 0x7415cd48, 0x59e424c4, 0xcf56c76a, 0x96e828aa, 0xbc917488,
    0xf0be42ea, 0x241b3c08, 0x90d5b488, 0x1e681508, 0xaad16a6a, 0xaf1fc908, 0xba5da308, 0x529db688,
};

static void name_many (struct param many[MANY])
{
    static char names[MANY][8];

    for (int i = 0; i < MANY; i++) {
        names[i][0] = (char)('a' + i / 26);
        names[i][1] = (char)('a' + i % 26);
        many[i] = (struct param){ .name = names[i], .type = PARAM_FLOAT, .max = 1 };
    }
}

CASE (sobol_is_joe_and_kuos)
{
    struct param many[MANY];
    struct searcher *s;
    uint32_t hash[64] = { 0 }, first[64];
    double x[MANY];

    name_many (many);
    s = search_create ("sobol", 3, 2048, many, 64);
    for (int n = 0; n < 2048; n++) {
        search_begin (s, x);
        for (int d = 0; d < 64; d++) {
            uint32_t bits = (uint32_t)(x[d] * 0x1p32);
            if (n == 0)
                first[d] = bits;
            else
                hash[d] = hash[d] * 31 + (uint32_t)__builtin_clz (bits ^ first[d]);
        }
    }
    for (int d = 0; d < 64; d++)
        assert_int_equal (hash[d], joe_kuo[d]);
    searcher_destroy (s);
}

/* All integers and choices come equally often, and more than 64 dimensions work. */
CASE (discrete_and_many)
{
    static const struct param mixed[] = { INT ("k", 3, 6, 0), CHOICE ("c", 4) };
    struct searcher *s = search_create ("sobol", 1, 64, mixed, 2);
    struct param many[MANY];
    int count[2][8] = { { 0 } };
    double x[MANY];

    for (int i = 0; i < 64; i++) {
        search_begin (s, x);
        count[0][(int)x[0]]++;
        count[1][(int)x[1]]++;
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal (count[0][i + 3], 16);
        assert_int_equal (count[1][i], 16);
    }
    searcher_destroy (s);
    name_many (many);
    s = search_create ("sobol", 1, 10, many, MANY);
    for (int i = 0; i < 10; i++)
        search_begin (s, x);
    searcher_destroy (s);
}

RUN_CASES ()
