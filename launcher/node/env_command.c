/* SPDX-License-Identifier: Apache-2.0 */
/* dl env: print the environment of ranks to come, or explain that of this one. */

#include <errno.h>
#include <jansson.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/node/env_plan.h"
#include "launcher/node/node.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/say.h"
#include "runtime/base/nearest_word.h"
#include "runtime/network/exported.h"
#include "runtime/network/nccl.h"
#include "runtime/rank/task.h"

/* ---- the rank environment of this process, explained ---- */

extern char **environ;

enum { LINES = 32, LINE = 320, NAME = 64 };

struct inside {
    char line[LINES][LINE]; /* contradictions */
    int lines;
    struct env_entries ours, user; /* the second: what the plugin would give */
};

__attribute__ ((format (printf, 2, 3))) static void contradiction (struct inside *x,
                                                                   const char *fmt, ...)
{
    va_list ap;

    if (x->lines == LINES)
        return;
    va_start (ap, fmt);
    vsnprintf (x->line[x->lines++], LINE, fmt, ap);
    va_end (ap);
}

static const char *value (const char *name)
{
    const char *v = getenv (name);

    return v ? v : "";
}

/* ---- whose is it ---- */

static const char *const marks[] = { "DL_ENV_SET", "DL_BIND_SET", "DL_NCCL_SET" };
enum { MARKS = sizeof (marks) / sizeof (*marks) };

static void read_plugin_mark (struct inside *x, const char *mark)
{
    char name[NAME];

    for (const char *at = value (mark); *at;) {
        size_t n = strcspn (at, ",");
        snprintf (name, sizeof (name), "%.*s", (int)n, at);
        if (!getenv (name))
            contradiction (x, "%s: the plugin set it (%s), and it is gone", name, mark);
        else
            entries_put (&x->ours, name, value (name));
        at += n + (at[n] == ',');
    }
}

static void fill_environment (struct env_entries *e)
{
    char name[256];

    for (char **v = environ; *v; v++) {
        size_t n = strcspn (*v, "=");
        if (n >= sizeof (name) || !(*v)[n])
            continue;
        snprintf (name, sizeof (name), "%.*s", (int)n, *v);
        entries_put (e, name, *v + n + 1);
    }
}

static bool environment_has (const struct rank_environment *e, const char *name)
{
    for (int i = 0; i < e->n; i++)
        if (!strcmp (e->vars[i].name, name))
            return true;
    return false;
}

/* Whether the framework gives all that the plugin has set, but for what it sets
 * for itself.
 */
static bool explains (const struct rank_environment *e, const char *set)
{
    char name[NAME];

    while (*set) {
        size_t n = strcspn (set, ",");
        snprintf (name, sizeof (name), "%.*s", (int)n, set);
        if (strncmp (name, "DL_", 3) && !environment_has (e, name))
            return false;
        set += n + (set[n] == ',');
    }
    return e->n > 0;
}

static void explain_exported (struct inside *x, const struct task *t)
{
    char lines[EXPORTED_LINES][EXPORTED_LINE];
    int n = exported_check (t, value ("DL_ENV_SET"), lines);

    for (int i = 0; i < n; i++)
        contradiction (x, "%.319s", lines[i]);
}

/* The framework is not known: the one with the fewest variables that
 * has all of DL_ENV_SET.  What else it gives is the user's.
 */
static void find_users (struct inside *x, struct task *t)
{
    const char *set = value ("DL_ENV_SET");
    const char *best = NULL;
    int fewest = RANK_VARIABLES_MAX + 1;

    for (const char *const *f = rank_environment_frameworks; *f; f++)
        if (rank_environment_fill (*f, &t->facts, &t->environment) >= 0
            && explains (&t->environment, set) && t->environment.n < fewest) {
            fewest = t->environment.n;
            best = *f;
        }
    if (!best)
        return;
    rank_environment_fill (best, &t->facts, &t->environment);
    explain_exported (x, t);
    for (int i = 0; i < t->environment.n; i++) {
        const struct rank_variable *v = &t->environment.vars[i];
        if (!word_listed (set, v->name) && getenv (v->name))
            entries_put (&x->user, v->name, v->value);
    }
}

