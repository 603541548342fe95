/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: submitted in any order, reduced as the serial sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/comm/reduce.h"
#include "tests/world.h"

enum { TENSORS = 300, TYPES = SLURMDL_F8_E5M2 + 1 };

#define CHECK(c, yes)                                                          \
    do {                                                                       \
        if (!(yes))                                                            \
            return complain (c, __LINE__, #yes, err.text);                     \
    } while (0)

static int
complain (struct slurmdl_comm *c, int line, const char *what, const char *text)
{
    fprintf (stderr,
             "# rank %ld, line %d: %s (errno %d: %s) %s\n",
             slurmdl_comm_rank (c),
             line,
             what,
             errno,
             strerror (errno),
             text);
    return 1;
}

static uint32_t draw (uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* ---- what is in tensor i on rank r: 0 or 1, whose sums are exact ---- */

static int value (int i, size_t j, long r)
{
    return (int)((j * 5 + (size_t)i * 3 + (size_t)r * (j % 7 + 1)) >> 1 & 1);
}

static void put (void *to, size_t j, enum slurmdl_type type, int v)
{
    size_t size = slurmdl_type_size (type);
    char *at = (char *)to + j * size;
    double real = v;
    float half[2] = { (float)v, 0 };
    double pair[2] = { v, 0 };
    int64_t whole = v;

    if (type == SLURMDL_C64)
        memcpy (at, half, size);
    else if (type == SLURMDL_C128)
        memcpy (at, pair, size);
    else if (type == SLURMDL_F16 || type == SLURMDL_F32 || type == SLURMDL_F64
             || type == SLURMDL_BF16 || type == SLURMDL_F8_E4M3
             || type == SLURMDL_F8_E5M2)
        reduce_convert (at, type, &real, SLURMDL_F64, 1);
    else
        memcpy (at, &whole, size);
}

static size_t elements (int i)
{
    static const size_t sizes[] = { 0, 1, 7, 100, 1000, 4097, 33, 12000 };
    uint32_t state = (uint32_t)i * 2654435761u + 1;

    if (i % 75 == 74)
        return (4 << 20) / 16;
    return sizes[draw (&state) % 8] + draw (&state) % 3;
}

static enum slurmdl_type type_of (int i)
{
    return (enum slurmdl_type) (i % TYPES);
}

static enum slurmdl_op op_of (int i)
{
    return type_of (i) == SLURMDL_BOOL ? SLURMDL_MAX : SLURMDL_SUM;
}

struct held {
    void *in, *out;
    int64_t ticket;
};

static void fill (struct held *h, int i, long rank)
{
    size_t n = elements (i);
    size_t size = slurmdl_type_size (type_of (i));

    h->in = malloc (n * size + 1);
    h->out = malloc (n * size + 1);
    for (size_t j = 0; j < n; j++)
        put (h->in, j, type_of (i), value (i, j, rank));
}

static bool is_right (const struct held *h, int i, long size)
{
    size_t each = slurmdl_type_size (type_of (i));
    char want[16];

    for (size_t j = 0; j < elements (i); j++) {
        int sum = 0;
        for (long r = 0; r < size; r++)
            sum += value (i, j, r);
        put (want, 0, type_of (i), op_of (i) == SLURMDL_MAX ? sum > 0 : sum);
        if (memcmp (want, (char *)h->out + j * each, each))
            return false;
    }
    return true;
}

static int64_t submit_one (struct slurmdl_comm *c,
                           struct held *h,
                           int i,
                           struct slurmdl_error *err)
{
    char name[32];
    struct slurmdl_request r = { .name = name,
                                 .what = SLURMDL_ALLREDUCE,
                                 .type = type_of (i),
                                 .op = op_of (i),
                                 .n = elements (i),
                                 .in = h->in,
                                 .out = h->out };

    snprintf (name, sizeof (name), "layer%d.weight", i);
    return h->ticket = slurmdl_submit (c, &r, err);
}

static void shuffle (int *order, int n, uint32_t seed)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(draw (&seed) % (uint32_t)(i + 1));
        int x = order[i];
        order[i] = order[j];
        order[j] = x;
    }
}

static int all_orders (struct slurmdl_comm *c, void *arg)
{
    struct held *h = calloc (TENSORS, sizeof (*h));
    struct slurmdl_error err = { "" };
    struct slurmdl_comm_stats s;
    long rank = slurmdl_comm_rank (c);
    int order[TENSORS];

    (void)arg;
    for (int i = 0; i < TENSORS; i++)
        fill (&h[i], i, rank);
    for (uint32_t round = 0; round < 3; round++) {
        shuffle (order, TENSORS, (uint32_t)rank * 77 + round + 1);
        for (int i = 0; i < TENSORS; i++)
            memset (h[i].out, 0xff, 1);
        for (int i = 0; i < TENSORS; i++)
            CHECK (c, submit_one (c, &h[order[i]], order[i], &err) > 0);
        if (round == 1)
            CHECK (c, slurmdl_wait (c, 0, &err) == 0);
        for (int i = 0; round != 1 && i < TENSORS; i++)
            CHECK (c, slurmdl_wait (c, h[i].ticket, &err) == 0);
        for (int i = 0; i < TENSORS; i++)
            CHECK (c, is_right (&h[i], i, slurmdl_comm_size (c)));
    }
    slurmdl_comm_stats (c, &s);
    CHECK (c, s.negotiated == TENSORS && s.hits == 2 * TENSORS);
    CHECK (c, s.tensors == 3 * TENSORS && s.fused < s.tensors);
    for (int i = 0; i < TENSORS; i++) {
        free (h[i].in);
        free (h[i].out);
    }
    free (h);
    return 0;
}

static void test_orders (void **state)
{
    (void)state;
    assert_int_equal (world_run (1, 0, all_orders, NULL, 60, NULL), 0);
    assert_int_equal (world_run (4, 0, all_orders, NULL, 60, NULL), 0);
    assert_int_equal (world_run (3, 1, all_orders, NULL, 60, NULL), 0);
}

/* A chain, so that what is told goes through others. */
static void test_chain (void **state)
{
    (void)state;
    setenv ("DL_COMM_FAN", "1", 1);
    assert_int_equal (world_run (5, 2, all_orders, NULL, 60, NULL), 0);
    unsetenv ("DL_COMM_FAN");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_orders),
        cmocka_unit_test (test_chain),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
