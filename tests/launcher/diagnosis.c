/* SPDX-License-Identifier: Apache-2.0 */
/* Check the verdicts on a healthy step, and on that step with one fault each. */
#include "launcher/node/diagnosis.h"
#include "launcher/node/checks.h"
#include "tests/unit.h"

/* Three nodes with two ranks each; rank r is on node r / 2. */
enum { SIZE = 6 };

static json_t *healthy_rank (long r)
{
    char host[16];

    snprintf (host, sizeof (host), "n%ld", r / 2 + 1);
    return json_pack ("{s:{s:s, s:i, s:s, s:s, s:s, s:f, s:{s:s, s:s, s:s}, "
                      "s:{s:f, s:f}, s:{s:{s:s}}}, s:[], s:{s:f}}",
                      "facts", "host", host, "local_rank", (int)(r % 2), "cores", "0-3", "nic",
                      "eth0", "address", "10.0.0.1", "skew", 0.01, "versions", "NCCL", "2.20.5",
                      "kernel", "6.1", "PyTorch", "2.3", "rates", "memory", 10.0, "GPU copy 00:1b",
                      1000.0, "gpus", "00:1b", "name", "H100", "findings", "rates", "network", 1.0);
}

static void find (json_t *rank, enum severity severity, const char *why)
{
    json_array_append_new (json_object_get (rank, "findings"), finding_json (severity, why));
}

static json_t *in (json_t *rank, const char *group)
{
    return json_object_get (json_object_get (rank, "facts"), group);
}

/* ---- the faults ---- */

static void nothing (json_t **r)
{
}

static void bad_gpu (json_t **r)
{
    find (r[3], SEVERITY_BAD, "GPU 00:1b: lost");
}

static void warm_gpu (json_t **r)
{
    find (r[3], SEVERITY_WARN, "GPU 00:1b: warm");
}

static void port_in_use (json_t **r)
{
    find (r[0], SEVERITY_STOP, "MASTER_PORT 1 cannot be used");
}

static void one_full (json_t **r)
{
    find (r[4], SEVERITY_SHARED, "working directory: full");
}

static void all_full (json_t **r)
{
    for (int i = 0; i < SIZE; i += 2)
        find (r[i], SEVERITY_SHARED, "working directory: full");
}

static void forget (json_t **r)
{
    json_decref (*r);
    *r = NULL;
}

static void silent_node (json_t **r)
{
    forget (&r[2]);
    forget (&r[3]);
}

static void silent_rank (json_t **r)
{
    forget (&r[3]);
}

static void all_silent_but_one (json_t **r)
{
    for (int i = 1; i < SIZE; i++)
        forget (&r[i]);
}

static void other_nccl (json_t **r)
{
    json_object_set_new (in (r[2], "versions"), "NCCL", json_string ("2.18"));
}

static void three_nccls (json_t **r)
{
    other_nccl (r);
    json_object_set_new (in (r[4], "versions"), "NCCL", json_string ("2.17"));
}

static void other_kernel (json_t **r)
{
    json_object_set_new (in (r[0], "versions"), "kernel", json_string ("5.4"));
}

static void no_versions (json_t **r)
{
    for (int i = 0; i < SIZE; i++)
        json_object_del (json_object_get (r[i], "facts"), "versions");
}

static void slow_gpu (json_t **r)
{
    json_object_set_new (in (r[5], "rates"), "GPU copy 00:1b", json_real (499));
}

static void slow_network (json_t **r)
{
    json_object_set_new (json_object_get (r[2], "rates"), "network", json_real (0.1));
}

static void clock_off (json_t **r)
{
    json_object_set_new (json_object_get (r[4], "facts"), "skew", json_real (-3.5));
}

static void nonsense (json_t **r)
{
    json_object_set_new (r[2], "findings", json_string ("none"));
    json_object_set_new (r[3], "facts", json_array ());
    json_object_set_new (json_object_get (r[4], "facts"), "versions", json_integer (1));
    json_object_set_new (json_object_get (r[5], "facts"), "gpus", json_real (1));
}

static void escapes (json_t **r)
{
    find (r[2], SEVERITY_BAD, "x");
    json_object_set_new (json_array_get (json_object_get (r[2], "findings"), 0), "why",
                         json_string ("a\033[31mred\nline"));
}

static void wrong_severity (json_t **r)
{
    json_array_append_new (json_object_get (r[2], "findings"),
                           json_pack ("{s:i, s:s}", "severity", 99, "why", "no such"));
}

#define G 0
#define A GATHER_AGAIN
#define N GATHER_THIS_NODE