/* What cannot be read from the variables is not looked at. */
static void guess_facts (struct rank_facts *f)
{
    const char *set = value ("DL_ENV_SET");

    snprintf (f->master, sizeof (f->master), "%.250s",
              *value ("MASTER_ADDR") ? value ("MASTER_ADDR") : "?");
    f->port = atoi (value ("MASTER_PORT"));
    f->port2 = f->port + 1;
    f->task_port = 1;
    strcpy (f->address, "?");
    strcpy (f->own_address, "?");
    snprintf (f->interface, sizeof (f->interface), "%.30s",
              word_listed (set, "GLOO_SOCKET_IFNAME") ? value ("GLOO_SOCKET_IFNAME") : "?");
    f->elastic = word_listed (set, "PET_RDZV_CONF");
    f->one_machine = f->nodes > 1 && !strcmp (f->interface, "lo");
}

static void read_users (struct inside *x)
{
    struct env_entries all = { NULL };
    struct task *t = xcalloc (1, sizeof (*t));

    fill_environment (&all);
    if (getenv ("DL_ENV_SET")) {
        t->vars = entries_variables (&all);
        t->job = 1;
        if (task_read (t, NULL) == 0) {
            guess_facts (&t->facts);
            find_users (x, t);
        }
    }
    free (t);
    entries_free (&all);
}

/* ---- what contradicts what ---- */

/* clang-format off */
static const struct {
    const char *name, *slurm;
} same[] = {
    { "RANK",                      "SLURM_PROCID" },
    { "WORLD_SIZE",                "SLURM_STEP_NUM_TASKS" },
    { "LOCAL_RANK",                "SLURM_LOCALID" },
    { "NODE_RANK",                 "SLURM_NODEID" },
    { "GROUP_RANK",                "SLURM_NODEID" },
    { "GROUP_WORLD_SIZE",          "SLURM_STEP_NUM_NODES" },
    { "PET_NODE_RANK",             "SLURM_NODEID" },
    { "PET_NNODES",                "SLURM_STEP_NUM_NODES" },
    { "HOROVOD_RANK",              "SLURM_PROCID" },
    { "HOROVOD_SIZE",              "SLURM_STEP_NUM_TASKS" },
    { "HOROVOD_LOCAL_RANK",        "SLURM_LOCALID" },
    { "JAX_PROCESS_ID",            "SLURM_PROCID" },
    { "JAX_NUM_PROCESSES",         "SLURM_STEP_NUM_TASKS" },
    { "PADDLE_GLOBAL_RANK",        "SLURM_PROCID" },
    { "PADDLE_GLOBAL_SIZE",        "SLURM_STEP_NUM_TASKS" },
    { "OMPI_COMM_WORLD_RANK",      "SLURM_PROCID" },
    { "OMPI_COMM_WORLD_SIZE",      "SLURM_STEP_NUM_TASKS" },
    { "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID" },
    { "MPI_LOCALRANKID",           "SLURM_LOCALID" },
    { "PMIX_RANK",                 "SLURM_PROCID" },
    { "PMI_RANK",                  "SLURM_PROCID" },
};
/* clang-format on */

static void compare_slurm_numbers (struct inside *x)
{
    for (size_t i = 0; i < sizeof (same) / sizeof (*same); i++)
        if (*value (same[i].name) && *value (same[i].slurm)
            && strcmp (value (same[i].name), value (same[i].slurm)))
            contradiction (x, "%s=%s, but %s=%s", same[i].name, value (same[i].name), same[i].slurm,
                           value (same[i].slurm));
}

static void compare_step (struct inside *x)
{
    char step[64];

    snprintf (step, sizeof (step), "%.30s.%.30s", value ("SLURM_JOB_ID"), value ("SLURM_STEP_ID"));
    if (*value ("DL_ENV_STEP") && strcmp (value ("DL_ENV_STEP"), step))
        contradiction (x,
                       "the variables are those of the step %s, this is %s: "
                       "started without --dl from within another step?",
                       value ("DL_ENV_STEP"), step);
}

static void compare_owners (struct inside *x)
{
    static const char *const pairs[][2] = {
        { "MASTER_ADDR", "MASTER_PORT" },
        { "RANK", "WORLD_SIZE" },
        { "LOCAL_RANK", "RANK" },
    };

    for (size_t i = 0; i < sizeof (pairs) / sizeof (*pairs); i++)
        for (int k = 0; k < 2; k++)
            if (entries_find (&x->ours, pairs[i][k]) && entries_find (&x->user, pairs[i][!k]))
                contradiction (x,
                               "%s=%s is exported, while %s=%s is the "
                               "plugin's: unset it, or give both",
                               pairs[i][!k], value (pairs[i][!k]), pairs[i][k],
                               value (pairs[i][k]));
}

