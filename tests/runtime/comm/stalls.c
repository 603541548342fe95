/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: ranks that disagree, keep others waiting, or die. */
#include "runtime/comm/api/comm.h"

#include "tests/runtime/comm/named.h"
#include "tests/unit.h"

static int wait_for (struct slurmdl_comm *c, const struct slurmdl_request *r,
                     struct slurmdl_error *err)
{
    *err->text = '\0';
    return slurmdl_wait (c, slurmdl_submit (c, r, err), err);
}

static int is_in (const char *text, const char *part)
{
    return strstr (text, part) != NULL;
}

/* ---- requests that submit rejects ---- */

static int refusals (struct slurmdl_comm *c, void *arg)
{
    float x[10] = { 0 };
    const struct slurmdl_request good = {
        .name = "x", .type = SLURMDL_F32, .n = 10, .in = x, .out = x
    };
    struct slurmdl_request bad[9];
    struct slurmdl_error err = { "" };
    int64_t t;

    for (int i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].name = NULL;
    bad[1].type = (enum slurmdl_type)99;
    bad[2].op = (enum slurmdl_op)99;
    bad[3].compression = (enum slurmdl_compression)99;
    bad[4].in = bad[4].out = NULL;
    bad[5].what = SLURMDL_BROADCAST;
    bad[5].root = slurmdl_comm_size (c);
    bad[6].what = SLURMDL_ALLGATHER;
    bad[6].row = 3;
    bad[7].group = "g";
    bad[8].type = SLURMDL_I32;
    bad[8].op = SLURMDL_AVERAGE;
    for (int i = 0; i < 9; i++) {
        *err.text = '\0';
        CHECK (c, slurmdl_submit (c, &bad[i], &err) == -1);
        CHECK (c, errno == EINVAL && *err.text);
    }
    CHECK (c, slurmdl_wait (c, 1 << 20, &err) < 0 && errno == EINVAL);
    *err.text = '\0';
    if (slurmdl_comm_rank (c) == 0)
        CHECK (c, slurmdl_barrier (c, &err) == 0);
    CHECK (c, (t = slurmdl_submit (c, &good, &err)) > 0);
    if (slurmdl_comm_rank (c) != 0) {
        CHECK (c, slurmdl_submit (c, &good, &err) < 0 && errno == EEXIST);
        CHECK (c, slurmdl_barrier (c, &err) == 0);
    }
    CHECK (c, slurmdl_wait (c, t, &err) == 0);
    CHECK (c, slurmdl_wait (c, t, &err) < 0 && errno == ECONNRESET);
    return 0;
}

WORLD_CASE (test_refusals, 2, 0, refusals)

/* ---- ranks that disagree: all get an error, and continue ---- */

static void differ (struct slurmdl_request *r, int how)
{
    static const uint64_t turned[] = { 50, 20 };

    if (how == 0)
        r->type = SLURMDL_F16;
    if (how == 1)
        r->n = 999;
    if (how == 2)
        r->op = SLURMDL_MAX;
    if (how == 3)
        r->what = SLURMDL_BROADCAST;
    if (how == 4)
        r->compression = SLURMDL_AS_BF16;
    if (how == 5)
        r->prescale = 2;
    if (how == 6) {
        r->group = "g";
        r->members = 1;
    }
    if (how == 7)
        r->dims = turned;
}

static int disagree (struct slurmdl_comm *c, void *arg)
{
    static const char *const said[] = { "f32 of 1000, rank 2 (",
                                        "f16 of 1000",
                                        "f32 of 999",
                                        "maximum",
                                        "broadcast",
                                        "bf16",
                                        "factors 2",
                                        "group g",
                                        "f32 of 50 x 20" };
    static const uint64_t shape[] = { 20, 50 };
    float x[1000];
    struct slurmdl_request r = {
        .name = "fc.weight", .type = SLURMDL_F32, .n = 1000, .in = x, .out = x
    };
    struct slurmdl_error err = { "" };

    for (int how = 0; how < 8; how++) {
        struct slurmdl_request mine = r;
        mine.ndims = how == 7 ? 2 : 0;
        mine.dims = shape;
        /* in even rounds the tensor is new, in odd ones its number is known */
        x[0] = 1;
        if (how % 2)
            CHECK (c, wait_for (c, &r, &err) == 0 && x[0] == 3);
        if (slurmdl_comm_rank (c) == 2)
            differ (&mine, how);
        CHECK (c, wait_for (c, &mine, &err) < 0);
        CHECK (c, errno == EPROTO && is_in (err.text, "\"fc.weight\""));
        CHECK (c, is_in (err.text, said[how + 1]));
        CHECK (c, how || is_in (err.text, said[0]));
        x[0] = 1;
        CHECK (c, wait_for (c, &r, &err) == 0 && x[0] == 3);
    }
    return 0;
}

