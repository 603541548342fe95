/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnose the nodes of a step from the reports of its ranks and print the result. */
#include "launcher/node/diagnosis.h"

#include <libsmartcols.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/node/checks.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"

enum { FINDINGS_MAX = 1000, NAMED = 8, SKEW = 1 };

const char *const severity_names[] = {
    [SEVERITY_NOTE] = "note", [SEVERITY_WARN] = "warning", [SEVERITY_STOP] = "stop",
    [SEVERITY_BAD] = "bad",   [SEVERITY_SHARED] = "bad",
};

static const json_t *rank_fact (const json_t *rank, const char *name)
{
    return json_object_get (json_object_get (rank, "facts"), name);
}

static const char *rank_fact_text (const json_t *rank, const char *name)
{
    return json_string_value (rank_fact (rank, name)) ?: "";
}

static bool is_node_leader (const json_t *rank)
{
    return rank && json_integer_value (rank_fact (rank, "local_rank")) == 0;
}

/* ---- nodes ---- */

/* Ranks of one node are mostly consecutive. */
static long node_named (struct diagnosis *d, const char *name)
{
    char clean[NAME_TEXT];

    gather_clean (clean, sizeof (clean), name);
    for (long i = d->nnodes - 1; i >= 0; i--)
        if (!strcmp (d->nodes[i].name, clean))
            return i;
    XGROW (d->nodes, (size_t)d->nnodes);
    d->nodes[d->nnodes] = (struct node_row){ 0 };
    memcpy (d->nodes[d->nnodes].name, clean, sizeof (clean));
    return d->nnodes++;
}

static void describe_checked_node (struct node_row *n, const json_t *rank)
{
    const json_t *gpus = rank_fact (rank, "gpus");
    const char *name;
    json_t *gpu;

    if (!*n->address) {
        gather_clean (n->address, NAME_TEXT, rank_fact_text (rank, "address"));
        gather_clean (n->nic, NAME_TEXT, rank_fact_text (rank, "nic"));
    }
    if (!*n->cores)
        gather_clean (n->cores, NAME_TEXT, rank_fact_text (rank, "cores"));
    if (n->gpus < (long)json_object_size (gpus))
        n->gpus = (long)json_object_size (gpus);
    json_object_foreach ((json_t *)gpus, name, gpu) {
        if (!*n->gpu)
            gather_clean (n->gpu, NAME_TEXT, json_string_value (json_object_get (gpu, "name")));
    }
}

static void find_nodes_of_ranks (struct diagnosis *d, json_t *const *ranks,
                                 const struct rank_layout *layout)
{
    for (long i = 0; i < d->size; i++) {
        const char *name = layout ? layout_host (layout, i) : NULL;
        long node;
        if (ranks[i])
            name = rank_fact_text (ranks[i], "host");
        d->node_of[i] = -1;
        d->answered += ranks[i] != NULL;
        d->unreachable += !name;
        if (!name)
            continue;
        node = node_named (d, name);
        d->node_of[i] = node;
        d->nodes[node].ranks++;
        if (!ranks[i])
            continue;
        d->nodes[node].answered++;
        describe_checked_node (&d->nodes[node], ranks[i]);
    }
}

/* ---- findings ---- */

static struct finding *finding_for (struct diagnosis *d, enum severity severity, const char *why)
{
    for (long i = 0; i < d->nfindings; i++)
        if (d->findings[i].severity == severity && !strcmp (d->findings[i].why, why))
            return &d->findings[i];
    if (d->nfindings == FINDINGS_MAX)
        return NULL;
    XGROW (d->findings, (size_t)d->nfindings);
    d->findings[d->nfindings] = (struct finding){ .severity = severity };
    gather_clean (d->findings[d->nfindings].why, WHY_TEXT, why);
    return &d->findings[d->nfindings++];
}

