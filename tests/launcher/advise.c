/* SPDX-License-Identifier: Apache-2.0 */
/* Check the advice on how a step uses its nodes, from made-up samples. */
#include <poll.h>

#include "launcher/monitor/monitor.h"
#include "launcher/sys/gpu_readings.c"
#include "tests/folder.h"

#define GIB (1024.0 * 1024 * 1024)

/* ---- each row of the table ---- */

/* Two ranks on one node; the 'low' values are those of rank 1. */
struct made {
    double gpu, low_gpu; /* utilization, per cent; NaN: no GPU */
    double gpu_memory;   /* share that is used */
    double hot, capped;
    double cores, low_cores; /* busy cores, of 8 */
    double busiest, blocked, switches;
    double link, memory; /* shares that are used; NaN: no limit */
};

/* clang-format off */
static const struct {
    const char *rows; /* rows that apply, in order */
    struct made made;
} cases[] = {
    /*                           gpu  low  mem  hot  cap  cores low busy  block switch link  memory */
    { "",                      { 95,  95,  0.8, 0,   0,   3,   3,   0.9,  0,    10,    0.1,  0.5 } },
    { "idle",                  { 1,   1,   0.8, 0,   0,   0.1, 0.1, 0,    0,    0,     0,    0.5 } },
    { "gpu-storage",           { 40,  40,  0.8, 0,   0,   3,   3,   0.9,  0.5,  10,    0,    0.5 } },
    { "gpu-network",           { 40,  40,  0.8, 0,   0,   3,   3,   0.5,  0,    10,    0.8,  0.5 } },
    { "gpu-cores",             { 40,  40,  0.8, 0,   0,   7.5, 7.5, 1,    0,    10,    0,    0.5 } },
    { "gpu-loader",            { 43,  43,  0.8, 0,   0,   1,   1,   0.99, 0,    10,    0,    0.5 } },
    { "gpu-wait",              { 50,  50,  0.8, 0,   0,   2,   2,   0.4,  0,    10,    0,    0.5 } },
    { "gpu-wait",              { 59,  59,  0.8, 0,   0,   2,   2,   0.4,  0,    10,    0,    NAN } },
    { "",                      { 60,  60,  0.8, 0,   0,   2,   2,   0.4,  0,    10,    0,    NAN } },
    { "gpu-wait gpu-unused",   { 90,  0,   0.8, 0,   0,   2,   2,   0.4,  0,    10,    0,    0.5 } },
    { "gpu-balance",           { 98,  30,  0.8, 0,   0,   2,   2,   0.4,  0,    10,    0,    0.5 } },
    { "gpu-hot",               { 95,  95,  0.8, 0.2, 0.9, 2,   2,   0.4,  0,    10,    0,    0.5 } },
    { "gpu-capped",            { 95,  95,  0.8, 0,   0.9, 2,   2,   0.4,  0,    10,    0,    0.5 } },
    { "",                      { 95,  95,  0.8, 0,   0.3, 2,   2,   0.4,  0,    10,    0,    0.5 } },
    { "gpu-memory",            { 95,  95,  0.2, 0,   0,   2,   2,   0.4,  0,    10,    0,    0.5 } },
    { "gpu-loader gpu-memory", { 20,  20,  0.2, 0,   0,   1,   1,   0.99, 0,    10,    0,    0.5 } },
    { "storage",               { NAN, NAN, NAN, NAN, NAN, 6,   6,   0.9,  0.6,  10,    0,    0.5 } },
    { "network",               { NAN, NAN, NAN, NAN, NAN, 6,   6,   0.9,  0,    10,    0.7,  0.5 } },
    { "balance",               { NAN, NAN, NAN, NAN, NAN, 7,   1,   0.9,  0,    10,    0,    0.5 } },
    { "crowded",               { NAN, NAN, NAN, NAN, NAN, 8,   8,   0.9,  0,    900,   0,    0.5 } },
    { "cores",                 { NAN, NAN, NAN, NAN, NAN, 2,   2,   0.9,  0,    10,    0,    0.5 } },
    { "memory-full",           { NAN, NAN, NAN, NAN, NAN, 8,   8,   0.9,  0,    10,    0,    0.95 } },
    { "memory-free",           { NAN, NAN, NAN, NAN, NAN, 8,   8,   0.9,  0,    10,    0,    0.1 } },
    { "",                      { NAN, NAN, NAN, NAN, NAN, 8,   8,   0.9,  0,    10,    NAN,  NAN } },
};
/* clang-format on */

