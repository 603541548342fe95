/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that was left out of a world waits to join, however long that takes. */
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/comm/elastic/folder.h"
#include "runtime/comm/net/listener.h"
#include "tests/folder.h"
#include "tests/runtime/comm/elasticcrowd.h"

/* Make rank 0 of all worlds: its kernel accepts connections, but it never answers. */
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

/* Wait until the rank joins that generation (0: asks to join); false: it exits. */
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

/* Form a world of the silent rank alone. */
static void leave_out (const struct elastic_member *silent, uint64_t number)
{
    struct generation *w = calloc (1, sizeof (*w) + sizeof (*w->members));

    assert_non_null (w);
    *w = (struct generation){ .number = number, .size = 1, .wanted = 2 };
    w->members[0] = *silent;
    assert_int_equal (folder_put_generation (dir, w), 0);
    free (w);
}

/* World 2 leaves the rank out for longer than its timeout.  World 3 takes it in
 * and cannot be opened; the rank must count that as its first failure, and try
 * world 4.
 */
FOLDER_CASE (test_long_wait)
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

RUN_CASES ()