/* 'node' is -1 for a finding that concerns no single node. */
static void add_node_finding (struct diagnosis *d, enum severity severity, const char *why,
                              long node)
{
    char clean[WHY_TEXT];
    struct finding *f;

    gather_clean (clean, sizeof (clean), why);
    f = finding_for (d, severity, clean);
    for (long i = 0; f && i < f->count; i++)
        if (f->nodes[i] == node)
            return;
    if (!f || node < 0)
        return;
    XGROW (f->nodes, (size_t)f->count);
    f->nodes[f->count++] = node;
}

static void add_reported_findings (struct diagnosis *d, const json_t *rank, long node)
{
    const json_t *list = json_object_get (rank, "findings");

    for (size_t i = 0; i < json_array_size (list); i++) {
        const json_t *f = json_array_get (list, i);
        long severity = json_integer_value (json_object_get (f, "severity"));
        const char *why = json_string_value (json_object_get (f, "why"));
        if (why && severity >= SEVERITY_NOTE && severity <= SEVERITY_SHARED)
            add_node_finding (d, (enum severity)severity, why, node);
    }
}

static void add_unreachable (struct diagnosis *d)
{
    char why[WHY_TEXT];

    for (long i = 0; i < d->nnodes; i++) {
        const struct node_row *n = &d->nodes[i];
        if (n->answered == n->ranks)
            continue;
        if (n->answered == 0)
            snprintf (why, sizeof (why), "no answer");
        else
            snprintf (why, sizeof (why), "no answer from %ld of its %ld ranks",
                      n->ranks - n->answered, n->ranks);
        add_node_finding (d, SEVERITY_BAD, why, i);
    }
    if (d->unreachable == 0)
        return;
    snprintf (why, sizeof (why), "no answer from %ld of %ld ranks; their nodes are unknown",
              d->unreachable, d->size);
    add_node_finding (d, SEVERITY_STOP, why, -1);
}

/* ---- versions that all nodes must share ---- */

/* A different driver or kernel often works; a different NCCL or PyTorch hangs
 * or gives wrong results.
 */
static const struct version_row {
    const char *name;
    enum severity severity;
} version_rows[] = {
    { "NCCL", SEVERITY_BAD },
    { "PyTorch", SEVERITY_BAD },
    { "NVIDIA driver", SEVERITY_WARN },
    { "CUDA", SEVERITY_WARN },
    { "Python", SEVERITY_WARN },
    { "slurm-dl", SEVERITY_WARN },
    { "kernel", SEVERITY_WARN },
    { "build of dl.so", SEVERITY_WARN },
    { "arguments of dl.so in plugstack.conf:", SEVERITY_WARN },
    { "fabric", SEVERITY_BAD },
    { "network ports in use:", SEVERITY_WARN },
    { "IP interfaces in use:", SEVERITY_WARN },
    { "MTU", SEVERITY_BAD },
    { "limit of open files", SEVERITY_WARN },
    { "limit of locked memory", SEVERITY_WARN },
    { "limit of processes", SEVERITY_WARN },
    { "limit of the stack", SEVERITY_WARN },
    { "limit of memory", SEVERITY_WARN },
};

struct vote {
    const char *value;
    long count;
};

static const char *version_of (const json_t *rank, const char *name)
{
    return is_node_leader (rank)
               ? json_string_value (json_object_get (rank_fact (rank, "versions"), name))
               : NULL;
}

/* Find the value that most nodes have, and count the nodes that have any value. */
static long count_votes (json_t *const *ranks, long size, const char *name, struct vote *w)
{
    struct vote votes[16] = { { 0 } };
    long all = 0;

    *w = votes[0];
    for (long i = 0; i < size; i++) {
        const char *v = version_of (ranks[i], name);
        int k = 0;
        if (!v)
            continue;
        all++;
        while (k < 15 && votes[k].value && strcmp (votes[k].value, v))
            k++;
        if (!votes[k].value)
            votes[k].value = v;
        if (++votes[k].count > w->count)
            *w = votes[k];
    }
    return all;
}