/* clang-format off */
static const struct {
    void (*change) (json_t **ranks);
    int status[SIZE];
    const char *line; /* part of the line */
    const char *finding; /* part of the worst finding; NULL: do not check */
} verdicts[] = {
    { nothing,            { G, G, G, G, G, G }, "3 nodes, 6 ranks, 3 GPUs: good", NULL },
    { bad_gpu,            { A, A, N, N, A, A }, "BAD: n2: GPU 00:1b: lost", "n2: GPU" },
    { warm_gpu,           { G, G, G, G, G, G }, "good", "n2: GPU 00:1b: warm" },
    { port_in_use,        { A, A, A, A, A, A }, "BAD: n1: MASTER_PORT 1", "MASTER_PORT" },
    { one_full,           { A, A, A, A, N, N }, "BAD: n3: working directory: full", "full" },
    { all_full,           { A, A, A, A, A, A }, "BAD: n1, n2, n3: working directory: full", "full" },
    { silent_node,        { A, A, N, N, A, A }, "BAD: n2: no answer", "n2: no answer" },
    { silent_rank,        { A, A, N, N, A, A }, "BAD: n2: no answer from 1 of its 2 ranks", "n2" },
    { all_silent_but_one, { N, N, N, N, N, N }, "; and 1 more", "no answer" },
    { other_nccl,         { A, A, N, N, A, A }, "BAD: n2: NCCL 2.18, but 2.20.5 on 2 of 3 nodes", "NCCL" },
    { three_nccls,        { A, A, A, A, A, A }, "NCCL 2.1", "NCCL" },
    { other_kernel,       { G, G, G, G, G, G }, "good", "n1: kernel 5.4, but 6.1 on 2 of 3 nodes" },
    { no_versions,        { G, G, G, G, G, G }, "good", NULL },
    { slow_gpu,           { A, A, A, A, N, N }, "BAD: n3: GPU copy 00:1b: 499 GB/s", "half of the nodes" },
    { slow_network,       { G, G, G, G, G, G }, "good", "n2: network: 0.1 GB/s" },
    { clock_off,          { G, G, G, G, G, G }, "good", NULL },
    { escapes,            { A, A, N, N, A, A }, "BAD: n2: a?[31mred?line", "a?[31mred?line" },
    { wrong_severity,     { G, G, G, G, G, G }, "good", NULL },
};
/* clang-format on */

static struct rank_layout *three_nodes (void)
{
    struct rank_layout *l = malloc (sizeof (*l));
    struct layout_facts f = {
        .hosts = "n[1-3]", .tasks = "2(x3)", .distribution = "block", .gtids = "0,1", .ranks = SIZE
    };

    assert_non_null (l);
    assert_int_equal (layout_fill (l, &f), 0);
    return l;
}

CASE (all_verdicts)
{
    struct rank_layout *l = three_nodes ();

    for (size_t i = 0; i < COUNT (verdicts); i++) {
        json_t *ranks[SIZE];
        struct diagnosis *d;
        char text[512];
        for (long r = 0; r < SIZE; r++)
            assert_non_null (ranks[r] = healthy_rank (r));
        verdicts[i].change (ranks);
        assert_non_null (d = diagnosis_create (ranks, SIZE, l));
        for (long r = 0; r < SIZE; r++)
            assert_int_equal (diagnosis_status (d, r), verdicts[i].status[r]);
        diagnosis_line (d, text, sizeof (text));
        if (!strstr (text, verdicts[i].line))
            fail_msg ("row %zu: %s", i, text);
        if (verdicts[i].finding) {
            finding_text (d, &d->findings[0], text, sizeof (text));
            if (!strstr (text, verdicts[i].finding))
                fail_msg ("row %zu: %s", i, text);
        }
        diagnosis_destroy (d);
        for (long r = 0; r < SIZE; r++)
            json_decref (ranks[r]);
    }
    free (l);
}

/* Values of the wrong type are ignored. */
CASE (of_wrong_types)
{
    struct rank_layout *l = three_nodes ();
    FILE *null = fopen ("/dev/null", "w");
    json_t *ranks[SIZE];
    struct diagnosis *d;

    for (long r = 0; r < SIZE; r++)
        ranks[r] = healthy_rank (r);
    nonsense (ranks);
    assert_non_null (d = diagnosis_create (ranks, SIZE, l));
    diagnosis_print (d, null);
    ranks_print (ranks, SIZE, null);
    assert_false (d->stop);
    diagnosis_destroy (d);
    for (long r = 0; r < SIZE; r++)
        json_decref (ranks[r]);
    fclose (null);
    free (l);
}

/* Without a layout, no node is blamed for ranks that do not answer. */
CASE (unknown_places)
{
    json_t *ranks[SIZE] = { 0 };
    struct diagnosis *d;
    char text[512];

    ranks[0] = healthy_rank (0);
    assert_non_null (d = diagnosis_create (ranks, SIZE, NULL));
    assert_int_equal (diagnosis_status (d, 0), GATHER_AGAIN);
    assert_int_equal (diagnosis_status (d, 5), GATHER_AGAIN);
    diagnosis_line (d, text, sizeof (text));
    assert_non_null (strstr (text, "no answer from 5 of 6 ranks"));
    diagnosis_destroy (d);
    json_decref (ranks[0]);
}

