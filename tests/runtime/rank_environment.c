/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a rank as a function of facts about its job. */
#include "runtime/rank/rank_environment.h"
#include "runtime/base/nearest_word.h"
#include "tests/runtime/golden.h"
#include "tests/runtime/steps.h"
#include "tests/unit.h"

/* clang-format off */
static const struct {
    const char *reserved;
    long tasks;
    int master, second, third, first; /* 0: not among the reserved ports */
} ports[] = {
    { "41004-41006",       1, 41004, 41005, 41006, 41005 },
    { "41004-41006",       2, 41004, 41005, 41006, 41005 },
    { "41004-41006",       3, 41004, 41005, 41006, 0 },
    { "41004,41006-41008", 3, 41004, 41006, 41007, 41006 },
    { "41004,41006,41008", 2, 41004, 41006, 41008, 0 },
    { "41004-41005",       1, 41004, 41005, 0,     41005 },
    { "41004",             1, 41004, 0,     0,     0 },
    { "",                  1, 0,     0,     0,     0 },
    { NULL,                1, 0,     0,     0,     0 },
    { "x",                 1, 0,     0,     0,     0 },
    { "0-3",               1, 0,     0,     0,     0 },
    { "70000",             1, 0,     0,     0,     0 },
    { "41004;",            1, 0,     0,     0,     0 },
    { "41004-41003",       1, 0,     0,     0,     0 },
};

/* clang-format on */

CASE (ports_are_chosen)
{
    for (size_t i = 0; i < COUNT (ports); i++) {
        struct rank_ports p =
            rank_environment_ports (ports[i].reserved, 1, 0, 32768, ports[i].tasks);
        if (ports[i].master)
            assert_int_equal (p.master, ports[i].master);
        else
            assert_in_range (p.master, 26768, 32767);
        if (ports[i].second)
            assert_int_equal (p.second, ports[i].second);
        else
            assert_in_range (p.second, 26768, 32767);
        if (ports[i].third)
            assert_int_equal (p.third, ports[i].third);
        else
            assert_in_range (p.third, 26768, 32767);
        if (ports[i].first)
            assert_int_equal (p.tasks, ports[i].first);
        else
            assert_in_range (p.tasks, 20768, 26768 - RANK_TASK_PORTS);
    }
    assert_in_range (rank_environment_ports (NULL, 1, 0, 1024, 1).master, 16000, 21999);
    assert_int_equal (rank_environment_ports (NULL, 1, 0, 32768, 65).tasks, 0);
    assert_int_not_equal (rank_environment_ports (NULL, 1, 0, 32768, 64).tasks, 0);
}

/* Steps of a job never share a port; different jobs may, by chance. */
CASE (ports_differ)
{
    int seen[12000] = { 0 };
    int most = 0;

    for (uint32_t job = 1; job <= 1000; job++) {
        int used[12000] = { 0 };
        for (uint32_t step = 0; step < 93; step++) {
            struct rank_ports p = rank_environment_ports (NULL, job, step, 32768, 64);
            assert_int_equal (p.second, p.master + 1);
            assert_int_equal (used[p.master - 20768]++, 0);
            assert_int_equal (used[p.second - 20768]++, 0);
            assert_int_equal (used[p.third - 20768]++, 0);
            for (int i = 0; i < 64; i++)
                assert_int_equal (used[p.tasks + i - 20768]++, 0);
            if (step < 3 && ++seen[p.master - 20768] > most)
                most = seen[p.master - 20768];
        }
    }
    assert_in_range (most, 1, 8);
}

/* ---- golden environments ---- */

struct scene {
    struct rank_facts f;
    struct rank_roles r;
    struct rank_layout l;
    struct rank_environment e;
};

static long node_of (const struct step *s, long rank)
{
    for (int i = 0; i < 4 && s->gtids[i]; i++)
        for (const char *p = s->gtids[i]; p; p = strchr (p, ',')) {
            p += *p == ',';
            if (strtol (p, NULL, 10) == rank)
                return i;
        }
    return -1;
}

/* Set the facts that the plugin would find.  The resolver knows the hosts: n3
 * is 10.0.0.3.  --resv-ports gave the ports from 41000 on.
 */