static void make_rank (struct usage_rank *r, const struct made *m, bool low)
{
    *r = (struct usage_rank){
        .rank = low,
        .cores = low ? m->low_cores : m->cores,
        .cores_given = 8,
        .busiest = m->busiest,
        .blocked = m->blocked,
        .switches = m->switches,
        .gpus = !isnan (m->gpu),
        .gpu_busy = low ? m->low_gpu : m->gpu,
    };
}

static void make (struct usage *u, struct usage_rank *ranks, struct usage_node *node)
{
    *u = (struct usage){ ranks, 2, node, 1, 60 };
    *node = (struct usage_node){ .name = "n1" };
}

static void make_gpus (struct usage_node *n, const struct made *m)
{
    if (isnan (m->gpu))
        return;
    n->ngpus = 2;
    for (int i = 0; i < 2; i++)
        n->gpus[i] = (struct usage_gpu){ .index = i,
                                         .rank = i,
                                         .busy = i ? m->low_gpu : m->gpu,
                                         .memory = m->gpu_memory * 80 * GIB,
                                         .memory_size = 80 * GIB,
                                         .hot = m->hot,
                                         .capped = m->capped };
}

CASE (table)
{
    struct usage u;
    struct usage_rank ranks[2];
    struct usage_node node;
    const struct pattern_row *rows[8];

    for (size_t i = 0; i < COUNT (cases); i++) {
        const struct made *m = &cases[i].made;
        char names[128] = "";
        make (&u, ranks, &node);
        make_rank (&ranks[0], m, false);
        make_rank (&ranks[1], m, true);
        make_gpus (&node, m);
        node.link = m->link;
        node.job_memory = !isnan (m->memory);
        node.memory = m->memory * GIB;
        node.limit = GIB;
        int n = advise (&u, rows, 8);
        for (int k = 0; k < n; k++)
            snprintf (names + strlen (names), sizeof (names) - strlen (names), "%s%s", k ? " " : "",
                      rows[k]->name);
        assert_string_equal (names, cases[i].rows);
        u.seconds = 4; /* a short step gets no advice */
        assert_int_equal (advise (&u, rows, 8), 0);
    }
}

CASE (all_rows_are_created)
{
    for (const struct pattern_row *r = advice_table; r->name; r++) {
        bool found = false;
        for (size_t i = 0; i < COUNT (cases); i++)
            found |= strstr (cases[i].rows, r->name) != NULL;
        assert_true (found);
    }
}

CASE (the_rank_behind)
{
    static const struct made m = { .gpu = 90, .low_gpu = 12, .cores = 1 };
    struct usage u;
    struct usage_rank ranks[2];
    struct usage_node node;
    char text[256];

    make (&u, ranks, &node);
    make_rank (&ranks[0], &m, false);
    make_rank (&ranks[1], &m, true);
    for (const struct pattern_row *r = advice_table; r->name; r++) {
        advice_text (&u, r, text, sizeof (text));
        assert_int_equal (strncmp (text, "rank 1 on n1: ", 14) == 0, r->of != OF_ALL);
    }
    u.nranks = 1;
    assert_null (advise_lowest (&u, OF_LOWEST_GPU));
}

/* ---- from a file ---- */

static struct series *create (const char *name, size_t max)
{
    struct metrics_file_about about = { .trial = 0 };
    struct slurmdl_error err = { "" };
    struct series *s = series_create (dir, -1, name, &about, max, &err);

    assert_string_equal (err.text, "");
    assert_non_null (s);
    return s;
}

#define GAUGE(v, ...)   series_put (s, SERIES_GAUGE, v, __VA_ARGS__)
#define COUNTER(v, ...) series_put (s, SERIES_COUNTER, v, __VA_ARGS__)