static void compare_versions (struct diagnosis *d, json_t *const *ranks,
                              const struct version_row *row)
{
    struct vote w;
    long all = count_votes (ranks, d->size, row->name, &w);
    enum severity severity = row->severity;
    char why[WHY_TEXT];

    if (w.count == all)
        return;
    if (2 * w.count <= all && severity == SEVERITY_BAD)
        severity = SEVERITY_STOP; /* which of them are right? */
    for (long i = 0; i < d->size; i++) {
        const char *v = version_of (ranks[i], row->name);
        if (!v || !strcmp (v, w.value))
            continue;
        snprintf (why, sizeof (why), "%s %.60s, but %.60s on %ld of %ld nodes", row->name, v,
                  w.value, w.count, all);
        add_node_finding (d, severity, why, d->node_of[i]);
    }
}

/* ---- slow nodes ---- */

struct rate {
    double value;
    long rank;
    const char *name;
};

/* Rates are compared within a kind: "gpu", "memory", "disk", "network". */
static const struct rate_row {
    const char *kind, *unit;
    enum severity severity;
} rate_rows[] = {
    { "GPU copy", "GB/s", SEVERITY_BAD },
    { "GPU to host", "GB/s", SEVERITY_BAD },
    { "host to GPU", "GB/s", SEVERITY_BAD },
    { "GPU product", "TFLOP/s", SEVERITY_BAD },
    { "memory", "GB/s", SEVERITY_WARN },
    { "network", "GB/s", SEVERITY_WARN },
    { "working directory", "GB/s", SEVERITY_WARN },
};

static int by_rate (const void *a, const void *b)
{
    double x = ((const struct rate *)a)->value;
    double y = ((const struct rate *)b)->value;

    return x < y ? -1 : x > y;
}

/* The first rank of each node sends its rates in "facts"; network rates arrive later. */
static long collect_rates (json_t *const *ranks, long size, const char *kind, struct rate **list)
{
    long n = 0;

    *list = NULL;
    for (long i = 0; i < size; i++) {
        json_t *both[2] = { (json_t *)rank_fact (ranks[i], "rates"),
                            json_object_get (ranks[i], "rates") };
        for (int k = 0; k < 2; k++) {
            const char *name;
            json_t *v;
            json_object_foreach (both[k], name, v) {
                if (strncmp (name, kind, strlen (kind)) || !(json_number_value (v) >= 0))
                    continue;
                XGROW (*list, (size_t)n);
                (*list)[n++] = (struct rate){ json_number_value (v), i, name };
            }
        }
    }
    return n;
}

static void find_slow (struct diagnosis *d, json_t *const *ranks, const struct rate_row *row)
{
    struct rate *list;
    long n = collect_rates (ranks, d->size, row->kind, &list);
    char why[WHY_TEXT];
    double median;

    if (n > 1) {
        qsort (list, (size_t)n, sizeof (*list), by_rate);
        median = list[n / 2].value;
        for (long i = 0; i < n && list[i].value < median / 2; i++) {
            snprintf (why, sizeof (why), "%.60s: %.4g %s, half of the nodes have %.4g or more",
                      list[i].name, list[i].value, row->unit, median);
            add_node_finding (d, row->severity, why, d->node_of[list[i].rank]);
        }
        snprintf (why, sizeof (why), "%s: %.4g to %.4g %s, median %.4g", row->kind, list[0].value,
                  list[n - 1].value, row->unit, median);
        add_node_finding (d, SEVERITY_NOTE, why, -1);
    } else if (n == 1) {
        snprintf (why, sizeof (why), "%.60s: %.4g %s", list[0].name, list[0].value, row->unit);
        add_node_finding (d, SEVERITY_NOTE, why, -1);
    }
    free (list);
}