static void set_scene (struct scene *c, const struct golden *g)
{
    const struct step *s = &steps[g->step];
    struct rank_facts *f = &c->f;
    const char *text = g->roles ? g->roles : rank_environment_roles (g->framework);
    long first;

    memset (c, 0, sizeof (*c));
    f->rank = g->rank;
    f->node = node_of (s, g->rank);
    for (; s->gtids[f->nodes]; f->nodes++)
        f->size += layout_count (s->gtids[f->nodes]);
    f->local_size = layout_count (s->gtids[f->node]);
    for (const char *p = s->gtids[f->node]; strtol (p, NULL, 10) != g->rank;
         p = strchr (p, ',') + 1)
        f->local_rank++;
    f->port = 41000;
    f->port2 = f->task_port = 41001;
    strcpy (f->interface, f->nodes > 1 ? "ib0" : "lo");
    strcpy (f->own_address, f->nodes > 1 ? "10.0.0.9" : "127.0.0.1");
    if (text) {
        assert_int_equal (roles_parse (text, &c->r, NULL, 0), 0);
        assert_int_equal (roles_resolve (&c->r, f->size, NULL, 0), 0);
        f->roles = &c->r;
    }
    if (lay_out (&c->l, s, f->node) < 0)
        return;
    f->layout = &c->l;
    strcpy (f->own, layout_host (&c->l, g->rank));
    first = rank_environment_master_rank (f->roles);
    strcpy (f->master, f->nodes > 1 ? layout_host (&c->l, first) : "127.0.0.1");
    sprintf (f->address, f->nodes > 1 ? "10.0.0.%s" : "127.0.0.%s",
             f->nodes > 1 ? f->master + 1 : "1");
}

static const char *env_of (const struct rank_environment *e, char *text)
{
    *text = '\0';
    for (int i = 0; i < e->n; i++)
        sprintf (text + strlen (text), "%s%s=%s", i ? " " : "", e->vars[i].name, e->vars[i].value);
    return text;
}

CASE (golden_environments)
{
    static char text[RANK_TEXT];
    struct scene *c = malloc (sizeof (*c));

    for (size_t i = 0; i < COUNT (golden); i++) {
        set_scene (c, &golden[i]);
        assert_true (rank_environment_fill (golden[i].framework, &c->f, &c->e) >= 0);
        assert_string_equal (env_of (&c->e, text), golden[i].env);
        if (golden[i].why)
            assert_non_null (strstr (c->e.why, golden[i].why));
        else
            assert_string_equal (c->e.why, "");
    }
    free (c);
}

static const char *value_of (const struct rank_environment *e, const char *name)
{
    for (int i = 0; i < e->n; i++)
        if (!strcmp (e->vars[i].name, name))
            return e->vars[i].value;
    return NULL;
}

/* torchrun starts one process per GPU; JAX must be told which GPUs to use. */
CASE (gpus)
{
    static const struct {
        long visible, local_size;
        const char *ids;
    } rows[] = {
        { 0, 1, NULL }, { 1, 4, "0" }, { 4, 4, NULL }, { 4, 1, "0,1,2,3" }, { 1, 1, "0" }
    };
    struct golden g = { "jax", 3, 1, NULL, NULL, NULL };
    struct scene *c = malloc (sizeof (*c));

    for (size_t i = 0; i < COUNT (rows); i++) {
        const char *ids;
        set_scene (c, &g);
        c->f.visible_gpus = rows[i].visible;
        c->f.local_size = rows[i].local_size;
        rank_environment_fill ("jax", &c->f, &c->e);
        ids = value_of (&c->e, "JAX_LOCAL_DEVICE_IDS");
        if (rows[i].ids)
            assert_string_equal (ids, rows[i].ids);
        else
            assert_null (ids);
    }
    c->f.gpus = 8;
    rank_environment_fill ("torchrun", &c->f, &c->e);
    assert_string_equal (value_of (&c->e, "PET_NPROC_PER_NODE"), "8");
    free (c);
}

/* No framework gets DL_COMM_ADDRESS: rank 0 chooses its port itself, and nobody
 * knows it beforehand.
 */
CASE (communicator)
{
    struct golden g = { "torch", 1, 5, NULL, NULL, NULL };
    struct scene *c = malloc (sizeof (*c));

    for (int i = 0; rank_environment_frameworks[i]; i++) {
        g.framework = rank_environment_frameworks[i];
        set_scene (c, &g);
        rank_environment_fill (g.framework, &c->f, &c->e);
        assert_null (value_of (&c->e, "DL_COMM_ADDRESS"));
    }
    free (c);
}