WORLD_CASE (test_disagreement, 3, 0, disagree)

/* ---- a rank that keeps the others waiting ---- */

static int stall (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    float x = 1, y = 1, late = 1;
    int told = 0;
    int64_t t;

    t = sum_floats (c, "warm", &x, 1, &err);
    CHECK (c, slurmdl_wait (c, t, &err) == 0);
    if (slurmdl_comm_rank (c) != 1) {
        sum_floats (c, "late one", &late, 1, &err);
        sum_floats (c, "another", &y, 1, &err);
    }
    for (double until = monotonic () + 100; !told;) {
        CHECK (c, monotonic () < until);
        told = slurmdl_comm_trouble (c, &err);
        nap (0.02);
    }
    CHECK (c, is_in (err.text, "\"late one\" and 1 more have waited"));
    CHECK (c, is_in (err.text, "for rank 1 ("));
    CHECK (c, !is_in (err.text, "rank 2 ("));
    *err.text = '\0';
    if (slurmdl_comm_rank (c) == 1) {
        sum_floats (c, "another", &y, 1, &err);
        sum_floats (c, "late one", &late, 1, &err);
    }
    CHECK (c, slurmdl_wait (c, 0, &err) == 0 && late == 4 && y == 4);
    return 0;
}

static int stall_for_ever (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    float x = 1;
    int64_t t = sum_floats (c, "warm", &x, 1, &err);

    CHECK (c, slurmdl_wait (c, t, &err) == 0);
    t = sum_floats (c, slurmdl_comm_rank (c) == 1 ? "b" : "a", &x, 1, &err);
    CHECK (c, slurmdl_wait (c, t, &err) < 0 && errno == ETIMEDOUT);
    /* either tensor may reach the limit first */
    CHECK (c, (is_in (err.text, "\"a\" has waited") && is_in (err.text, "for rank 1 ("))
                  || (is_in (err.text, "\"b\" has waited") && is_in (err.text, "for rank 0 (")));
    CHECK (c, sum_floats (c, "c", &x, 1, NULL) < 0 && errno == ENOTCONN);
    return 0;
}

/* One rank has not yet used named tensors at all. */
static int absent (struct slurmdl_comm *c, void *arg)
{
    const long *who = arg;
    struct slurmdl_error err = { "" };
    char expected[32];
    float x = 1;
    int told = 0;
    int64_t t;

    if (slurmdl_comm_rank (c) != *who) {
        CHECK (c, (t = sum_floats (c, "late one", &x, 1, &err)) > 0);
        for (double until = monotonic () + 60; !told; nap (0.02)) {
            CHECK (c, monotonic () < until);
            told = slurmdl_comm_trouble (c, &err);
        }
        CHECK (c, is_in (err.text, "\"late one\" has waited"));
        snprintf (expected, sizeof (expected), "s for rank %ld (", *who);
        CHECK (c, is_in (err.text, expected));
        CHECK (c, !is_in (err.text, "), rank"));
        *err.text = '\0';
        CHECK (c, slurmdl_barrier (c, &err) == 0);
    } else {
        CHECK (c, slurmdl_barrier (c, &err) == 0);
        CHECK (c, (t = sum_floats (c, "late one", &x, 1, &err)) > 0);
    }
    CHECK (c, slurmdl_wait (c, t, &err) == 0 && x == 4);
    return 0;
}

static int absent_for_ever (struct slurmdl_comm *c, void *arg)
{
    const long *who = arg;
    struct slurmdl_error err = { "" };
    float x = 1;
    int64_t t;

    if (slurmdl_comm_rank (c) != *who) {
        t = sum_floats (c, "a", &x, 1, &err);
        CHECK (c, slurmdl_wait (c, t, &err) < 0 && errno == ETIMEDOUT);
        CHECK (c, is_in (err.text, "\"a\" has waited"));
        CHECK (c, is_in (err.text, *who ? "for rank 1 (" : "for rank 0 ("));
        *err.text = '\0';
        CHECK (c, c->engine_calls->close (c->engine, &err) < 0);
        CHECK (c, errno == ETIMEDOUT);
        CHECK (c, is_in (err.text, *who ? "for rank 1 (" : "for rank 0 ("));
    }
    return slurmdl_barrier (c, NULL);
}

