/* SPDX-License-Identifier: Apache-2.0 */
/* Print a diagnosis, and where each rank runs. */
#include "launcher/node/check_report.h"

#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/node/json_message.h"

enum { NODES_SHOWN = 64, NAMED = 8, CELL = 256 };

void finding_text (const struct diagnosis *d, const struct finding *f, char *buf, size_t size)
{
    size_t n = 0;

    *buf = '\0';
    for (long i = 0; i < f->count && i < NAMED && n < size; i++)
        n +=
            (size_t)snprintf (buf + n, size - n, "%s%s", i ? ", " : "", d->nodes[f->nodes[i]].name);
    if (f->count > NAMED && n < size)
        n += (size_t)snprintf (buf + n, size - n, " and %ld more", f->count - NAMED);
    if (n < size)
        snprintf (buf + n, size - n, "%s%s", f->count ? ": " : "", f->why);
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
    char what[128], text[384];
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
        snprintf (buf + strlen (buf), size - strlen (buf), "; and %ld more", more);
}

static struct libscols_table *table_of (const char *const *columns, FILE *to)
{
    struct libscols_table *table = scols_new_table ();

    if (!table)
        return NULL;
    scols_table_set_stream (table, to);
    scols_table_enable_maxout (table, 0);
    for (; *columns; columns++)
        scols_table_new_column (table, *columns, 0, 0);
    return table;
}

static struct libscols_line *row_of (struct libscols_table *table)
{
    return scols_table_new_line (table, NULL);
}

static void cell (struct libscols_line *line, size_t column, const char *text)
{
    if (line)
        scols_line_set_data (line, column, *text ? text : "-");
}

static void number (struct libscols_line *line, size_t column, long n)
{
    char text[32];

    snprintf (text, sizeof (text), "%ld", n);
    cell (line, column, text);
}

static bool is_shown (const struct diagnosis *d, const struct node_row *n)
{
    return d->nnodes <= NODES_SHOWN || n->bad || n->answered < n->ranks;
}

static const char *state_of (const struct node_row *n)
{
    return n->bad ? "BAD" : n->answered ? "good" : "silent";
}

static void nodes_print (const struct diagnosis *d, FILE *to)
{
    static const char *const columns[] = { "NODE",    "RANKS",   "GPUS",  "GPU", "CORES",
                                           "NETWORK", "ADDRESS", "STATE", NULL };
    struct libscols_table *table = table_of (columns, to);
    long shown = 0;

    for (long i = 0; table && i < d->nnodes; i++) {
        const struct node_row *n = &d->nodes[i];
        struct libscols_line *line;
        if (!is_shown (d, n) || shown++ >= NODES_SHOWN)
            continue;
        line = row_of (table);
        cell (line, 0, n->name);
        number (line, 1, n->ranks);
        number (line, 2, n->gpus);
        cell (line, 3, n->gpu);
        cell (line, 4, n->cores);
        cell (line, 5, n->nic);
        cell (line, 6, n->address);
        cell (line, 7, state_of (n));
    }
    if (table && shown)
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

static json_t *node_json (const struct node_row *n)
{
    return json_pack ("{s:s, s:I, s:I, s:s, s:s, s:s, s:s, s:s}", "node", n->name, "ranks",
                      (json_int_t)n->ranks, "gpus", (json_int_t)n->gpus, "gpu", n->gpu, "cores",
                      n->cores, "network", n->nic, "address", n->address, "state", state_of (n));
}

static json_t *finding_of (const struct diagnosis *d, const struct finding *f)
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
        json_array_append_new (nodes, node_json (&d->nodes[i]));
    for (long i = 0; i < d->nfindings; i++)
        json_array_append_new (findings, finding_of (d, &d->findings[i]));
    all = json_pack ("{s:b, s:o, s:o}", "good", !d->stop, "nodes", nodes, "findings", findings);
    json_dumpf (all, to, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putc ('\n', to);
    json_decref (all);
}

static const json_t *fact_of (const json_t *rank, const char *name)
{
    return json_object_get (json_object_get (rank, "facts"), name);
}

static void fact_cell (struct libscols_line *line, size_t column, const json_t *rank,
                       const char *name)
{
    const json_t *v = fact_of (rank, name);
    char text[CELL];

    if (json_is_integer (v)) {
        number (line, column, (long)json_integer_value (v));
        return;
    }
    gather_clean (text, sizeof (text), json_string_value (v));
    cell (line, column, text);
}

static void gpus_cell (struct libscols_line *line, const json_t *rank)
{
    json_t *gpus = (json_t *)fact_of (rank, "gpus");
    char text[CELL] = "", clean[NAME_TEXT];
    const char *bus;
    json_t *gpu;
    size_t n = 0;

    json_object_foreach (gpus, bus, gpu) {
        gather_clean (clean, sizeof (clean), bus);
        if (n + sizeof (clean) < sizeof (text))
            n += (size_t)snprintf (text + n, sizeof (text) - n, "%s%s", n ? "," : "", clean);
    }
    cell (line, 4, text);
}

void ranks_print (json_t *const *ranks, long size, FILE *to)
{
    static const char *const columns[] = { "RANK",  "NODE",    "LOCAL",   "PID", "GPUS",
                                           "CORES", "NETWORK", "ADDRESS", NULL };
    struct libscols_table *table = table_of (columns, to);

    for (long i = 0; table && i < size; i++) {
        struct libscols_line *line = row_of (table);
        number (line, 0, i);
        if (!ranks[i]) {
            cell (line, 1, "(no answer)");
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
    if (table)
        scols_print_table (table);
    scols_unref_table (table);
}