static void check_devices (struct inside *x)
{
    const char *list = value ("CUDA_VISIBLE_DEVICES");
    long n = *list != '\0';

    for (const char *c = list; *c; c++)
        n += *c == ',';
    if (n > 0 && *value ("LOCAL_RANK") && atol (value ("LOCAL_RANK")) >= n)
        contradiction (x,
                       "LOCAL_RANK=%s is the number of no GPU of "
                       "CUDA_VISIBLE_DEVICES=%.100s: use --gpus-per-node "
                       "instead of --gpus-per-task, or --gpu-bind=none",
                       value ("LOCAL_RANK"), list);
}

static void check_threads (struct inside *x)
{
    cpu_set_t cpus;
    long threads = atol (value ("OMP_NUM_THREADS"));

    if (sched_getaffinity (0, sizeof (cpus), &cpus) == 0 && threads > CPU_COUNT (&cpus))
        contradiction (x, "OMP_NUM_THREADS=%ld, but this rank has %d CPUs", threads,
                       CPU_COUNT (&cpus));
}

static void check_elastic (struct inside *x)
{
    static const char *const bad[] = { "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID" };

    for (size_t i = 0; i < sizeof (bad) / sizeof (*bad); i++)
        if (*value (bad[i]) && !getenv ("TORCHELASTIC_RESTART_COUNT"))
            contradiction (x,
                           "%s is exported outside torchrun: ranks wait for a "
                           "store that nobody serves; unset it",
                           bad[i]);
}

static void check_network (struct inside *x)
{
    char lines[NCCL_LINES][NCCL_LINE];
    struct fabric *f = xcalloc (1, sizeof (*f));
    int n;

    fabric_read ("/sys", f);
    n = nccl_lint (environ, value ("DL_NCCL_SET"), f, lines);
    for (int i = 0; i < n; i++)
        contradiction (x, "%.300s", lines[i]);
    free (f);
}

/* ---- printing ---- */

static void print_list (const char *head, const struct env_entries *e, bool would)
{
    if (e->n)
        printf ("\n%s\n", head);
    for (size_t i = 0; i < e->n; i++) {
        const char *name = e->list[i].name;
        printf ("  %s=%s", name, value (name));
        if (would && strcmp (e->list[i].value, value (name)) && strcmp (e->list[i].value, "?"))
            printf ("   (the plugin's: %s)", e->list[i].value);
        putchar ('\n');
    }
}

static void print_explanation (const struct inside *x)
{
    printf ("rank %s of %s: task %s of node %s (%s), step %s.%s\n", value ("SLURM_PROCID"),
            value ("SLURM_STEP_NUM_TASKS"), value ("SLURM_LOCALID"), value ("SLURM_NODEID"),
            value ("SLURMD_NODENAME"), value ("SLURM_JOB_ID"), value ("SLURM_STEP_ID"));
    if (!x->ours.n)
        puts ("\nThe plugin has set nothing here: the step was started "
              "without --dl, --dl-bind and --dl-nccl, or is a batch script.");
    print_list ("Set by the plugin:", &x->ours, false);
    print_list ("Exported before, and so left as they are:", &x->user, true);
    if (x->lines)
        puts ("\nContradictions:");
    for (int i = 0; i < x->lines; i++)
        printf ("  %s\n", x->line[i]);
}

static json_t *entries_json (const struct env_entries *e)
{
    json_t *o = json_object ();

    for (size_t i = 0; i < e->n; i++)
        json_object_set_new (o, e->list[i].name, json_string (value (e->list[i].name)));
    return o;
}

