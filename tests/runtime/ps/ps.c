/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter servers and workers as processes: what is summed, who is refused.
 */
#include "runtime/base/clock.h"
#include "runtime/comm/net/socket.h"
#include "runtime/ps/rules.h"
#include "runtime/ps/wire.h"
#include "tests/ranks.h"
#include "tests/runtime/ps/psgroup.h"
#include "tests/unit.h"

enum { ITERATIONS = 7 };

static void sync_equals_the_serial_sum (void **state)
{
    /* clang-format off */
    struct train all[] = {
        { SLURMDL_PS_ADD,     BIG,      ITERATIONS, 0 },
        { SLURMDL_PS_ASSIGN,  BIG,      2,          0 },
        { SLURMDL_PS_SGD,     BIG,      ITERATIONS, 0 },
        { SLURMDL_PS_ADAGRAD, PS_BLOCK * 2, ITERATIONS, 0 },
        { SLURMDL_PS_ADAM,    BIG,      ITERATIONS, 0 },
        { SLURMDL_PS_SGD,     PS_BLOCK - 1, 3,      0 },
        { SLURMDL_PS_SGD,     1,        3,          0 },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT (all); i++) {
        char name[16];
        snprintf (name, sizeof (name), "%zu", i);
        options.dir = group_file (name);
        run_group (train, &all[i]);
        check_values (&all[i]);
    }
}

static void push_pull (struct slurmdl_ps *ps, void *arg)
{
    struct train *t = arg;
    struct slurmdl_ps_table s = table_of (t);
    float *v = malloc (t->n * sizeof (*v));
    long me = slurmdl_ps_index (ps);
    int w;

    for (uint64_t i = 0; i < t->n; i++)
        v[i] = gradient (99, 0, i);
    w = slurmdl_ps_table (ps, &s, v, NULL);
    for (int64_t k = 0; k < t->until; k++) {
        for (uint64_t i = 0; i < t->n; i++)
            v[i] = gradient (me, k, i);
        NEED (slurmdl_ps_push_pull (ps, w, v, v, NULL) == 0);
    }
    if (me == 0)
        memcpy (board->values, v, t->n * sizeof (*v));
    free (v);
}

static void push_pull_is_a_step (void **state)
{
    struct train t = { SLURMDL_PS_SGD, BIG, 4, 0 };

    run_group (push_pull, &t);
    check_values (&t);
    options.log_bytes = -1;
    options.dir = group_file ("nolog");
    run_group (push_pull, &t);
    check_values (&t);
}

/* ---- rows ---- */

enum { ROW = 5, IDS = 40 };

static void train_rows (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "embedding",
                                  .row = ROW,
                                  .rule = SLURMDL_PS_ADD,
                                  .low = -0.5,
                                  .high = 0.5,
                                  .seed = 7 };
    uint64_t ids[IDS + 2];
    float g[(IDS + 2) * ROW];
    float v[(IDS + 2) * ROW];
    float first[IDS * ROW];
    long me = slurmdl_ps_index (ps);
    int e = slurmdl_ps_table (ps, &s, NULL, NULL);
    int64_t ticket;

    NEED (e == 0);
    for (int i = 0; i < IDS; i++)
        ids[i] = (uint64_t)i * 1000000007;
    ids[IDS] = ids[3]; /* twice in a call */
    ids[IDS + 1] = ids[0];
    NEED (slurmdl_ps_pull_rows (ps, e, ids, IDS, first, NULL, NULL) == 0);
    for (int i = 0; i < IDS * ROW; i++)
        NEED (first[i] >= -0.5 && first[i] < 0.5);
    NEED (memcmp (first, first + ROW, sizeof (float) * ROW));
    NEED (slurmdl_ps_push_rows (ps, e, ids, 0, NULL, NULL, NULL) == 0);
    NEED (slurmdl_ps_pull_rows (ps, e, ids, 0, NULL, NULL, NULL) == 0);
    for (int i = 0; i < (IDS + 2) * ROW; i++)
        g[i] = (float)(me + 1);
    NEED (slurmdl_ps_push_rows (ps, e, ids, IDS + 2, g, NULL, NULL) == 0);
    NEED (slurmdl_ps_clock (ps, NULL) == 0);
    NEED (slurmdl_ps_pull_rows (ps, e, ids, IDS + 2, v, &ticket, NULL) == 0);
    NEED (ticket > 0 && slurmdl_ps_wait (ps, ticket, NULL) == 0);
    for (int i = 0; i < (IDS + 2) * ROW; i++) {
        int row = i / ROW == IDS ? 3 : i / ROW == IDS + 1 ? 0 : i / ROW;
        bool twice = row == 3 || row == 0;
        float was = first[row * ROW + i % ROW];
        float sum = twice ? 2.0F * 1 + 2.0F * 2 + 2.0F * 3 : 1.0F + 2 + 3;
        NEED (v[i] == was + sum);
    }
    ids[0] = UINT64_MAX;
    NEED (slurmdl_ps_pull_rows (ps, e, ids, 1, v, NULL, NULL) < 0
          && errno == EINVAL);
}