CASE (test_absent)
{
    /* longer than any other rank takes to start its engine */
    setenv ("DL_STALL_SECONDS", "2", 1);
    for (long who = 0; who < 4; who++)
        assert_int_equal (world_run (4, 2, absent, &who, 90, NULL), 0);
    setenv ("DL_STALL_ABORT", "4", 1);
    for (long who = 0; who < 2; who++)
        assert_int_equal (world_run (3, 0, absent_for_ever, &who, 90, NULL), 0);
    unsetenv ("DL_STALL_ABORT");
    unsetenv ("DL_STALL_SECONDS");
}

CASE (test_stall)
{
    setenv ("DL_STALL_SECONDS", "1.5", 1);
    assert_int_equal (world_run (4, 2, stall, NULL, 300, NULL), 0);
    setenv ("DL_STALL_ABORT", "3", 1);
    assert_int_equal (world_run (3, 0, stall_for_ever, NULL, 300, NULL), 0);
    unsetenv ("DL_STALL_ABORT");
    unsetenv ("DL_STALL_SECONDS");
}

/* ---- a rank that dies: nobody hangs, and errors name it ---- */

static int killed (struct slurmdl_comm *c, void *arg)
{
    static float x[1 << 20];
    struct slurmdl_error err = { "" };
    double start = 0;
    char name[16];
    int code = 0;
    int rv = 0;

    for (int step = 0; rv == 0; step++) {
        start = monotonic ();
        if (step == 5 && slurmdl_comm_rank (c) == 2)
            raise (SIGKILL);
        for (int i = 0; i < 8 && rv == 0; i++) {
            snprintf (name, sizeof (name), "t%d", i);
            if (sum_floats (c, name, x + (i << 17), 1 << 17, &err) < 0)
                rv = -1;
        }
        code = errno;
        if (rv == 0 && (rv = slurmdl_wait (c, 0, &err)) < 0)
            code = errno;
        CHECK (c, step < 10);
    }
    CHECK (c, code == ECONNRESET || code == ENOTCONN);
    CHECK (c, monotonic () - start < 100);
    CHECK (c, is_in (err.text, "rank 2"));
    CHECK (c, sum_floats (c, "more", x, 1, NULL) < 0 && errno == ENOTCONN);
    return 0;
}

CASE (test_killed)
{
    int ends[4];

    for (int nodes = 0; nodes < 2; nodes++) {
        assert_int_equal (world_run (4, 2 * nodes, killed, NULL, 300, ends), 1);
        assert_true (WIFSIGNALED (ends[2]));
    }
}

/* ---- leaving ---- */

static int leave_early (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    float x = 1, y = 1;
    int64_t t = sum_floats (c, "x", &x, 1, &err);

    CHECK (c, slurmdl_wait (c, t, &err) == 0);
    if (slurmdl_comm_rank (c) == 1)
        return 0;
    t = sum_floats (c, "y", &y, 1, &err);
    if (t < 0)
        return errno != ENOTCONN;
    CHECK (c, slurmdl_wait (c, t, &err) < 0 && errno == ECONNRESET);
    CHECK (c, is_in (err.text, "has closed the communicator"));
    return 0;
}

/* slurmdl_comm_close() completes what was submitted. */
static int leave_later (struct slurmdl_comm *c, void *arg)
{
    static float x[50][1000];
    struct slurmdl_error err = { "" };
    char name[16];

    for (int i = 0; i < 50; i++) {
        for (int j = 0; j < 1000; j++)
            x[i][j] = (float)i;
        snprintf (name, sizeof (name), "x%d", i);
        CHECK (c, sum_floats (c, name, x[i], 1000, &err) > 0);
    }
    CHECK (c, c->engine_calls->close (c->engine, &err) == 0);
    for (int i = 0; i < 50; i++)
        CHECK (c, x[i][999] == (float)(3 * i));
    return 0;
}