static void print_explanation_json (const struct inside *x)
{
    json_t *lines = json_array ();
    json_t *o;

    for (int i = 0; i < x->lines; i++)
        json_array_append_new (lines, json_string (x->line[i]));
    o = json_pack ("{s:i, s:o, s:o, s:o}", "rank", atoi (value ("SLURM_PROCID")), "plugin",
                   entries_json (&x->ours), "exported", entries_json (&x->user), "contradictions",
                   lines);
    json_dumpf (o, stdout, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putchar ('\n');
    json_decref (o);
}

/* Print which variables the plugin has set, which are the user's, and what
 * contradicts what.  Returns an exit status: EXIT_FAILED if something does,
 * EXIT_USAGE in no step.
 */
static int explain_print (bool json)
{
    struct inside *x;
    int status;

    if (!getenv ("SLURM_PROCID") || !getenv ("SLURM_STEP_NUM_TASKS")) {
        complain ("env: this is not a step of Slurm's: name a batch script or an "
                  "experiment file, or give --nodes=N");
        return EXIT_USAGE;
    }
    x = xcalloc (1, sizeof (*x));
    for (int i = 0; i < MARKS; i++)
        read_plugin_mark (x, marks[i]);
    read_users (x);
    compare_step (x);
    compare_slurm_numbers (x);
    compare_owners (x);
    check_devices (x);
    check_threads (x);
    check_elastic (x);
    check_network (x);
    (json ? print_explanation_json : print_explanation) (x);
    status = x->lines ? EXIT_FAILED : EXIT_OK;
    entries_free (&x->ours);
    entries_free (&x->user);
    free (x);
    return status;
}

/* ---- the ranks of a step to come ---- */

enum { WIDE = 60, COLUMNS = 8 };

/* ---- one rank, for env -S and the shell ---- */

static void print_quoted (const char *value)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                               "UVWXYZ0123456789_.,:/+@%-";

    if (*value && !value[strspn (value, safe)]) {
        fputs (value, stdout);
        return;
    }
    putchar ('\'');
    for (; *value; value++)
        if (*value == '\'')
            fputs ("'\\''", stdout);
        else
            putchar (*value);
    putchar ('\'');
}

static bool entry_is_known (const struct plan_rank *r, const struct env_entry *e)
{
    return e->given && e->value && !entries_find (&r->unknown, e->name);
}

static int print_rank (struct env_plan *p, long rank, struct slurmdl_error *err)
{
    struct plan_rank r;
    int rv = plan_rank (p, rank, &r, err);

    for (size_t i = 0; rv == 0 && i < r.vars.n; i++)
        if (entry_is_known (&r, &r.vars.list[i])) {
            printf ("%s=", r.vars.list[i].name);
            print_quoted (r.vars.list[i].value);
            putchar ('\n');
        }
    for (size_t i = 0; rv == 0 && i < r.unknown.n; i++)
        plan_note (p, "%s is not known: %s", r.unknown.list[i].name, r.unknown.list[i].value);
    plan_rank_free (&r);
    return rv;
}

/* ---- the table ---- */

struct env_row {
    const char *cell[COLUMNS];
    char text[COLUMNS][64];
};

static const char *const heads[COLUMNS] = { "RANK", "NODE",  "LOCAL", "ROLE",
                                            "GPUS", "CORES", "NIC",   NULL };

static const char *rank_value (const struct plan_rank *r, const char *name)
{
    const struct env_entry *e = entries_find (&r->vars, name);

    return e && e->value ? e->value : "";
}

/* Without --dl-bind: what it sees, by Slurm's numbers. */
static const char *visible_gpus (const struct env_plan *p, const struct plan_rank *r, char *buf,
                                 size_t size)
{
    long first = p->gpus_per_task ? r->local * p->gpus_per_task : 0;
    long count = p->gpus_per_task ? p->gpus_per_task : p->gpus;

    if (*r->gpus || count == 0)
        return r->gpus;
    snprintf (buf, size, count > 1 ? "%ld-%ld" : "%ld", first, first + count - 1);
    return buf;
}

static void fill_row (const struct env_plan *p, const struct plan_rank *r, struct env_row *row)
{
    *row = (struct env_row){ { NULL } };
    snprintf (row->text[0], sizeof (row->text[0]), "%ld", r->rank);
    snprintf (row->text[2], sizeof (row->text[2]), "%ld", r->local);
    if (*r->role)
        snprintf (row->text[3], sizeof (row->text[3]), "%s %ld", r->role, r->role_index);
    row->cell[0] = row->text[0];
    row->cell[1] = r->host;
    row->cell[2] = row->text[2];
    row->cell[3] = row->text[3];
    row->cell[4] = visible_gpus (p, r, row->text[4], sizeof (row->text[4]));
    row->cell[5] = r->cpus;
    row->cell[6] = r->nic;
}