/* ---- output ---- */

/* Remove column padding. */
static void squeeze (char *text)
{
    char *to = text;

    for (const char *at = text; *at; at++)
        if (*at != ' ' || (at[1] != ' ' && at[1] != '\n'))
            *to++ = *at;
    *to = '\0';
}

static void printed (json_t **ranks, long size, const char *wanted)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream (&text, &n);
    struct diagnosis *d = diagnosis_create (ranks, size, NULL);

    assert_non_null (d);
    diagnosis_print (d, f);
    fclose (f);
    squeeze (text);
    assert_string_equal (text, wanted);
    free (text);
    diagnosis_destroy (d);
}

CASE (all_findings)
{
    json_t *ranks[SIZE];

    for (long r = 0; r < SIZE; r++)
        ranks[r] = healthy_rank (r);
    warm_gpu (ranks);
    slow_gpu (ranks);
    slow_network (ranks);
    other_kernel (ranks);
    clock_off (ranks);
    printed (ranks, SIZE,
             "NODE RANKS GPUS GPU CORES NETWORK ADDRESS STATE\n"
             "n1 2 1 H100 0-3 eth0 10.0.0.1 good\n"
             "n2 2 1 H100 0-3 eth0 10.0.0.1 good\n"
             "n3 2 1 H100 0-3 eth0 10.0.0.1 BAD\n"
             "dl: check: bad: n3: GPU copy 00:1b: 499 GB/s, half of the nodes have "
             "1000 or more\n"
             "dl: check: warning: n2: GPU 00:1b: warm\n"
             "dl: check: warning: n1: kernel 5.4, but 6.1 on 2 of 3 nodes\n"
             "dl: check: warning: n2: network: 0.1 GB/s, half of the nodes have 1 "
             "or more\n"
             "dl: check: note: GPU copy: 499 to 1000 GB/s, median 1000\n"
             "dl: check: note: memory: 10 to 10 GB/s, median 10\n"
             "dl: check: note: network: 0.1 to 1 GB/s, median 1\n"
             "dl: check: note: clocks differ by 3.5 s: n3 is ahead of n1\n");
    for (long r = 0; r < SIZE; r++)
        json_decref (ranks[r]);
}

/* With many nodes, the table lists only nodes with a fault. */
CASE (many_nodes)
{
    enum { NODES = 65 };
    json_t *ranks[NODES];
    char host[16];

    for (long r = 0; r < NODES; r++) {
        ranks[r] = healthy_rank (r);
        snprintf (host, sizeof (host), "n%ld", r + 1);
        json_t *facts = json_object_get (ranks[r], "facts");
        json_object_set_new (facts, "host", json_string (host));
        json_object_set_new (facts, "local_rank", json_integer (0));
        json_object_del (facts, "rates");
        json_object_del (ranks[r], "rates");
    }
    find (ranks[7], SEVERITY_BAD, "lost");
    for (long r = 20; r < 28; r++)
        find (ranks[r], SEVERITY_WARN, "warm");
    for (long r = 20; r < 30; r++)
        find (ranks[r], SEVERITY_WARN, "hot");
    find (ranks[30], SEVERITY_NOTE, "of one");
    printed (ranks, NODES,
             "NODE RANKS GPUS GPU CORES NETWORK ADDRESS STATE\n"
             "n8 1 1 H100 0-3 eth0 10.0.0.1 BAD\n"
             "dl: check: bad: n8: lost\n"
             "dl: check: warning: n21, n22, n23, n24, n25, n26, n27, n28 and 2 "
             "more: hot\n"
             "dl: check: warning: n21, n22, n23, n24, n25, n26, n27, n28: "
             "warm\n");
    for (long r = 0; r < NODES; r++)
        json_decref (ranks[r]);
}

CASE (the_place_of_each_rank)
{
    json_t *ranks[3] = { healthy_rank (0), NULL, healthy_rank (3) };
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream (&text, &n);

    json_object_set_new (in (ranks[2], "gpus"), "00:1c", json_object ());
    json_object_del (json_object_get (ranks[0], "facts"), "gpus");
    ranks_print (ranks, 3, f);
    fclose (f);
    squeeze (text);
    assert_string_equal (text, "RANK NODE LOCAL PID GPUS CORES NETWORK ADDRESS\n"
                               "0 n1 0 - - 0-3 eth0 10.0.0.1\n"
                               "1 (no answer)\n"
                               "2 n2 1 - 00:1b,00:1c 0-3 eth0 10.0.0.1\n");
    free (text);
    json_decref (ranks[0]);
    json_decref (ranks[2]);
}

RUN_CASES ()