/* Rank 0 ends after 10 of 20 samples, a second apart. */
static void put_sample (struct series *s, int i)
{
    COUNTER (0.25 * i, "rank/1/cpu_user");
    COUNTER (0.25 * i, "rank/1/cpu_system");
    GAUGE (4, "rank/1/processes");
    GAUGE (8, "rank/1/cores");
    GAUGE (i % 2, "rank/1/blocked");
    COUNTER (1e6 * i, "rank/1/read");
    if (i < 10)
        COUNTER (1.0 * i, "rank/0/cpu_user");
    COUNTER (0, "rank/0/cpu_system");
    GAUGE (i < 10 ? 2 : 0, "rank/0/processes");
    GAUGE (i < 10 ? 100 + i : 0, "rank/0/memory");
    for (int g = 0; g < 4; g++) {
        GAUGE (g == 3 ? 10 : 50, "gpu/%d/busy", g);
        GAUGE (GIB, "gpu/%d/memory", g);
        GAUGE (80 * GIB, "gpu/%d/memory_size", g);
        COUNTER (300.0 * i, "gpu/%d/energy", g);
    }
    COUNTER (5e8 * i, "net/eth0/rx");
    GAUGE (1e9, "net/eth0/speed");
    GAUGE (NAN, "node/limit");
    GAUGE (10 * GIB, "node/memory");
    GAUGE (20 * GIB, "node/memory_size");
}

static void expect_usage (double slack)
{
    struct usage u;
    struct slurmdl_error err = { "" };

    assert_int_equal (usage_read (&u, dir, &err), 0);
    assert_int_equal (u.nranks, 2);
    assert_int_equal (u.nnodes, 1);
    assert_float_equal (u.seconds, 19, slack);
    assert_true (u.ranks[0].ended);
    assert_false (u.ranks[1].ended);
    assert_float_equal (u.ranks[0].cores, 1, 0.1 * slack + 1e-6);
    assert_float_equal (u.ranks[1].cores, 0.5, 1e-6);
    assert_float_equal (u.ranks[1].cores_given, 8, 1e-6);
    assert_float_equal (u.ranks[1].blocked, 0.5, 0.05 + 0.02 * slack);
    assert_float_equal (u.ranks[1].read, 1e6, 1);
    assert_float_equal (u.ranks[0].memory, 109, slack);
    /* no GPU has a known process, so ranks share the GPUs in order */
    assert_int_equal (u.nodes[0].ngpus, 4);
    assert_int_equal (u.ranks[0].gpus, 2);
    assert_float_equal (u.ranks[0].gpu_busy, 50, 1e-6);
    assert_float_equal (u.ranks[1].gpu_busy, 30, 1e-6);
    assert_float_equal (u.nodes[0].gpus[0].power, 300, 1e-6);
    assert_float_equal (u.nodes[0].link, 0.5, 1e-6);
    assert_float_equal (u.nodes[0].limit, 20 * GIB, 1);
    assert_false (u.nodes[0].job_memory);
    usage_free (&u);
}

FOLDER_CASE (from_a_file)
{
    struct series *s = create ("n1", 1 << 20);
    struct slurmdl_error err = { "" };
    struct usage u;

    for (int i = 0; i < 20; i++) {
        put_sample (s, i);
        assert_int_equal (series_end (s, 1000 + i), 0);
        if (i == 12) { /* read it while it is being written */
            assert_int_equal (usage_read (&u, dir, &err), 0);
            assert_float_equal (u.seconds, 12, 1e-6);
            usage_free (&u);
        }
    }
    series_destroy (s);
    expect_usage (1e-6);
    s = create ("n1", 1 << 20); /* n1.1.h5 replaces n1.h5 */
    for (int i = 0; i < 20; i++) {
        put_sample (s, i);
        series_end (s, 2000 + i);
    }
    series_destroy (s);
    expect_usage (1e-6);
}

/* The file merges old samples to bound its size; the averages stay the same. */
FOLDER_CASE (joined_samples)
{
    enum { MAX = 200 };
    struct series *s = create ("n1", MAX);
    struct slurmdl_error err = { "" };
    struct usage u;

    for (int i = 0; i < 20; i++) {
        put_sample (s, i);
        assert_int_equal (series_end (s, 1000 + i), 0);
    }
    expect_usage (4);
    for (int i = 20; i < 5000; i++) {
        put_sample (s, i);
        assert_int_equal (series_end (s, 1000 + i), 0);
    }
    series_destroy (s);
    assert_int_equal (usage_read (&u, dir, &err), 0);
    assert_float_equal (u.seconds, 4999, 1e-6);
    assert_float_equal (u.ranks[1].cores, 0.5, 1e-6);
    assert_float_equal (u.ranks[1].blocked, 0.5, 0.01);
    assert_float_equal (u.nodes[0].gpus[3].busy, 10, 1e-6);
    usage_free (&u);
    FILE *f = fopen (in_dir ("n1.h5"), "r");
    assert_non_null (f);
    fseek (f, 0, SEEK_END);
    assert_true (ftell (f) < 64 << 10);
    fclose (f);
}

