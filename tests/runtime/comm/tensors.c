/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of named tensors: packets, the coordinator, stalls, and rounding. */
#include <stdbool.h>

#include "runtime/comm/engine/control.h"
#include "runtime/comm/engine/coordinator.h"
#include "runtime/comm/engine/hash_map.h"
#include "tests/runtime/comm/named.h"
#include "tests/unit.h"

/* ---- packets and maps ---- */

CASE (test_packet)
{
    struct packet p = { NULL };
    uint32_t ids[] = { 9, 3, 4, 5, 100000, 8 };
    const uint32_t sorted[] = { 3, 4, 5, 8, 9, 100000 };
    struct packet_run run;
    uint32_t id;

    packet_number (&p, UINT64_MAX);
    packet_text (&p, "name");
    packet_text (&p, NULL);
    packet_real (&p, 0.1);
    packet_ids (&p, ids, 6);
    assert_true (packet_take_number (&p) == UINT64_MAX);
    assert_string_equal (packet_take_text (&p), "name");
    assert_string_equal (packet_take_text (&p), "");
    assert_true (packet_take_real (&p) == 0.1);
    run = packet_take_ids (&p);
    for (int i = 0; i < 6; i++) {
        assert_true (packet_take_id (&p, &run, &id));
        assert_int_equal (id, sorted[i]);
    }
    assert_false (packet_take_id (&p, &run, &id));
    assert_false (packet_more (&p) || p.bad);
    packet_take_number (&p);
    assert_true (p.bad);
    packet_free (&p);
}

/* Whatever the bytes are, parsing never reads outside the packet. */
CASE (test_hostile_packet)
{
    uint32_t seed = 5;

    for (int k = 0; k < 20000; k++) {
        struct packet p = { NULL };
        struct tensor *t;
        for (uint32_t i = draw (&seed) % 60; i > 0; i--) {
            unsigned char b = (unsigned char)(draw (&seed) >> 7);
            if (draw (&seed) % 3 == 0)
                b = 1;
            packet_bytes (&p, &b, 1);
        }
        t = tensor_take (&p);
        if (t) /* an accepted tensor is sane */
            assert_true (t->name && strlen (t->name) < 4096);
        tensor_free (t);
        packet_take_text (&p);
        assert_true (p.at <= p.n);
        packet_free (&p);
    }
}

CASE (test_map)
{
    static char values[5000];
    struct map m = { NULL };
    size_t at = 0, n = 0;

    for (uint64_t k = 0; k < 5000; k++)
        assert_int_equal (map_set (&m, k * 64, values + k), 0);
    for (uint64_t k = 0; k < 5000; k += 2)
        assert_int_equal (map_set (&m, k * 64, NULL), 0);
    for (uint64_t k = 0; k < 5000; k++)
        assert_ptr_equal (map_get (&m, k * 64), k % 2 ? values + k : NULL);
    while (map_next (&m, &at))
        n++;
    assert_int_equal (n, 2500);
    map_free (&m);
}

/* ---- the tree, and what ranks report up it ---- */

CASE (test_tree)
{
    enum { SIZE = 1000 };
    static long node[SIZE], below[SIZE];
    struct engine_tree t;

    for (long r = 0; r < SIZE; r++)
        node[r] = r % 250;
    for (long r = SIZE - 1; r >= 0; r--) {
        long all = 1;
        assert_int_equal (engine_tree_make (&t, r, SIZE, node, 4), 0);
        assert_true (t.parent < r && t.n <= 4 + 3);
        assert_true (r >= 250 ? t.parent == r % 250 : t.parent == (r - 1) / 4 || r == 0);
        for (size_t i = 0; i < t.n; i++) {
            assert_int_equal (t.below[i], below[t.children[i]]);
            all += t.below[i];
        }
        below[r] = all;
        engine_tree_free (&t);
    }
    assert_int_equal (below[0], SIZE);
}