static void print_rank_table (const struct env_plan *p, const struct plan_rank *r, long n)
{
    int width[COLUMNS] = { 0 };
    struct env_row row;

    for (long i = 0; i < n; i++) {
        fill_row (p, &r[i], &row);
        for (int c = 0; heads[c]; c++)
            if (*row.cell[c] && (int)strlen (row.cell[c]) > width[c])
                width[c] = (int)strlen (row.cell[c]);
    }
    for (long i = -1; i < n; i++) {
        const char *gap = "";
        if (i >= 0)
            fill_row (p, &r[i], &row);
        for (int c = 0; heads[c]; c++) {
            int w = (int)strlen (heads[c]);
            if (!width[c])
                continue;
            w = width[c] > w ? width[c] : w;
            printf ("%s%-*s", gap, heads[c + 1] ? w : 0,
                    i < 0          ? heads[c]
                    : *row.cell[c] ? row.cell[c]
                                   : "-");
            gap = "  ";
        }
        putchar ('\n');
    }
}

/* ---- variables ---- */

static bool is_same_in_all_ranks (const struct plan_rank *r, long n, const char *name)
{
    for (long i = 1; i < n; i++)
        if (strcmp (rank_value (&r[0], name), rank_value (&r[i], name)))
            return false;
    return true;
}

static void print_common (const struct plan_rank *r, long n)
{
    puts ("\nThe same for all ranks:");
    for (size_t i = 0; i < r[0].vars.n; i++) {
        const struct env_entry *e = &r[0].vars.list[i];
        if (entry_is_known (&r[0], e) && is_same_in_all_ranks (r, n, e->name))
            printf ("  %s=%s\n", e->name, e->value);
    }
}

static void print_rank_values (const struct plan_rank *r, long n, const char *name)
{
    int at = printf ("  %s=", name);

    for (long i = 0; i < n; i++) {
        const char *value = rank_value (&r[i], name);
        const struct env_entry *e = entries_find (&r[i].vars, name);
        if (at > 2 * WIDE || strlen (value) > WIDE) {
            printf ("... (--rank=%ld)", i);
            break;
        }
        at += printf ("%s%s", !e || !e->value ? "-" : value, i + 1 < n ? " " : "");
    }
    putchar ('\n');
}

/* Names that any rank has: rank 0 may lack one (DMLC_WORKER_ID). */
static void print_differing (const struct plan_rank *r, long n)
{
    struct env_entries seen = { NULL };

    puts ("\nBy rank, in their order:");
    for (long k = 0; k < n; k++)
        for (size_t i = 0; i < r[k].vars.n; i++) {
            const struct env_entry *e = &r[k].vars.list[i];
            if (!entry_is_known (&r[k], e) || entries_find (&seen, e->name))
                continue;
            entries_put (&seen, e->name, "");
            if (!is_same_in_all_ranks (r, n, e->name))
                print_rank_values (r, n, e->name);
        }
    entries_free (&seen);
}

static void collect_unknown (const struct plan_rank *r, long n, struct env_entries *all)
{
    for (long k = 0; k < n; k++)
        for (size_t i = 0; i < r[k].unknown.n; i++)
            entries_put (all, r[k].unknown.list[i].name, r[k].unknown.list[i].value);
}

static void print_unknown (const struct plan_rank *r, long n)
{
    struct env_entries all = { NULL };

    collect_unknown (r, n, &all);
    if (all.n)
        puts ("\nSet, but known only when the job runs:");
    for (int d = 0; d < PLAN_DOUBTS; d++) {
        const char *gap = "  ";
        bool any = false;
        for (size_t i = 0; i < all.n; i++)
            if (!strcmp (all.list[i].value, plan_doubts[d])) {
                printf ("%s%s", gap, all.list[i].name);
                gap = ", ";
                any = true;
            }
        if (any)
            printf (": %s\n", plan_doubts[d]);
    }
    entries_free (&all);
}

static void print_kept (const struct plan_rank *r)
{
    const char *head = "\nExported here, and so left as they are:";

    for (size_t i = 0; i < r->vars.n; i++)
        if (r->vars.list[i].kept) {
            if (head)
                puts (head);
            head = NULL;
            printf ("  %s=%s\n", r->vars.list[i].name, r->vars.list[i].value);
        }
}

static void print_all_variables (struct env_plan *p, const struct plan_rank *r)
{
    long n = p->ranks;

    print_rank_table (p, r, n);
    if (!*p->dl && !*p->bind && !*p->nccl)
        puts ("\nNo variable is set: none of --dl, --dl-bind and --dl-nccl is "
              "asked for.");
    else {
        print_common (r, n);
        if (n > 1)
            print_differing (r, n);
    }
    print_unknown (r, n);
    print_kept (r);
    if (p->notes)
        puts ("\nNotes:");
    for (int i = 0; i < p->notes; i++)
        printf ("  %s\n", p->note[i]);
}

