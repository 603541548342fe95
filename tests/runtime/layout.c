/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank is where, and what its role is. */
#include "runtime/rank/layout.h"
#include "runtime/rank/roles.h"
#include "tests/runtime/steps.h"
#include "tests/unit.h"

#define TEN(text)   text text text text text text text text text text
#define LONG_PREFIX TEN ("abcdefghijklmnopqrstuvwxy") "abcd" /* 254 bytes */

/* clang-format off */
static const struct {
    const char *list, *first; /* NULL: EINVAL */
} hosts[] = {
    { "n1",                   "n1" },
    { "n1,n2",                "n1" },
    { "n[1-4,7],x3",          "n1" },
    { "n[7,1-4]",             "n7" },
    { "gpu-a[001-010]",       "gpu-a001" },
    { "a[1-2]b[3-4]",         "a1b3" },
    { "rack[0-3]-node[08,9]", "rack0-node08" },
    { "a[1-2].example.org",   "a1.example.org" },
    /* a host name with so long a prefix does not fit */
    { LONG_PREFIX "[001-002]",       NULL },
    { LONG_PREFIX "a[1-2]",          NULL },
    { LONG_PREFIX LONG_PREFIX "[1-2]", NULL },
    { "",                     NULL },
    { ",n1",                  NULL },
    { "n[",                   NULL },
    { "n[1-2",                NULL },
    { "n[]",                  NULL },
    { "n]",                   NULL },
    { "n[3-1]",               NULL },
    { "n[1;2]",               NULL },
    { "n[1-1234567890]",      NULL },
};

static const struct {
    const char *spec;
    long node, tasks; /* -1: EINVAL */
} tasks[] = {
    { "1",        0, 1 },  { "4(x2),3",  0, 4 },  { "4(x2),3",  1, 4 },
    { "4(x2),3",  2, 3 },  { "4(x2),3",  3, -1 }, { "1,2(x3),5", 3, 2 },
    { "1,2(x3),5", 4, 5 }, { "",         0, -1 }, { "x",        0, -1 },
    { "4(x2",     0, -1 }, { "4(x0)",    0, -1 }, { "4(",       0, -1 },
};
/* clang-format on */

CASE (first_hosts)
{
    char buf[64];

    for (size_t i = 0; i < COUNT (hosts); i++) {
        int rv = layout_first_host (hosts[i].list, buf, sizeof (buf));
        assert_int_equal (rv, hosts[i].first ? 0 : -1);
        if (hosts[i].first)
            assert_string_equal (buf, hosts[i].first);
    }
    assert_int_equal (layout_first_host ("abcdef", buf, 6), -1);
    assert_int_equal (layout_first_host ("abcde", buf, 6), 0);
}

CASE (tasks_of_nodes)
{
    for (size_t i = 0; i < COUNT (tasks); i++)
        assert_int_equal (layout_tasks_of_node (tasks[i].spec, tasks[i].node), tasks[i].tasks);
}

CASE (layouts)
{
    struct rank_layout *l = calloc (1, sizeof (*l));

    assert_non_null (l);
    for (size_t i = 0; i < COUNT (steps); i++)
        for (int node = 0; node < 4 && steps[i].gtids[node]; node++) {
            char text[400] = "";
            errno = 0;
            if (lay_out (l, &steps[i], node) < 0) {
                assert_null (steps[i].want);
                assert_int_equal (errno, steps[i].error);
                continue;
            }
            for (long r = 0; r < l->ranks; r++)
                sprintf (text + strlen (text), "%s%s/%d", r ? " " : "", layout_host (l, r),
                         l->local_of[r]);
            assert_string_equal (text, steps[i].want);
        }
    free (l);
}

CASE (layouts_have_limits)
{
    struct rank_layout *l = calloc (1, sizeof (*l));
    struct layout_facts f = {
        .hosts = "n[1-4096]", .tasks = "8(x4096)", .ranks = 32768, .node = 1
    };

    f.gtids = "8,9,10,11,12,13,14,15";
    assert_int_equal (layout_fill (l, &f), 0);
    assert_string_equal (layout_host (l, 32767), "n4096");
    f.hosts = "n[1-4097]";
    assert_int_equal (layout_fill (l, &f), -1);
    assert_int_equal (errno, E2BIG);
    f.hosts = "n[1-999999999]";
    assert_int_equal (layout_fill (l, &f), -1);
    assert_int_equal (errno, E2BIG);
    f.ranks = 32769;
    assert_int_equal (layout_fill (l, &f), -1);
    assert_int_equal (errno, E2BIG);
    free (l);
}

CASE (cross_ranks)
{
    struct rank_layout *l = calloc (1, sizeof (*l));
    long before;

    assert_int_equal (lay_out (l, &steps[2], 2), 0); /* nodes with 4, 4 and 3 tasks */
    assert_int_equal (layout_cross (l, 2, 2, &before), 3);
    assert_int_equal (before, 2);
    assert_int_equal (layout_cross (l, 3, 1, &before), 2);
    assert_int_equal (before, 1);
    free (l);
}