static int aborted (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    float x = 1, y = 1;
    int64_t t = sum_floats (c, "x", &x, 1, &err);
    struct engine *e;

    CHECK (c, slurmdl_wait (c, t, &err) == 0);
    t = slurmdl_comm_rank (c) ? sum_floats (c, "y", &y, 1, &err) : 0;
    if (slurmdl_comm_rank (c) == 0) {
        nap (0.1);
        e = c->engine;
        c->engine_calls->abort (e, "the world is formed anew");
        c->engine_calls->close (e, &err);
        CHECK (c, slurmdl_wait (c, 1, &err) < 0 && errno == ECONNRESET);
        return 0;
    }
    CHECK (c, slurmdl_wait (c, t, &err) < 0 && errno == ECONNRESET);
    CHECK (c, is_in (err.text, "rank 0 ("));
    CHECK (c, is_in (err.text, "the world is formed anew"));
    return 0;
}

CASE (test_leaving)
{
    assert_int_equal (world_run (3, 0, leave_early, NULL, 300, NULL), 0);
    assert_int_equal (world_run (3, 2, leave_later, NULL, 300, NULL), 0);
    assert_int_equal (world_run (3, 0, aborted, NULL, 300, NULL), 0);
}

/* ---- the timeline ---- */

static int drawn (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    float x[4] = { 0 };

    CHECK (c, slurmdl_timeline (c, arg, 1, &err) == 0);
    for (int step = 0; step < 3; step++)
        for (int i = 0; i < 4; i++) {
            char name[32];
            snprintf (name, sizeof (name), "a \"b\" \\ %d", i);
            CHECK (c, sum_floats (c, name, &x[i], 1, &err) > 0);
            if (i == 3)
                CHECK (c, slurmdl_wait (c, 0, &err) == 0);
        }
    if (slurmdl_comm_rank (c) == 1)
        CHECK (c, slurmdl_timeline (c, NULL, 0, &err) == 0);
    return 0;
}

static int refused (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };

    /* only rank 0 writes the file */
    if (slurmdl_comm_rank (c)) {
        CHECK (c, slurmdl_timeline (c, arg, 0, &err) == 0);
        return 0;
    }
    CHECK (c, slurmdl_timeline (c, arg, 0, &err) < 0);
    CHECK (c, is_in (err.text, "planted: cannot be written"));
    return 0;
}

CASE (test_timeline)
{
    char folder[] = "/tmp/timeline.XXXXXX";
    char path[64], command[1024];

    assert_non_null (mkdtemp (folder));
    snprintf (path, sizeof (path), "%s/planted", folder);
    assert_int_equal (symlink ("nowhere", path), 0);
    assert_int_equal (world_run (2, 0, refused, path, 300, NULL), 0);
    assert_int_equal (unlink (path), 0);
    assert_int_equal (mkfifo (path, 0600), 0);
    assert_int_equal (world_run (2, 0, refused, path, 300, NULL), 0);
    snprintf (path, sizeof (path), "%s/r%%r.json", folder);
    assert_int_equal (world_run (2, 0, drawn, path, 300, NULL), 0);
    snprintf (command, sizeof (command),
              "command -v python3 >/dev/null || exit 0\n"
              "python3 - %s/r0.json %s/r1.json <<'END'\n"
              "import json, sys, time\n"
              "for path in sys.argv[1:]:\n"
              "    events = json.load (open (path))\n"
              "    spans = [e for e in events if e['ph'] == 'X']\n"
              "    names = {e['name'] for e in spans}\n"
              "    assert {'NEGOTIATE_ALLREDUCE', 'QUEUE', 'PACK', 'ALLREDUCE',"
              " 'UNPACK'} <= names, names\n"
              "    assert sum (e['name'] == 'ALLREDUCE' for e in spans) == 12\n"
              "    assert all (e['dur'] >= 0 for e in spans)\n"
              "    assert all (0 <= e['ts'] < 3e8 for e in spans)\n"
              "    start = events[0]['args']['start_time_since_epoch_in_micros']\n"
              "    assert 0 <= time.time () - start / 1e6 < 300\n"
              "    marks = [e for e in events if e['name'] == 'CYCLE_START']\n"
              "    assert marks and all (e['ph'] == 'i' for e in marks)\n"
              "    rows = [e['args']['name'] for e in events"
              " if e['name'] == 'thread_name']\n"
              "    assert 'a \"b\" \\\\ 3' in rows, rows\n"
              "END\n",
              folder, folder);
    assert_int_equal (system (command), 0);
    snprintf (command, sizeof (command), "rm -r %s", folder);
    assert_int_equal (system (command), 0);
}

RUN_CASES ()