/* 1024 tasks on 256 hosts fit; a longer list is left out, with a reason. */
CASE (long_lists)
{
    struct golden g = { "tf", 0, 0, NULL, NULL, NULL };
    struct scene *c = malloc (sizeof (*c));
    struct layout_facts f = {
        .hosts = "node[0001-0256]", .tasks = "4(x256)", .ranks = 1024, .gtids = "0,1,2,3"
    };

    set_scene (c, &g);
    c->f.nodes = 256;
    c->f.size = c->r.row[0].count = 1024;
    assert_int_equal (layout_fill (&c->l, &f), 0);
    assert_int_equal (rank_environment_fill ("tf", &c->f, &c->e), 3);
    assert_in_range (strlen (value_of (&c->e, "TF_CONFIG")), 17000, 18000);
    assert_non_null (strstr (value_of (&c->e, "TF_CONFIG"), "\"node0256:41004\"]"));
    f.hosts = "node[0001-2048]";
    f.tasks = "4(x2048)";
    c->f.nodes = 2048;
    c->f.size = f.ranks = c->r.row[0].count = 8192;
    assert_int_equal (layout_fill (&c->l, &f), 0);
    assert_int_equal (rank_environment_fill ("tf", &c->f, &c->e), 0);
    assert_string_equal (c->e.why, "TF_CONFIG is not set: its list of hosts is longer "
                                   "than 100000 bytes");
    assert_true (rank_environment_fill ("paddle", &c->f, &c->e) > 0);
    assert_null (value_of (&c->e, "PADDLE_TRAINER_ENDPOINTS"));
    free (c);
}

CASE (a_worker_needs_more_than_one_thread)
{
    struct golden g = { "tf", 1, 5, "chief:1,ps:2,worker:*,evaluator:1", NULL, NULL };
    struct scene *c = malloc (sizeof (*c));

    set_scene (c, &g);
    assert_true (rank_environment_fill ("tf", &c->f, &c->e) > 0);
    assert_null (value_of (&c->e, "TF_NUM_INTEROP_THREADS"));
    c->f.one_cpu = true;
    assert_true (rank_environment_fill ("tf", &c->f, &c->e) > 0);
    assert_string_equal (value_of (&c->e, "TF_NUM_INTEROP_THREADS"), "2");
    g.roles = NULL;
    set_scene (c, &g);
    c->f.one_cpu = true;
    assert_true (rank_environment_fill ("tf", &c->f, &c->e) > 0);
    assert_null (value_of (&c->e, "TF_NUM_INTEROP_THREADS"));
    free (c);
}

CASE (lists_need_ports)
{
    struct golden g = { "tf", 1, 0, NULL, NULL, NULL };
    struct scene *c = malloc (sizeof (*c));

    set_scene (c, &g);
    c->f.task_port = 0;
    assert_int_equal (rank_environment_fill ("tf", &c->f, &c->e), 0);
    assert_non_null (strstr (c->e.why, "MpiParams=ports="));
    assert_int_equal (rank_environment_fill ("paddle", &c->f, &c->e), 0);
    assert_true (rank_environment_needs_task_ports ("tf"));
    assert_false (rank_environment_needs_task_ports ("torch"));
    c->f.task_port = 20000;
    c->f.one_machine = true; /* so no two tasks may share a port */
    rank_environment_fill ("paddle", &c->f, &c->e);
    assert_string_equal (value_of (&c->e, "PADDLE_TRAINER_ENDPOINTS"),
                         "127.0.0.1:20000,127.0.0.1:20001,127.0.0.1:20002,"
                         "127.0.0.1:20003,127.0.0.1:20004,127.0.0.1:20005,"
                         "127.0.0.1:20006,127.0.0.1:20007");
    free (c);
}

/* Every name in the list has a row, and no other name has one. */
CASE (frameworks_are_known)
{
    struct golden g = { "torch", 1, 5, NULL, NULL, NULL };
    struct scene *c = malloc (sizeof (*c));

    for (int i = 0; rank_environment_frameworks[i]; i++) {
        g.framework = rank_environment_frameworks[i];
        set_scene (c, &g);
        c->f.pmi = RANK_PMI_X;
        assert_true (rank_environment_fill (g.framework, &c->f, &c->e) >= 0);
        assert_int_equal (c->e.n == 0,
                          !strcmp (g.framework, "off") || !strcmp (g.framework, "torchrun"));
    }
    assert_int_equal (rank_environment_fill ("toch", &c->f, &c->e), -1);
    assert_int_equal (errno, EINVAL);
    assert_string_equal (nearest_word ("toch", rank_environment_frameworks), "torch");
    free (c);
}

RUN_CASES ()