/* clang-format off */
static const struct {
    const char *text;
    long ranks;
    const char *want; /* "role.index" of each rank; NULL: rejected */
    const char *why;  /* part of the reason */
} roles[] = {
    { "worker:*",                   3, "worker.0 worker.1 worker.2",       NULL },
    { "chief:1,ps:2,worker:*",      5, "chief.0 ps.0 ps.1 worker.0 worker.1", NULL },
    { "worker:*,evaluator:1",       3, "worker.0 worker.1 evaluator.0",    NULL },
    { "chief:1,ps:2,worker:*,evaluator:1", 5, "chief.0 ps.0 ps.1 worker.0 evaluator.0", NULL },
    { "scheduler:1,server:1,worker:1", 3, "scheduler.0 server.0 worker.0", NULL },
    { "master:1,worker:2",          3, "master.0 worker.0 worker.1",       NULL },
    { "chief:*",                    1, NULL, "there is one chief" },
    { "chief:2",                    2, NULL, "there is one chief" },
    { "worker:2",                   3, NULL, "need 2 tasks; the step has 3" },
    { "ps:2,worker:*",              2, NULL, "at least 3 tasks; the step has 2" },
    { "worker:1,worker:1",          2, NULL, "given twice" },
    { "worker:*,ps:*",              2, NULL, "more than one '*'" },
    { "wroker:1",                   1, NULL, "did you mean worker?" },
    { "",                           1, NULL, "no role ''" },
    { "worker",                     1, NULL, "needs a number" },
    { "worker:",                    1, NULL, "needs a number" },
    { "worker:0",                   1, NULL, "needs a number" },
    { "worker:-1",                  1, NULL, "needs a number" },
    { "worker:1234567",             1, NULL, "needs a number" },
    { "worker:1,",                  1, NULL, "no role ''" },
    { "worker:1 ",                  1, NULL, "',' is missing" },
    { "worker:1;ps:1",              2, NULL, "',' is missing" },
};
/* clang-format on */

CASE (roles_of_ranks)
{
    for (size_t i = 0; i < COUNT (roles); i++) {
        struct rank_roles r;
        char why[160] = "";
        char text[200] = "";
        int rv = roles_parse (roles[i].text, &r, why, sizeof (why));
        if (rv == 0)
            rv = roles_resolve (&r, roles[i].ranks, why, sizeof (why));
        assert_int_equal (rv, roles[i].want ? 0 : -1);
        if (rv < 0) {
            assert_non_null (strstr (why, roles[i].why));
            continue;
        }
        for (long rank = 0; rank < roles[i].ranks; rank++) {
            long index;
            const char *name = role_names[roles_of (&r, rank, &index)];
            sprintf (text + strlen (text), "%s%s.%ld", rank ? " " : "", name, index);
        }
        assert_string_equal (text, roles[i].want);
    }
}

static uint32_t seed = 12345;

static uint32_t next_random (uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static void make_text (const char *letters, char *buf, size_t size)
{
    size_t n = next_random ((uint32_t)size);

    for (size_t i = 0; i < n; i++)
        buf[i] = letters[next_random ((uint32_t)strlen (letters))];
    buf[n] = '\0';
}

/* Change some letters of a valid text. */
static void change_text (const char *letters, char *text)
{
    size_t n = strlen (text);

    for (uint32_t k = next_random (4); n && k > 0; k--)
        text[next_random ((uint32_t)n)] = letters[next_random ((uint32_t)strlen (letters))];
}

CASE (fuzz_roles)
{
    static const char letters[] = "cwps:,*1290 hiefork;";
    long taken = 0;

    for (int i = 0; i < 200000; i++) {
        char text[96];
        char why[160];
        struct rank_roles r;
        if (i % 2) {
            make_text (letters, text, sizeof (text));
        } else {
            strcpy (text, "chief:1,ps:2,worker:*,evaluator:1");
            change_text (letters, text);
        }
        if (roles_parse (text, &r, why, sizeof (why)) < 0)
            continue;
        taken++;
        assert_in_range (r.n, 1, ROLES);
        if (roles_resolve (&r, 7, why, sizeof (why)) == 0) {
            long sum = 0;
            for (int k = 0; k < r.n; k++)
                sum += r.row[k].count;
            assert_int_equal (sum, 7);
        }
    }
    assert_in_range (taken, 10000, 100000);
}

CASE (fuzz_layouts)
{
    static const char letters[] = "n[]1230,-(x)a";
    struct rank_layout *l = calloc (1, sizeof (*l));
    long filled = 0;

    for (int i = 0; i < 200000; i++) {
        char names[48] = "n[1-2,7],a3";
        char spec[24] = "2(x3),1";
        char gtids[24] = "2,3";
        struct layout_facts f = { .hosts = names,
                                  .tasks = spec,
                                  .gtids = gtids,
                                  .node = 1,
                                  .ranks = 7,
                                  .distribution = "block" };
        if (i % 4 == 0)
            make_text (letters, names, sizeof (names));
        else if (i % 4 == 1)
            change_text (letters, names);
        else if (i % 4 == 2)
            change_text (letters, spec);
        else
            change_text (letters, gtids);
        if (layout_fill (l, &f) < 0)
            continue;
        filled++;
        for (long r = 0; r < l->ranks; r++)
            assert_in_range (l->node_of[r], 0, l->nodes - 1);
    }
    assert_in_range (filled, 1000, 199999);
    free (l);
}

RUN_CASES ()