static void rows_are_made_and_summed (void **state)
{
    run_group (train_rows, NULL);
}

/* One big message, and tables of no memory to speak of. */
static void train_large (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "large",
                                  .n = 16 << 20,
                                  .rule = SLURMDL_PS_ADD };
    float *v = malloc (s.n * sizeof (*v));
    int w = slurmdl_ps_table (ps, &s, NULL, NULL);

    for (uint64_t i = 0; i < s.n; i++)
        v[i] = (float)(i & 0xffff);
    NEED (slurmdl_ps_push (ps, w, v, NULL, NULL) == 0);
    NEED (slurmdl_ps_clock (ps, NULL) == 0);
    memset (v, 0, s.n * sizeof (*v));
    NEED (slurmdl_ps_pull (ps, w, v, NULL, NULL) == 0);
    for (uint64_t i = 0; i < s.n; i++)
        NEED (v[i] == 2 * (float)(i & 0xffff));
    free (v);
}

static void tensors_of_64_mib (void **state)
{
    options.workers = 2;
    run_group (train_large, NULL);
}

/* ---- async and bounded ---- */

static void async_loses_nothing (void **state)
{
    struct train t = { .until = 20 };

    options.mode = SLURMDL_PS_ASYNC;
    run_group (train_counts, &t);
}

static void staleness_is_bounded (void **state)
{
    struct train t = { .until = 15, .nap = 0.01 };

    options.mode = SLURMDL_PS_BOUNDED;
    options.staleness = 2;
    run_group (train_counts, &t);
    assert_in_range (board->most_ahead, 1, 2);
}

/* ---- what goes wrong ---- */

static void wait_alone (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "w", .n = 9 };
    struct slurmdl_error err;
    float v[9];
    int w = slurmdl_ps_table (ps, &s, NULL, NULL);

    NEED (slurmdl_ps_clock (ps, NULL) == 0);
    NEED (slurmdl_ps_pull (ps, w, v, NULL, &err) < 0 && errno == ETIMEDOUT);
    NEED (strstr (err.text, "worker 1 has not come"));
    NEED (slurmdl_ps_clock (ps, &err) < 0 && errno == ENOTCONN);
    _exit (0);
}

static void who_does_not_come_is_named (void **state)
{
    pid_t server;

    options.servers = 1;
    options.workers = 2;
    options.timeout = 3;
    server = start_server ("server", 0);
    assert_int_equal (end_of (start_worker (0, wait_alone, NULL)), 0);
    assert_int_equal (end_of (server), 2);
}

