/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that was left out waits until it is taken in, as long as that takes.
 */
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/comm/elastic/folder.h"
#include "runtime/comm/net/listener.h"
#include "tests/folder.h"
#include "tests/runtime/comm/elasticcrowd.h"

/* Rank 0 of all worlds: its kernel takes connections, and it never answers. */
static struct elastic_member make_silent (int port)
{
    struct elastic_member m = { .was_rank = -1, .local = -1, .host = "127.0.0.1" };

    process_id_describe (&m.self);
    m.port = port;
    return m;
}

static bool has_put (uint64_t generation, uint64_t but)
{
    struct signs v = { 0 };
    bool rv = false;

    assert_int_equal (signs_look (&v, dir, NULL), 0);
    for (long i = 0; i < v.nsigns; i++)
        rv |= v.signs[i].generation == generation && v.signs[i].nonce != but;
    signs_free (&v);
    return rv;
}

/* The rank comes to that generation, 0: asks to be taken in; false: it ends. */
static bool comes (struct crowd *c, uint64_t generation, uint64_t silent)
{
    struct timespec t = { 0, 5000000 };
    double end = monotonic () + 50;

    while (!has_put (generation, silent)) {
        if (monotonic () > end || waitpid (c->pids[0], NULL, WNOHANG) == c->pids[0])
            return false;
        nanosleep (&t, NULL);
    }
    return true;
}

/* A world of the silent one alone. */
static void leave_out (const struct elastic_member *silent, uint64_t number)
{
    struct generation *w = calloc (1, sizeof (*w) + sizeof (*w->members));

    assert_non_null (w);
    *w = (struct generation){ .number = number, .size = 1, .wanted = 2 };
    w->members[0] = *silent;
    assert_int_equal (folder_put_generation (dir, w), 0);
    free (w);
}

/* It is left out of world 2 for longer than its time-out; that world 3, which
 * takes it in, cannot be opened is then the first failure of a new count.
 */
static void test_long_wait (void **state)
{
    const struct job j = { .steps = 10, .start = 2, .min = 2, .settle = 0.5, .timeout = 8 };
    struct listen_sockets at;
    int listens = listen_open (&at, "127.0.0.1", 0);
    struct elastic_member silent = make_silent (at.port);
    uint64_t nonce = silent.self.nonce;
    struct crowd c = { .n = 0 };

    assert_int_equal (listens, 0);
    assert_int_equal (folder_put_member (dir, 1, &silent), 0);
    crowd_add (&c, dir, &j);
    assert_true (comes (&c, 2, nonce));
    leave_out (&silent, 2);
    assert_true (comes (&c, 0, nonce));
    silent.was = 2;
    silent.was_rank = 0;
    assert_int_equal (folder_put_member (dir, 3, &silent), 0);
    assert_true (comes (&c, 3, nonce));
    assert_true (comes (&c, 4, nonce));
    crowd_kill (&c, 0);
    crowd_wait (&c);
    listen_close (&at);
}

static const struct CMUnitTest tests[] = { IN_FOLDER (test_long_wait) };

RUN_TESTS (tests)