CASE (test_relay)
{
    const long ranks[] = { 1, 1, 2 };
    struct readiness *r = readiness_create (3, ranks);
    size_t n;

    readiness_assign (r, 7);
    readiness_assign (r, 8);
    readiness_ready (r, 7);
    readiness_ready (r, 7);
    readiness_full (r, &n);
    assert_int_equal (n, 0);
    readiness_ready (r, 7);
    assert_int_equal (readiness_full (r, &n)[0], 7);
    assert_int_equal (n, 1);
    /* one of two ranks has joined: the other must still report */
    readiness_ready (r, 8);
    readiness_join (r, 1);
    readiness_join (r, 2);
    readiness_full (r, &n);
    assert_int_equal (n, 0);
    readiness_join (r, 2);
    assert_int_equal (readiness_full (r, &n)[0], 8);
    readiness_rejoin (r);
    readiness_drop (r, 7);
    for (int i = 0; i < 3; i++)
        readiness_ready (r, 7);
    readiness_full (r, &n);
    assert_int_equal (n, 0);
    readiness_destroy (r);
}

/* ---- the coordinator ---- */

static const char *host (const void *arg, long rank)
{
    return rank ? "node01" : "node00";
}

static struct tensor *made (const char *name, size_t n, enum slurmdl_type type, const char *group)
{
    struct tensor t = { .name = (char *)name,
                        .group = (char *)group,
                        .members = 2,
                        .type = type,
                        .n = n,
                        .row = 1,
                        .prescale = 1,
                        .postscale = 1 };

    return tensor_copy (&t);
}

struct heard {
    int assigned, dropped, batches, errors;
    size_t sizes[16]; /* of batches */
    uint32_t last_id;
    char text[256];
};

static struct heard hear (struct packet *p)
{
    struct heard h = { 0 };

    while (packet_more (p)) {
        struct packet_run run;
        uint32_t id;
        switch (packet_take_number (p)) {
        case DOWN_ASSIGN:
            h.last_id = (uint32_t)packet_take_number (p);
            tensor_free (tensor_take (p));
            h.assigned++;
            break;
        case DOWN_DROP:
            packet_take_number (p);
            h.dropped++;
            break;
        case DOWN_BATCH:
            run = packet_take_ids (p);
            while (packet_take_id (p, &run, &id))
                h.sizes[h.batches]++;
            h.batches++;
            break;
        case DOWN_ERROR:
            packet_take_text (p);
            packet_take_number (p);
            snprintf (h.text, sizeof (h.text), "%s", packet_take_text (p));
            h.errors++;
            break;
        default:
            fail ();
        }
    }
    assert_false (p->bad);
    packet_clear (p);
    return h;
}

static void both (struct coordinator *c, const char *name, size_t n, enum slurmdl_type type,
                  const char *group)
{
    for (long r = 0; r < 2; r++)
        coordinator_request (c, r, made (name, n, type, group));
}