static void compare_clocks (struct diagnosis *d, json_t *const *ranks)
{
    double least = INFINITY, most = -INFINITY;
    long first = -1, last = -1;
    char why[WHY_TEXT];

    for (long i = 0; i < d->size; i++) {
        const json_t *v = ranks[i] ? rank_fact (ranks[i], "skew") : NULL;
        double skew = json_number_value (v);
        if (!v || !isfinite (skew))
            continue;
        if (skew < least) {
            least = skew;
            first = i;
        }
        if (skew > most) {
            most = skew;
            last = i;
        }
    }
    if (first < 0 || most - least < SKEW)
        return;
    snprintf (why, sizeof (why), "clocks differ by %.1f s: %.50s is ahead of %.50s", most - least,
              d->nodes[d->node_of[first]].name, d->nodes[d->node_of[last]].name);
    add_node_finding (d, SEVERITY_NOTE, why, -1);
}

/* ---- the result ---- */

static int worst_first (const void *a, const void *b)
{
    const struct finding *x = a;
    const struct finding *y = b;

    return x->severity != y->severity ? (int)y->severity - (int)x->severity
                                      : (x->count < y->count) - (x->count > y->count);
}

static void judge_nodes (struct diagnosis *d)
{
    for (long i = 0; i < d->nfindings; i++) {
        struct finding *f = &d->findings[i];
        if (f->severity == SEVERITY_SHARED)
            f->severity = f->count == d->nnodes ? SEVERITY_STOP : SEVERITY_BAD;
        d->stop |= f->severity >= SEVERITY_STOP;
        for (long k = 0; f->severity == SEVERITY_BAD && k < f->count; k++)
            d->nodes[f->nodes[k]].bad = true;
    }
    if (d->nfindings)
        qsort (d->findings, (size_t)d->nfindings, sizeof (*d->findings), worst_first);
}

struct diagnosis *diagnosis_create (json_t *const *ranks, long size,
                                    const struct rank_layout *layout)
{
    struct diagnosis *d = xcalloc (1, sizeof (*d));

    d->size = size;
    d->node_of = xcalloc ((size_t)size, sizeof (*d->node_of));
    find_nodes_of_ranks (d, ranks, layout);
    for (long i = 0; i < size; i++)
        if (ranks[i])
            add_reported_findings (d, ranks[i], d->node_of[i]);
    add_unreachable (d);
    for (size_t i = 0; i < sizeof (version_rows) / sizeof (*version_rows); i++)
        compare_versions (d, ranks, &version_rows[i]);
    for (size_t i = 0; i < sizeof (rate_rows) / sizeof (*rate_rows); i++)
        find_slow (d, ranks, &rate_rows[i]);
    compare_clocks (d, ranks);
    judge_nodes (d);
    return d;
}

void diagnosis_destroy (struct diagnosis *d)
{
    if (!d)
        return;
    for (long i = 0; i < d->nfindings; i++)
        free (d->findings[i].nodes);
    free (d->findings);
    free (d->nodes);
    free (d->node_of);
    free (d);
}

enum gather_status diagnosis_status (const struct diagnosis *d, long rank)
{
    long node = d->node_of[rank];

    if (!d->stop)
        return GATHER_GO;
    return node >= 0 && d->nodes[node].bad ? GATHER_THIS_NODE : GATHER_AGAIN;
}

/* ---- printing ---- */

enum { NODES_SHOWN = 64, NODES_NAMED = 8, CELL = 256 };

void finding_text (const struct diagnosis *d, const struct finding *f, char *buf, size_t size)
{
    char more[AND_MORE_SIZE];
    size_t n = 0;

    *buf = '\0';
    for (long i = 0; i < f->count && i < NODES_NAMED && n < size; i++)
        n +=
            (size_t)snprintf (buf + n, size - n, "%s%s", i ? ", " : "", d->nodes[f->nodes[i]].name);
    if (n < size)
        snprintf (buf + n, size - n, "%s%s%s", and_more (more, f->count - NODES_NAMED),
                  f->count ? ": " : "", f->why);
}