/* Of an attempt it is the trial's; else of the run, one of each step. */
static void the_folder_has_a_name (void **state)
{
    static const struct {
        const char *attempt, *run, *step, *made;
    } rows[] = {
        { "t/a.1", "run", "", "t/ps" },    { "t/a.1", "run", "3", "t/ps" },
        { "", "run", "", "run/ps" },       { "", "run", "3", "run/ps.7.3" },
        { "a.1", "run", "", "run/ps" },    { "", "", "", "slurmdl/ps" },
        { "", "", "3", "slurmdl/ps.7.3" },
    };
    struct slurmdl_ps_options o = options;
    struct slurmdl_error err;

    assert_int_equal (chdir (options.dir), 0);
    o.dir = NULL;
    o.role = "server";
    setenv ("SLURM_JOB_ID", "7", 1);
    for (size_t i = 0; i < COUNT (rows); i++) {
        setenv ("DL_ATTEMPT_DIR", rows[i].attempt, 1);
        setenv ("DL_RUN_DIR", rows[i].run, 1);
        setenv ("SLURM_STEP_ID", rows[i].step, 1);
        assert_int_equal (slurmdl_ps_close (slurmdl_ps_open (&o, &err)), 0);
        assert_int_equal (rmdir (rows[i].made), 0);
    }
    unsetenv ("DL_ATTEMPT_DIR");
    unsetenv ("DL_RUN_DIR");
    unsetenv ("SLURM_STEP_ID");
    unsetenv ("SLURM_JOB_ID");
    assert_int_equal (chdir ("/"), 0);
}

static void no_server_is_an_error (void **state)
{
    struct slurmdl_ps_options o = options;
    struct slurmdl_error err;

    o.role = "worker";
    o.timeout = 0.5;
    assert_null (slurmdl_ps_open (&o, &err));
    assert_int_equal (errno, ETIMEDOUT);
    assert_non_null (strstr (err.text, "server 0"));
    o.role = "chef";
    assert_null (slurmdl_ps_open (&o, &err));
    assert_int_equal (errno, EINVAL);
    o.role = "worker";
    o.index = 3;
    assert_null (slurmdl_ps_open (&o, &err));
    assert_int_equal (errno, EINVAL);
    o.index = 0;
    setenv ("DL_PS_MODE", "asinc", 1);
    o.mode = 0;
    assert_null (slurmdl_ps_open (&o, &err));
    assert_non_null (strstr (err.text, "sync, async, bounded"));
    unsetenv ("DL_PS_MODE");
}

static struct ps_entry find_server (void)
{
    struct ps_entry e;
    uint64_t number;

    for (int i = 0; i < 10000; i++) {
        if (psregistration_newest (options.dir, "server", 0, &number, &e) == 1
            && e.state == PS_SERVING)
            break;
        nap (0.01);
    }
    return e;
}

/* What server 0 answers to who calls like this; -1: nothing. */
static int call (const struct handshake *h,
                 const void *body,
                 size_t n,
                 struct ps_header *answer,
                 char *text)
{
    struct ps_entry e = find_server ();
    int fd = pswire_connect (&e);
    int got;

    assert_true (fd >= 0);
    got = handshake_call (fd, h, body, n, monotonic () + 20);
    text[0] = '\0';
    if (got == 0)
        got = socket_recv (fd, answer, sizeof (*answer), monotonic () + 20);
    if (got == 0 && answer->bytes < 256)
        socket_recv (fd, text, answer->bytes, monotonic () + 20);
    close (fd);
    return got;
}

/* Who says that is not answered. */
static void say (const void *data, size_t n)
{
    struct ps_entry e = find_server ();
    int fd = pswire_connect (&e);
    char c;

    assert_true (fd >= 0);
    socket_send (fd, data, n, monotonic () + 20);
    assert_int_equal (socket_recv (fd, &c, 1, monotonic () + 60), -1);
    close (fd);
}