CASE (test_coordinator)
{
    struct packet down = { NULL };
    struct coordinator *c = coordinator_create (2, host, NULL, &down);
    struct heard h;

    /* small tensors of one type are fused, a large one is not; in order */
    both (c, "a", 10, SLURMDL_F32, NULL);
    both (c, "big", 1 << 20, SLURMDL_F32, NULL);
    both (c, "i", 10, SLURMDL_I32, NULL);
    both (c, "b", 10, SLURMDL_F32, NULL);
    coordinator_request (c, 1, made ("half", 10, SLURMDL_F32, NULL));
    assert_int_equal (coordinator_emit (c, 1 << 26, 2), 2);
    h = hear (&down);
    assert_true (h.assigned == 3 && h.sizes[0] == 2 && h.sizes[1] == 1);
    assert_true (coordinator_waits (c));
    assert_int_equal (coordinator_emit (c, 1 << 26, 9), 1);
    assert_false (coordinator_waits (c));
    h = hear (&down);
    assert_true (h.batches == 1 && h.sizes[0] == 1 && h.last_id == 4);
    /* by number; a batch has a maximum size */
    coordinator_ready (c, 2);
    coordinator_ready (c, 1);
    assert_int_equal (coordinator_emit (c, 79, 9), 2);
    h = hear (&down);
    assert_true (h.assigned == 0 && h.batches == 2);
    /* a rank changes the tensor of this name: all must ask again */
    coordinator_request (c, 1, made ("a", 11, SLURMDL_F32, NULL));
    h = hear (&down);
    assert_int_equal (h.dropped, 1);
    coordinator_ready (c, 1);
    coordinator_request (c, 0, made ("a", 10, SLURMDL_F32, NULL));
    assert_int_equal (coordinator_emit (c, 1 << 20, 9), 0);
    h = hear (&down);
    assert_int_equal (h.errors, 1);
    assert_string_equal (h.text, "gradient \"a\": rank 0 (node00) has f32 of 10, "
                                 "rank 1 (node01) f32 of 11");
    /* a group fails if one of its members does */
    both (c, "g1", 1, SLURMDL_F32, "g");
    assert_false (coordinator_waits (c));
    coordinator_request (c, 0, made ("g2", 1, SLURMDL_F32, "g"));
    coordinator_request (c, 1, made ("g2", 1, SLURMDL_F64, "g"));
    h = hear (&down);
    assert_true (h.errors == 2 && !coordinator_waits (c));
    coordinator_destroy (c);
    packet_free (&down);
}

/* Names that are used once do not fill the memory. */
CASE (test_limit)
{
    struct packet down = { NULL };
    struct coordinator *c = coordinator_create (2, host, NULL, &down);
    struct heard h;
    int dropped = 0;

    for (int i = 0; i < 16384 + 90; i++) {
        char name[16];
        snprintf (name, sizeof (name), "step%d", i);
        both (c, name, 1, SLURMDL_F32, NULL);
        assert_int_equal (coordinator_emit (c, 1 << 20, 9), 1);
        h = hear (&down);
        dropped += h.dropped;
    }
    assert_int_equal (dropped, 90);
    coordinator_destroy (c);
    packet_free (&down);
}

/* ---- which ranks keep a tensor waiting ---- */

CASE (test_stall_text)
{
    struct stall *s = stall_create (20, host, NULL);
    struct packet down = { NULL };
    char text[256];
    double age;

    stall_report (s, "w", 60, 2, 100, &down);
    stall_report (s, "w", 61, 3, 100, &down);
    assert_int_equal (packet_take_number (&down), DOWN_WHO);
    assert_string_equal (packet_take_text (&down), "w");
    assert_false (packet_more (&down));
    for (long r = 0; r < 13; r++)
        stall_answer (s, r, "w", r != 0 && r != 5);
    assert_false (stall_text (s, 100.5, text, sizeof (text), &age));
    assert_true (stall_wait_seconds (s, 100.5) > 0.4);
    assert_true (stall_text (s, 101.5, text, sizeof (text), &age));
    assert_string_equal (text, "\"w\" and 3 more have waited 61 s for rank 0 (node00), rank 5 "
                               "(node01) (7 do not answer)");
    assert_true (age == 61);
    stall_report (s, "v", 60, 0, 200, &down);
    for (long r = 0; r < 13; r++)
        stall_answer (s, r, "v", true);
    assert_true (stall_text (s, 201.5, text, sizeof (text), &age));
    assert_string_equal (text,
                         "\"v\" has waited 60 s for rank 13 (node01), rank 14 (node01), rank 15 "
                         "(node01), rank 16 (node01) and 3 more ranks");
    assert_true (stall_wait_seconds (s, 102) < 0);
    stall_destroy (s);
    packet_free (&down);
}

/* ---- a model still learns with compressed gradients ---- */

enum { INPUTS = 60, SAMPLES = 120 };