static const char *plural (long n)
{
    return n == 1 ? "" : "s";
}

static void size_text (const struct diagnosis *d, char *buf, size_t size)
{
    long gpus = 0;

    for (long i = 0; i < d->nnodes; i++)
        gpus += d->nodes[i].gpus;
    snprintf (buf, size, "%ld node%s, %ld rank%s, %ld GPU%s", d->nnodes, plural (d->nnodes),
              d->size, plural (d->size), gpus, plural (gpus));
}

void diagnosis_line (const struct diagnosis *d, char *buf, size_t size)
{
    char what[128], text[384], others[AND_MORE_SIZE];
    long more = 0;

    size_text (d, what, sizeof (what));
    if (!d->stop) {
        snprintf (buf, size, "%s: good", what);
        return;
    }
    for (long i = 1; i < d->nfindings; i++)
        more += d->findings[i].severity >= SEVERITY_STOP;
    finding_text (d, &d->findings[0], text, sizeof (text));
    snprintf (buf, size, "%s: BAD: %s", what, text);
    if (more > 0 && strlen (buf) + 32 < size)
        snprintf (buf + strlen (buf), size - strlen (buf), ";%s", and_more (others, more));
}

static struct libscols_table *table_of (const char *const *columns, FILE *to)
{
    struct libscols_table *table = scols_new_table ();

    if (!table)
        out_of_memory ();
    scols_table_set_stream (table, to);
    scols_table_enable_maxout (table, 0);
    for (; *columns; columns++)
        scols_table_new_column (table, *columns, 0, 0);
    return table;
}

static struct libscols_line *add_check_line (struct libscols_table *table)
{
    struct libscols_line *line = scols_table_new_line (table, NULL);

    if (!line)
        out_of_memory ();
    return line;
}

static void put_cell (struct libscols_line *line, size_t column, const char *text)
{
    if (scols_line_set_data (line, column, *text ? text : "-") < 0)
        out_of_memory ();
}

static void put_number_cell (struct libscols_line *line, size_t column, long n)
{
    char text[32];

    snprintf (text, sizeof (text), "%ld", n);
    put_cell (line, column, text);
}

static bool is_shown (const struct diagnosis *d, const struct node_row *n)
{
    return d->nnodes <= NODES_SHOWN || n->bad || n->answered < n->ranks;
}

static const char *node_state (const struct node_row *n)
{
    return n->bad ? "BAD" : n->answered ? "good" : "silent";
}

static void nodes_print (const struct diagnosis *d, FILE *to)
{
    static const char *const columns[] = { "NODE",    "RANKS",   "GPUS",  "GPU", "CORES",
                                           "NETWORK", "ADDRESS", "STATE", NULL };
    struct libscols_table *table = table_of (columns, to);
    long shown = 0;

    for (long i = 0; i < d->nnodes; i++) {
        const struct node_row *n = &d->nodes[i];
        struct libscols_line *line;
        if (!is_shown (d, n) || shown++ >= NODES_SHOWN)
            continue;
        line = add_check_line (table);
        put_cell (line, 0, n->name);
        put_number_cell (line, 1, n->ranks);
        put_number_cell (line, 2, n->gpus);
        put_cell (line, 3, n->gpu);
        put_cell (line, 4, n->cores);
        put_cell (line, 5, n->nic);
        put_cell (line, 6, n->address);
        put_cell (line, 7, node_state (n));
    }
    if (shown)
        scols_print_table (table);
    scols_unref_table (table);
}