FOLDER_CASE (no_samples)
{
    struct slurmdl_error err = { "" };
    struct usage u;
    FILE *f;

    assert_int_equal (usage_read (&u, dir, &err), -1);
    assert_int_equal (errno, ENOENT);
    f = fopen (in_dir ("n1.h5"), "w"); /* not an HDF5 file */
    fputs ("text", f);
    fclose (f);
    assert_int_equal (usage_read (&u, dir, NULL), -1);
    assert_int_equal (usage_read (&u, "/nonexistent", NULL), -1);
    assert_int_equal (errno, ENOENT);
}

/* ---- GPUs ---- */

CASE (select_gpus)
{
    /* clang-format off */
    static const struct {
        int visible;
        const char *list, *kept;
    } rows[] = {
        { 8, "1,3",   "13" },
        { 8, "0-2,7", "0127" },
        { 2, "4,5",   "01" }, /* a device cgroup hides the others */
        { 4, NULL,    "0123" },
        { 4, "",      "0123" },
        { 4, "x",     "0123" },
        { 4, "0,9",   "0" },
    };
    /* clang-format on */
    struct gpu_readings r;

    for (size_t i = 0; i < COUNT (rows); i++) {
        char kept[16] = "";
        memset (&r, 0, sizeof (r));
        r.n = rows[i].visible;
        for (int k = 0; k < r.n; k++)
            r.gpu[k].index = k;
        r.nprocesses = 1;
        r.process[0].gpu = 1;
        select_of_step (&r, rows[i].list);
        for (int k = 0; k < r.n; k++)
            kept[k] = (char)('0' + r.gpu[k].index);
        assert_string_equal (kept, rows[i].kept);
        assert_int_equal (r.nprocesses, strchr (kept, '1') != NULL);
    }
}

/* Two AMD cards with another vendor's card between them. */
static void make_cards (void)
{
    char cmd[1024];

    snprintf (cmd, sizeof (cmd),
              "cd %s && for i in 0 1 2; do d=class/drm/card$i/device; "
              "h=$d/hwmon/hwmon$((i + 3)); mkdir -p $h || exit; "
              "echo $((i %% 2 ? 0x1a03 : 0x1002)) >$d/vendor; "
              "echo $((i * 20 + 50)) >$d/gpu_busy_percent; "
              "echo 64 >$d/mem_info_vram_total; "
              "echo 305000000 >$h/power1_average; "
              "echo 61000 >$h/temp1_input; done",
              dir);
    assert_int_equal (system (cmd), 0);
}

FOLDER_CASE (cards_in_sysfs)
{
    struct gpu_readings *r = calloc (1, sizeof (*r));
    int fd;

    make_cards ();
    fd = open (dir, O_RDONLY | O_DIRECTORY);
    amd_read (fd, r);
    close (fd);
    assert_int_equal (r->n, 2);
    for (int i = 0; i < 2; i++) {
        const double *v = r->gpu[i].v;
        assert_int_equal (r->gpu[i].index, i);
        assert_true (v[GPU_BUSY] == 50 + 40 * i);
        assert_true (v[GPU_MEMORY_SIZE] == 64 && isnan (v[GPU_MEMORY]));
        assert_true (fabs (v[GPU_POWER] - 305) < 1e-9);
        assert_true (fabs (v[GPU_TEMPERATURE] - 61) < 1e-9);
        assert_true (isnan (v[GPU_CLOCK]) && isnan (v[GPU_SM]));
    }
    free (r);
}

/* Read the GPUs in a child process, because a driver may hang.  Reads this machine's real GPUs if
 * it has any, else the fake cards.
 */
FOLDER_CASE (the_asked_rank_answers)
{
    struct gpu_readings *r = calloc (1, sizeof (*r));
    struct gpus *g;

    make_cards ();
    g = gpus_start (dir, GPUS_USAGE);
    for (int i = 0; i < 2; i++) {
        gpus_ask (g, 0);
        poll (&(struct pollfd){ gpus_fd (g), POLLIN, 0 }, 1, 300000);
        assert_int_equal (gpus_take (g, r), GPUS_READ);
        assert_true (r->n > 0);
        assert_int_equal (gpus_take (g, r), GPUS_PENDING);
    }
    gpus_end (g);
    free (r);
}

RUN_CASES ()
