/* SPDX-License-Identifier: Apache-2.0 */
/* dl env in a step: the origin of each variable, and contradictions. */
#include "launcher/node/env_explain.h"

#include <jansson.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/node/env_variables.h"
#include "launcher/sys/say.h"
#include "runtime/base/nearest_word.h"
#include "runtime/network/exported.h"
#include "runtime/network/nccl.h"

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

static void read_mark (struct inside *x, const char *mark)
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

static bool has (const struct rank_environment *e, const char *name)
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
        if (strncmp (name, "DL_", 3) && !has (e, name))
            return false;
        set += n + (set[n] == ',');
    }
    return e->n > 0;
}

static void check_exported (struct inside *x, const struct task *t)
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

    for (const char *const *f = rankenv_frameworks; *f; f++)
        if (rankenv_fill (*f, &t->facts, &t->environment) >= 0 && explains (&t->environment, set)
            && t->environment.n < fewest) {
            fewest = t->environment.n;
            best = *f;
        }
    if (!best)
        return;
    rankenv_fill (best, &t->facts, &t->environment);
    check_exported (x, t);
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
    struct task *t = calloc (1, sizeof (*t));

    fill_environment (&all);
    if (t && getenv ("DL_ENV_SET")) {
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

static void compare_numbers (struct inside *x)
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
    struct fabric *f = calloc (1, sizeof (*f));
    int n;

    if (!f)
        return;
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

static void print_text (const struct inside *x)
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

static json_t *object (const struct env_entries *e)
{
    json_t *o = json_object ();

    for (size_t i = 0; i < e->n; i++)
        json_object_set_new (o, e->list[i].name, json_string (value (e->list[i].name)));
    return o;
}

static void print_json (const struct inside *x)
{
    json_t *lines = json_array ();
    json_t *o;

    for (int i = 0; i < x->lines; i++)
        json_array_append_new (lines, json_string (x->line[i]));
    o = json_pack ("{s:i, s:o, s:o, s:o}", "rank", atoi (value ("SLURM_PROCID")), "plugin",
                   object (&x->ours), "exported", object (&x->user), "contradictions", lines);
    json_dumpf (o, stdout, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putchar ('\n');
    json_decref (o);
}

int explain_print (bool json)
{
    struct inside *x;
    int status;

    if (!getenv ("SLURM_PROCID") || !getenv ("SLURM_STEP_NUM_TASKS")) {
        complain ("env: this is not a step of Slurm's: name a batch script or an "
                  "experiment file, or give --nodes=N");
        return EXIT_USAGE;
    }
    if (!(x = calloc (1, sizeof (*x)))) {
        complain ("env: out of memory");
        return EXIT_IO;
    }
    for (int i = 0; i < MARKS; i++)
        read_mark (x, marks[i]);
    read_users (x);
    compare_step (x);
    compare_numbers (x);
    compare_owners (x);
    check_devices (x);
    check_threads (x);
    check_elastic (x);
    check_network (x);
    (json ? print_json : print_text) (x);
    status = x->lines ? EXIT_FAILED : EXIT_OK;
    entries_free (&x->ours);
    entries_free (&x->user);
    free (x);
    return status;
}