void diagnosis_print (const struct diagnosis *d, FILE *to)
{
    char text[512];

    nodes_print (d, to);
    for (long i = 0; i < d->nfindings; i++) {
        const struct finding *f = &d->findings[i];
        if (f->severity == SEVERITY_NOTE && d->nnodes > NODES_SHOWN && f->count)
            continue;
        finding_text (d, f, text, sizeof (text));
        fprintf (to, "dl: check: %s: %s\n", severity_names[f->severity], text);
    }
}

static json_t *node_row_json (const struct node_row *n)
{
    return json_pack ("{s:s, s:I, s:I, s:s, s:s, s:s, s:s, s:s}", "node", n->name, "ranks",
                      (json_int_t)n->ranks, "gpus", (json_int_t)n->gpus, "gpu", n->gpu, "cores",
                      n->cores, "network", n->nic, "address", n->address, "state", node_state (n));
}

static json_t *finding_with_nodes_json (const struct diagnosis *d, const struct finding *f)
{
    json_t *nodes = json_array ();

    for (long i = 0; i < f->count; i++)
        json_array_append_new (nodes, json_string (d->nodes[f->nodes[i]].name));
    return json_pack ("{s:s, s:s, s:o}", "severity", severity_names[f->severity], "what", f->why,
                      "nodes", nodes);
}

void diagnosis_json (const struct diagnosis *d, FILE *to)
{
    json_t *nodes = json_array ();
    json_t *findings = json_array ();
    json_t *all;

    for (long i = 0; i < d->nnodes; i++)
        json_array_append_new (nodes, node_row_json (&d->nodes[i]));
    for (long i = 0; i < d->nfindings; i++)
        json_array_append_new (findings, finding_with_nodes_json (d, &d->findings[i]));
    all = json_pack ("{s:b, s:o, s:o}", "good", !d->stop, "nodes", nodes, "findings", findings);
    json_dumpf (all, to, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putc ('\n', to);
    json_decref (all);
}

static const json_t *reported_fact (const json_t *rank, const char *name)
{
    return json_object_get (json_object_get (rank, "facts"), name);
}

static void fact_cell (struct libscols_line *line, size_t column, const json_t *rank,
                       const char *name)
{
    const json_t *v = reported_fact (rank, name);
    char text[CELL];

    if (json_is_integer (v)) {
        put_number_cell (line, column, (long)json_integer_value (v));
        return;
    }
    gather_clean (text, sizeof (text), json_string_value (v));
    put_cell (line, column, text);
}

static void gpus_cell (struct libscols_line *line, const json_t *rank)
{
    json_t *gpus = (json_t *)reported_fact (rank, "gpus");
    char text[CELL] = "", clean[NAME_TEXT];
    const char *bus;
    json_t *gpu;
    size_t n = 0;

    json_object_foreach (gpus, bus, gpu) {
        gather_clean (clean, sizeof (clean), bus);
        if (n + sizeof (clean) < sizeof (text))
            n += (size_t)snprintf (text + n, sizeof (text) - n, "%s%s", n ? "," : "", clean);
    }
    put_cell (line, 4, text);
}

void ranks_print (json_t *const *ranks, long size, FILE *to)
{
    static const char *const columns[] = { "RANK",  "NODE",    "LOCAL",   "PID", "GPUS",
                                           "CORES", "NETWORK", "ADDRESS", NULL };
    struct libscols_table *table = table_of (columns, to);

    for (long i = 0; i < size; i++) {
        struct libscols_line *line = add_check_line (table);
        put_number_cell (line, 0, i);
        if (!ranks[i]) {
            put_cell (line, 1, "(no answer)");
            continue;
        }
        fact_cell (line, 1, ranks[i], "host");
        fact_cell (line, 2, ranks[i], "local_rank");
        fact_cell (line, 3, ranks[i], "pid");
        gpus_cell (line, ranks[i]);
        fact_cell (line, 5, ranks[i], "cores");
        fact_cell (line, 6, ranks[i], "nic");
        fact_cell (line, 7, ranks[i], "address");
    }
    scols_print_table (table);
    scols_unref_table (table);
}
