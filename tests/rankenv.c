/* SPDX-License-Identifier: Apache-2.0 */
/* The rank environment as a function of facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/rankenv.h"
#include "runtime/word.h"

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
    { "",                     NULL },
    { ",n1",                  NULL },
    { "n[",                   NULL },
    { "n[1-2",                NULL },
    { "n[]",                  NULL },
    { "n]",                   NULL },
};

static const struct {
    const char *spec;
    long node, tasks; /* -1: EINVAL */
} tasks[] = {
    { "1",        0, 1 },  { "4(x2),3",  0, 4 },  { "4(x2),3",  1, 4 },
    { "4(x2),3",  2, 3 },  { "4(x2),3",  3, -1 }, { "1,2(x3),5", 3, 2 },
    { "1,2(x3),5", 4, 5 }, { "",         0, -1 }, { "x",        0, -1 },
    { "4(x2",     0, -1 }, { "4(x0)",    0, -1 }, { "4(",       0, 4 },
};

static const struct {
    const char *reserved;
    int port; /* 0: not from the reservation */
} ports[] = {
    { "41004-41006", 41004 }, { "41004,41006", 41004 }, { "41004", 41004 },
    { "", 0 }, { NULL, 0 }, { "x", 0 }, { "0-3", 0 }, { "70000", 0 }, { "41004;", 0 },
};
/* clang-format on */

#define COUNT(a) (sizeof (a) / sizeof (*(a)))

static void first_hosts (void **state)
{
    char buf[64];

    (void)state;
    for (size_t i = 0; i < COUNT (hosts); i++) {
        int rv = rankenv_first_host (hosts[i].list, buf, sizeof (buf));
        assert_int_equal (rv, hosts[i].first ? 0 : -1);
        if (hosts[i].first)
            assert_string_equal (buf, hosts[i].first);
    }
    assert_int_equal (rankenv_first_host ("abcdef", buf, 6), -1);
    assert_int_equal (rankenv_first_host ("abcde", buf, 6), 0);
}

static void tasks_of_nodes (void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT (tasks); i++)
        assert_int_equal (rankenv_tasks_of_node (tasks[i].spec, tasks[i].node),
                          tasks[i].tasks);
}

static void ports_are_chosen (void **state)
{
    int seen[12000] = { 0 };
    int most = 0;

    (void)state;
    for (size_t i = 0; i < COUNT (ports); i++) {
        int port = rankenv_port (ports[i].reserved, 1, 0, 32768);
        if (ports[i].port)
            assert_int_equal (port, ports[i].port);
        else
            assert_in_range (port, 20768, 32767);
    }
    assert_in_range (rankenv_port (NULL, 1, 0, 1024), 10000, 21999);
    /* 1,000 neighbouring jobs with 3 steps meet as chance has it */
    for (uint32_t job = 1; job <= 1000; job++)
        for (uint32_t step = 0; step < 3; step++) {
            int n = ++seen[rankenv_port (NULL, job, step, 32768) - 20768];
            most = n > most ? n : most;
        }
    assert_in_range (most, 1, 8);
}

static const struct rank_facts facts = {
    .rank = 5,
    .size = 8,
    .local_rank = 1,
    .local_size = 4,
    .node = 1,
    .nodes = 2,
    .master = "n1",
    .port = 41004,
    .interface = "eth0",
};

static void torch_variables (void **state)
{
    static const char *const want[] = {
        "RANK=5",
        "WORLD_SIZE=8",
        "LOCAL_RANK=1",
        "LOCAL_WORLD_SIZE=4",
        "NODE_RANK=1",
        "MASTER_ADDR=n1",
        "MASTER_PORT=41004",
        "GLOO_SOCKET_IFNAME=eth0",
    };
    struct rank_variable v[RANK_VARIABLES_MAX];
    struct rank_facts f = facts;
    char text[320];

    (void)state;
    assert_int_equal (rankenv_fill ("torch", &f, v), COUNT (want));
    for (size_t i = 0; i < COUNT (want); i++) {
        snprintf (text, sizeof (text), "%s=%s", v[i].name, v[i].value);
        assert_string_equal (text, want[i]);
    }
    f.interface[0] = '\0';
    assert_int_equal (rankenv_fill ("torch", &f, v), COUNT (want) - 1);
}

/* Every name in the list has a row, and no other name has one. */
static void frameworks_are_known (void **state)
{
    struct rank_variable v[RANK_VARIABLES_MAX];

    (void)state;
    for (int i = 0; rankenv_frameworks[i]; i++)
        assert_true (rankenv_fill (rankenv_frameworks[i], &facts, v) >= 0);
    assert_int_equal (rankenv_fill ("off", &facts, v), 0);
    assert_int_equal (rankenv_fill ("toch", &facts, v), -1);
    assert_int_equal (errno, EINVAL);
    assert_string_equal (nearest_word ("toch", rankenv_frameworks), "torch");
}

int main (void)
{
    const struct CMUnitTest tests_of_rankenv[] = {
        cmocka_unit_test (first_hosts),
        cmocka_unit_test (tasks_of_nodes),
        cmocka_unit_test (ports_are_chosen),
        cmocka_unit_test (torch_variables),
        cmocka_unit_test (frameworks_are_known),
    };
    return cmocka_run_group_tests_name (
        "rankenv", tests_of_rankenv, NULL, NULL);
}
