/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of rows: its capacity, and its order with many threads. */
#include "runtime/metrics/ring.h"

#include <pthread.h>

#include "tests/unit.h"

enum { WRITERS = 3, EACH = RING_SIZE / 2, BATCH = 1000 };

static size_t put_all (struct ring *r, int64_t *step)
{
    size_t n = 0;

    while (ring_put (r, &(struct row){ .step = *step }) >= 0) {
        ++*step;
        n++;
    }
    return n;
}

/* Take all rows, whose steps must continue from *step. */
static size_t take_all (struct ring *r, int64_t *step)
{
    struct row rows[BATCH];
    size_t n = 0, got;

    while ((got = ring_take (r, rows, BATCH)) > 0) {
        for (size_t i = 0; i < got; i++)
            assert_int_equal (rows[i].step, (*step)++);
        n += got;
    }
    return n;
}

CASE (holds_its_size)
{
    int64_t put = 0, taken = 0;
    struct ring r;

    assert_int_equal (ring_open (&r), 0);
    for (int lap = 0; lap < 3; lap++) {
        assert_int_equal (put_all (&r, &put), RING_SIZE);
        assert_int_equal (take_all (&r, &taken), RING_SIZE);
        assert_int_equal (ring_freed (&r), taken);
        assert_int_equal (ring_count (&r), put);
    }
    ring_close (&r);
}

struct writer {
    struct ring *ring;
    uint32_t name;
};

static void *write_rows (void *arg)
{
    const struct writer *w = arg;

    for (int64_t step = 0; step < EACH;)
        step += ring_put (w->ring, &(struct row){ .step = step, .name = w->name }) >= 0;
    return NULL;
}

CASE (keeps_the_order_of_each_thread)
{
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    int64_t next[WRITERS] = { 0 };
    struct row rows[BATCH];
    struct ring r;
    size_t got;

    assert_int_equal (ring_open (&r), 0);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .ring = &r, .name = i };
        pthread_create (&threads[i], NULL, write_rows, &writers[i]);
    }
    for (size_t n = 0; n < (size_t)WRITERS * EACH; n += got) {
        got = ring_take (&r, rows, BATCH);
        for (size_t i = 0; i < got; i++)
            assert_int_equal (rows[i].step, next[rows[i].name]++);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join (threads[i], NULL);
    assert_int_equal (ring_take (&r, rows, BATCH), 0);
    ring_close (&r);
}

RUN_CASES ()