/* ---- all ranks ---- */

static void free_planned_ranks (struct plan_rank *r, long n)
{
    for (long i = 0; i < n; i++)
        plan_rank_free (&r[i]);
    free (r);
}

static struct plan_rank *plan_all_ranks (struct env_plan *p, struct slurmdl_error *err)
{
    struct plan_rank *r = xcalloc ((size_t)p->ranks, sizeof (*r));
    int rv = 0;

    for (long i = 0; rv == 0 && i < p->ranks; i++)
        rv = plan_rank (p, i, &r[i], err);
    if (rv == 0)
        return r;
    free_planned_ranks (r, p->ranks);
    return NULL;
}

static int print_env_plan (struct env_plan *p, struct slurmdl_error *err)
{
    struct plan_rank *r = plan_all_ranks (p, err);

    if (!r)
        return -1;
    print_all_variables (p, r);
    free_planned_ranks (r, p->ranks);
    return 0;
}

static json_t *json_of_rank (const struct plan_rank *r)
{
    json_t *v = json_pack ("{s:i, s:s, s:i, s:i, s:{}, s:{}}", "rank", (int)r->rank, "node",
                           r->host, "node_index", (int)r->node, "local_rank", (int)r->local,
                           "environment", "unknown");

    if (*r->role)
        json_object_set_new (v, "role", json_string (r->role));
    if (*r->gpus)
        json_object_set_new (v, "gpus", json_string (r->gpus));
    if (*r->cpus)
        json_object_set_new (v, "cpus", json_string (r->cpus));
    if (*r->nic)
        json_object_set_new (v, "nic", json_string (r->nic));
    for (size_t i = 0; i < r->vars.n; i++)
        if (entry_is_known (r, &r->vars.list[i]))
            json_object_set_new (json_object_get (v, "environment"), r->vars.list[i].name,
                                 json_string (r->vars.list[i].value));
    for (size_t i = 0; i < r->unknown.n; i++)
        json_object_set_new (json_object_get (v, "unknown"), r->unknown.list[i].name,
                             json_string (r->unknown.list[i].value));
    return v;
}

static json_t *json_of_plan (struct env_plan *p, struct slurmdl_error *err)
{
    struct plan_rank *r = plan_all_ranks (p, err);
    json_t *v;

    if (!r)
        return NULL;
    v = json_pack ("{s:[], s:[]}", "ranks", "notes");
    for (long i = 0; i < p->ranks; i++)
        json_array_append_new (json_object_get (v, "ranks"), json_of_rank (&r[i]));
    for (int i = 0; i < p->notes; i++)
        json_array_append_new (json_object_get (v, "notes"), json_string (p->note[i]));
    free_planned_ranks (r, p->ranks);
    return v;
}

/* ---- the command ---- */

static int print_one (struct env_plan *p, long rank, struct slurmdl_error *err)
{
    if (rank >= p->ranks) {
        errno = EINVAL;
        return errorf (err, "--rank=%ld: the step has the ranks 0 to %ld", rank, p->ranks - 1);
    }
    if (print_rank (p, rank, err) < 0)
        return -1;
    for (int i = 0; i < p->notes; i++)
        complain ("env: %s", p->note[i]);
    return 0;
}

static int print_env_plan_json (struct env_plan *p, struct slurmdl_error *err)
{
    json_t *json = json_of_plan (p, err);

    if (!json)
        return -1;
    json_dumpf (json, stdout, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putchar ('\n');
    json_decref (json);
    return 0;
}

int cmd_env (const struct command_line *line)
{
    const struct env_options *opt = line->options;
    struct slurmdl_error err = { "" };
    struct env_plan *p = NULL;
    int rv;

    if (!opt->facts)
        return explain_print (opt->json);
    if ((rv = plan_create (&p, opt->facts, &err)) == 0)
        rv = opt->rank >= 0 ? print_one (p, (long)opt->rank, &err)
             : opt->json    ? print_env_plan_json (p, &err)
                            : print_env_plan (p, &err);
    plan_destroy (p);
    return rv < 0 ? fail (&err) : EXIT_OK;
}
