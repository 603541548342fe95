/* SPDX-License-Identifier: Apache-2.0 */
/* Events survive a round trip through JSON and through packing. */
#include "launcher/sweep/event.h"

#include "tests/unit.h"

static double x[3] = { 0.1, NAN, -INFINITY };

/* An event with all fields set. */
static struct event full (enum event_op op)
{
    return (struct event){
        .op = op,
        .time = 1753000000.125,
        .by = "12_3",
        .trial = 7,
        .attempt = 2,
        .length = INT64_C (1) << 52,
        .metric = 0.1,
        .metrics = x,
        .nmetrics = 3,
        .seconds = 1e-9,
        .stopped = true,
        .ended = 3,
        .free = true,
        .why = "a \"quoted\" reason\n",
        .host = "node1",
        .gpus = "0,1",
        .owner = "0123456789abcdef",
        .x = x,
        .nx = 3,
        .from = 3,
        .from_length = 4,
        .state = "failed",
        .version = 1,
        .name = "n",
        .dir = "/d",
        .seed = 2147483647,
        .job = "12",
        .first = 1,
        .last = 9,
        .workers = 4,
        .slots = "12_1 12_2",
        .max_trials = 100,
        .max_length = 81,
        .label = "l",
        .off = true,
        .step = "train",
        .task = 3,
        .start = 2,
        .mode = "local",
        .pid = 4711,
        .began = 99,
        .jobs = "12 13",
        .status = 137,
    };
}

static char *text_of (const struct event *e)
{
    json_t *o = event_json (e);
    char *text = json_dumps (o, JSON_COMPACT);

    json_decref (o);
    assert_non_null (text);
    return text;
}

CASE (through_json)
{
    for (int op = 0; op < EVENT_OPS; op++) {
        struct event e = full ((enum event_op)op);
        struct event back;
        char *text = text_of (&e);
        json_t *o = json_loads (text, 0, NULL);
        char *again;
        assert_int_equal (event_read (o, &back), 0);
        again = text_of (&back);
        assert_string_equal (text, again);
        assert_non_null (strstr (text, event_name (e.op)));
        event_free (&back);
        json_decref (o);
        free (again);
        free (text);
    }
}

CASE (through_packing)
{
    struct packed p = { NULL };
    struct event back;
    size_t at = 0;

    for (int op = 0; op < EVENT_OPS; op++) {
        struct event e = full ((enum event_op)op);
        e.json = op == EVENT_CREATE || op == EVENT_DONE ? json_pack ("[{s:i}]", "a", 1) : NULL;
        event_pack (&p, &e);
        json_decref (e.json);
    }
    for (int op = 0; op < EVENT_OPS; op++) {
        struct event e = full ((enum event_op)op);
        char *want, *have;
        assert_int_equal (event_unpack (p.data, p.size, &at, &back), UNPACK_EVENT);
        assert_int_equal (json_array_size (back.json), op == EVENT_CREATE || op == EVENT_DONE);
        json_decref (back.json);
        back.json = NULL;
        want = text_of (&e);
        have = text_of (&back);
        assert_string_equal (want, have);
        free (want);
        free (have);
    }
    assert_int_equal (event_unpack (p.data, p.size, &at, &back), UNPACK_END);
    packed_free (&p);
}

/* Truncated or changed bytes are rejected or give another event, but never crash. */
CASE (damaged_packing)
{
    struct event e = full (EVENT_RESULT);
    struct packed p = { NULL };
    struct event back;
    size_t at;

    event_pack (&p, &e);
    for (size_t size = 8; size < p.size; size += 8) {
        char *copy = malloc (size);
        memcpy (copy, p.data, size);
        at = 0;
        assert_int_equal (event_unpack (copy, size, &at, &back), UNPACK_INVALID);
        free (copy);
    }
    for (size_t i = 0; i < p.size; i++) {
        p.data[i] ^= 0x55;
        at = 0;
        if (event_unpack (p.data, p.size, &at, &back) == UNPACK_EVENT)
            json_decref (back.json);
        p.data[i] ^= 0x55;
    }
    packed_free (&p);
}

CASE (unknown_events)
{
    static const char *const bad[] = { "{}", "{\"op\": 1}", "{\"op\": \"x\"}" };
    struct event e;

    for (size_t i = 0; i < COUNT (bad); i++) {
        json_t *o = json_loads (bad[i], 0, NULL);
        assert_int_equal (event_read (o, &e), -1);
        assert_int_equal (errno, EINVAL);
        json_decref (o);
    }
}

RUN_CASES ()