static void strangers_are_refused (void **state)
{
    struct handshake h = { .service = HANDSHAKE_PS, .version = PS_VERSION };
    struct ps_hello hello = { .worker = 1 };
    struct train t = { SLURMDL_PS_SGD, 1000, 3, 0 };
    struct ps_header answer;
    char text[256];
    char garbage[5000];
    pid_t server;

    options.servers = options.workers = 1;
    server = start_server ("server", 0);
    for (size_t i = 0; i < sizeof (garbage); i++)
        garbage[i] = (char)ps_mix (i);
    say (garbage, sizeof (garbage));
    say ("GET / HTTP/1.1\r\n\r\n", 18);
    h.key[0] = 1;
    assert_int_equal (call (&h, &hello, sizeof (hello), &answer, text), -1);
    assert_int_equal (errno, EACCES);
    memcpy (h.key, find_server ().token, sizeof (h.key));
    assert_int_equal (call (&h, &hello, sizeof (hello), &answer, text), 0);
    assert_int_equal (answer.status, EPROTO);
    assert_non_null (strstr (text, "it is server 0 of 1"));
    h.version = PS_VERSION + 1;
    assert_int_equal (call (&h, &hello, sizeof (hello), &answer, text), 0);
    assert_int_equal (answer.status, EPROTO);
    assert_non_null (strstr (text, "version 2"));
    h.version = PS_VERSION;
    h.service = HANDSHAKE_MESH;
    assert_int_equal (call (&h, &hello, sizeof (hello), &answer, text), -1);
    h.service = HANDSHAKE_PS;
    assert_int_equal (call (&h, garbage, sizeof (garbage), &answer, text), -1);
    assert_int_equal (end_of (start_worker (0, train, &t)), 0);
    assert_int_equal (end_of (server), 0);
    check_values (&t);
}

static void a_wrong_mode_is_refused (void **state)
{
    struct train t = { SLURMDL_PS_SGD, 1000, 3, 0 };
    struct slurmdl_ps_options o;
    struct slurmdl_error err;
    pid_t server;

    options.servers = options.workers = 1;
    server = start_server ("server", 0);
    o = options;
    o.role = "worker";
    o.mode = SLURMDL_PS_ASYNC;
    assert_null (slurmdl_ps_open (&o, &err));
    assert_int_equal (errno, EPROTO);
    assert_non_null (strstr (err.text, "its mode is sync"));
    assert_int_equal (end_of (start_worker (0, train, &t)), 0);
    assert_int_equal (end_of (server), 0);
}

static void declare_wrongly (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "w", .n = 100 };
    struct slurmdl_error err;
    float v[100];

    NEED (slurmdl_ps_table (ps, &s, NULL, NULL) == 0);
    s.n = 101;
    NEED (slurmdl_ps_table (ps, &s, NULL, &err) < 0 && errno == EPROTO);
    s.name = "../w";
    NEED (slurmdl_ps_table (ps, &s, NULL, &err) < 0 && errno == EINVAL);
    s.name = "both";
    s.row = 4;
    NEED (slurmdl_ps_table (ps, &s, NULL, &err) < 0 && errno == EINVAL);
    NEED (slurmdl_ps_pull (ps, 7, v, NULL, &err) < 0 && errno == EINVAL);
    NEED (slurmdl_ps_pull_rows (ps, 0, NULL, 0, v, NULL, &err) < 0
          && errno == EINVAL);
    NEED (slurmdl_ps_wait (ps, 99, &err) < 0 && errno == EINVAL);
    NEED (slurmdl_ps_pull (ps, 0, v, NULL, &err) == 0);
}

static void wrong_calls_are_told (void **state)
{
    options.workers = 1;
    run_group (declare_wrongly, NULL);
}

static const struct CMUnitTest tests[] = {
    IN_GROUP (the_folder_has_a_name),   IN_GROUP (sync_equals_the_serial_sum),
    IN_GROUP (push_pull_is_a_step),     IN_GROUP (rows_are_made_and_summed),
    IN_GROUP (tensors_of_64_mib),       IN_GROUP (async_loses_nothing),
    IN_GROUP (staleness_is_bounded),    IN_GROUP (who_does_not_come_is_named),
    IN_GROUP (no_server_is_an_error),   IN_GROUP (strangers_are_refused),
    IN_GROUP (a_wrong_mode_is_refused), IN_GROUP (wrong_calls_are_told),
};

RUN_TESTS (tests)