/* Logistic regression on points of two classes; each rank has its own points. */
static double pass (const float *w, long rank, float *gradient)
{
    uint32_t seed = (uint32_t)rank * 1013 + 7;
    double loss = 0;

    memset (gradient, 0, INPUTS * sizeof (*gradient));
    for (int s = 0; s < SAMPLES; s++) {
        float x[INPUTS], z = 0, truth = 0, p;
        for (int j = 0; j < INPUTS; j++) {
            x[j] = (float)(int32_t)draw (&seed) * 4e-10f;
            z += w[j] * x[j];
            truth += (j % 3 ? 1.0f : -2.0f) * x[j];
        }
        p = 1 / (1 + expf (-z));
        loss -= log (truth > 0 ? p + 1e-9 : 1 - p + 1e-9);
        for (int j = 0; j < INPUTS; j++)
            gradient[j] += (p - (truth > 0)) * x[j] / SAMPLES;
    }
    return loss / SAMPLES;
}

static int train (struct slurmdl_comm *c, void *arg)
{
    const enum slurmdl_compression *how = arg;
    struct slurmdl_error err = { "" };
    float w[INPUTS] = { 0 }, gradient[INPUTS];
    struct slurmdl_request r = { .name = "w",
                                 .type = SLURMDL_F32,
                                 .op = SLURMDL_AVERAGE,
                                 .n = INPUTS,
                                 .in = gradient,
                                 .out = gradient,
                                 .compression = *how };
    double loss = 1, first = 0;

    for (int step = 0; step < 300; step++) {
        loss = pass (w, slurmdl_comm_rank (c), gradient);
        first = step ? first : loss;
        CHECK (c, slurmdl_wait (c, slurmdl_submit (c, &r, &err), &err) == 0);
        for (int j = 0; j < INPUTS; j++)
            w[j] -= 2 * gradient[j];
    }
    CHECK (c, first > 0.69 && loss < 0.25);
    return 0;
}

CASE (test_learning)
{
    static enum slurmdl_compression all[] = { SLURMDL_PLAIN, SLURMDL_AS_F16, SLURMDL_AS_BF16 };

    for (int i = 0; i < 3; i++)
        assert_int_equal (world_run (3, 2, train, &all[i], 300, NULL), 0);
}

/* 16-bit compression rounds as its type does, and no worse. */
static int rounding (struct slurmdl_comm *c, void *arg)
{
    enum { N = 1000 };
    static const double unit[] = { 0, 0x1p-11, 0x1p-8 };
    struct slurmdl_error err = { "" };
    long size = slurmdl_comm_size (c);

    for (int how = SLURMDL_AS_F16; how <= SLURMDL_AS_BF16; how++) {
        double x[N], want[N] = { 0 }, most[N] = { 0 };
        struct slurmdl_request r = { .name = "x",
                                     .type = SLURMDL_F64,
                                     .op = SLURMDL_AVERAGE,
                                     .n = N,
                                     .in = x,
                                     .out = x,
                                     .prescale = 0.25,
                                     .postscale = 4,
                                     .compression = how };
        for (long rank = 0; rank < size; rank++) {
            uint32_t seed = (uint32_t)rank + 99;
            for (int j = 0; j < N; j++) {
                double v = (double)(int32_t)draw (&seed) * 1e-8;
                want[j] += v / (double)size;
                most[j] += fabs (v) / (double)size;
                if (rank == slurmdl_comm_rank (c))
                    x[j] = v;
            }
        }
        CHECK (c, slurmdl_wait (c, slurmdl_submit (c, &r, &err), &err) == 0);
        for (int j = 0; j < N; j++)
            CHECK (c, fabs (x[j] - want[j]) <= (double)size * unit[how] * most[j] + 1e-6);
    }
    return 0;
}

WORLD_CASE (test_rounding, 4, 2, rounding)

RUN_CASES ()
