/* SPDX-License-Identifier: Apache-2.0 */
/* --dl: set the environment of a task, as the user, before its program starts.
 *
 */
#include "spank/task.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/network/exported.h"
#include "spank/context.h"
#include "spank/place.h"
#include "spank/variable.h"

/* What must differ between ranks, ranks of a node or nodes, or be their number. */
enum count_of { SIZE, RANK, LOCAL, NODE };
static const struct {
    const char *name;
    enum count_of of;
} counts[] = {
    { "RANK", RANK },
    { "WORLD_SIZE", SIZE },
    { "LOCAL_RANK", LOCAL },
    { "LOCAL_WORLD_SIZE", SIZE },
    { "NODE_RANK", NODE },
    { "PET_NODE_RANK", NODE },
    { "PET_NNODES", SIZE },
    { "JAX_PROCESS_ID", RANK },
    { "JAX_NUM_PROCESSES", SIZE },
    { "HOROVOD_RANK", RANK },
    { "HOROVOD_SIZE", SIZE },
    { "HOROVOD_LOCAL_RANK", LOCAL },
    { "HOROVOD_LOCAL_SIZE", SIZE },
};

/* This task is about to listen there: report now what would else be a time-out.
 */
static void test_port (const struct task *t, int port)
{
    char text[8];

    if (exported_port_is_taken (port))
        slurm_error ("dl: port %d of this node is in use; set MASTER_PORT%s", port,
                     variables_text (&t->vars, "SLURM_STEP_RESV_PORTS", text, sizeof (text)) < 0
                         ? ", or ask for MpiParams=ports=... in slurm.conf"
                         : "");
}

/* Not the port in whose place the program takes the user's. */
static void test_ports (const struct task *t, const char *framework, const char *stale)
{
    const struct rank_facts *f = &t->facts;
    bool own = exported_has (t, stale, "MASTER_PORT") || exported_has (t, stale, "PET_MASTER_PORT")
               || exported_has (t, stale, "JAX_COORDINATOR_ADDRESS");

    if (rankenv_needs_task_ports (framework)) {
        if (f->task_port)
            test_port (t, f->task_port + (int)(f->one_machine ? f->rank : f->local_rank));
    } else if (f->rank == t->master_rank && strcmp (framework, "mpi") && !own) {
        test_port (t, strcmp (framework, "jax") ? f->port : f->port2);
    }
}

/* One line for the step, not one for each rank; what only this node sees is
 * reported by its first task.
 */
static void report (const struct task *t, const char *framework, const char *why)
{
    if (*why
        && (t->facts.rank <= 0 || ((t->contradicted || *t->facts.unknown) && !t->facts.local_rank)))
        slurm_error ("dl: --dl=%s: %s", framework, why);
}

/* The words of the program; 0 of them if Slurm does not say. */
static int program (spank_t sp, char ***argv)
{
    int argc;

    return spank_get_item (sp, S_JOB_ARGV, &argc, argv) == ESPANK_SUCCESS && *argv ? argc : 0;
}

/* mpirun starts one of these on each node, and the ranks from there: they would
 * all have the rank of their node.
 */
static bool is_mpirun (spank_t sp)
{
    static const char *const programs[] = { "orted", "prted", "hydra_pmi_proxy",
                                            "hydra_bstrap_proxy" };
    const char *name;
    char **argv;

    if (program (sp, &argv) < 1)
        return false;
    name = strrchr (argv[0], '/') ? strrchr (argv[0], '/') + 1 : argv[0];
    for (size_t i = 0; i < sizeof (programs) / sizeof (*programs); i++)
        if (!strcmp (name, programs[i]))
            return true;
    return false;
}

/* "--max-restarts=3", or in two words, or with a "_" as torchrun takes it. */
static const char *argument (char **argv, int n, const char *name)
{
    size_t len = strlen (name);

    for (int i = 0; i < n && argv[i]; i++) {
        const char *a = argv[i];
        size_t k = 0;
        while (k < len && (a[k] == name[k] || (a[k] == '_' && name[k] == '-')))
            k++;
        if (k == len && a[k] == '=')
            return a + k + 1;
        if (k == len && !a[k] && i + 1 < n && argv[i + 1])
            return argv[i + 1];
    }
    return NULL;
}

/* What torchrun is told on its command line, which wins, or by a variable. */
static const char *setting (spank_t sp, const char *option, const char *name, char text[32])
{
    char **argv = NULL;
    int n = program (sp, &argv);
    const char *value = argument (argv, n, option);

    variable_text (sp, name, text, 32);
    return value ? value : text;
}

static bool is_elastic (spank_t sp)
{
    char text[32];

    return atoi (setting (sp, "--max-restarts", "PET_MAX_RESTARTS", text)) > 0
           || strchr (setting (sp, "--nnodes", "PET_NNODES", text), ':');
}

/* Its own choice stays, and torchrun fails after minutes. */
static void report_static (spank_t sp, const struct task *t)
{
    char text[32];

    if (t->facts.elastic && t->facts.nodes > 1 && t->facts.rank == 0
        && !strcmp (setting (sp, "--rdzv-backend", "PET_RDZV_BACKEND", text), "static"))
        plugin_complain ("torchrun with --max-restarts or --nnodes=MIN:MAX on "
                         "several nodes needs --rdzv-backend=c10d: with static "
                         "no other node hears of a restart");
}

/* --dl-bind has a line of its own for GPUs that are hidden. */
static void advise (const struct task *t, const char *framework)
{
    char line[200];

    if (!option_is_given (PLUGIN_FRAMEWORK)
        || (option_is_on (PLUGIN_BIND) && t->facts.visible_gpus == 1))
        return;
    rankenv_advice (framework, &t->facts, line, sizeof (line));
    report (t, framework, line);
}

/* The first task for which 0, the value of a batch script, is wrong.  To ranks
 * that see one GPU each it is the number of theirs.
 */
static bool is_first_other (const struct rank_facts *f, enum count_of of)
{
    switch (of) {
    case RANK:
        return f->rank == 1;
    case LOCAL:
        return f->node == 0 && f->local_rank == 1 && f->visible_gpus != 1;
    case NODE:
        return f->node == 1 && f->local_rank == 0;
    default:
        return false;
    }
}

/* What the user exported stays, and one value for all ranks, such as that of
 * RANK=$SLURM_PROCID in a batch script, makes them wait for ever.
 */
static void report_exported (spank_t sp, const struct task *t, const char *name, enum count_of of)
{
    const struct rank_variable *v = t->environment.vars;
    char own[32];

    for (int i = 0; i < t->environment.n; i++)
        if (!strcmp (v[i].name, name) && variable_text (sp, name, own, sizeof (own)) == 0
            && strcmp (own, v[i].value)
            && (t->facts.rank == 0 || (is_first_other (&t->facts, of) && !strcmp (own, "0"))))
            plugin_complain ("%s=%s was exported, and stays, but here it is %s: "
                             "unset it in the job script",
                             name, own, v[i].value);
}

/* What the user exported stays, and is looked at as hard as what is set. */
static void check_exported (const struct task *t, const char *stale)
{
    char lines[EXPORTED_LINES][EXPORTED_LINE];
    int n = exported_check (t, stale, lines);

    for (int i = 0; i < n; i++)
        plugin_complain ("%s", lines[i]);
}

static void set_all (spank_t sp, struct task *t, const char *framework, const char *roles)
{
    char stale[GIVEN_TEXT];
    int n;

    if (!*roles)
        roles = rankenv_roles (framework);
    if (task_place (sp, t, roles, rankenv_needs_task_ports (framework)) < 0) {
        char why[sizeof (t->why) + 32];
        snprintf (why, sizeof (why), "nothing is set: %s", t->why);
        report (t, framework, why);
        return;
    }
    if (is_mpirun (sp)) {
        if (option_is_given (PLUGIN_FRAMEWORK))
            report (t, framework,
                    "nothing is set: mpirun starts the ranks itself: start "
                    "them with srun");
        return;
    }
    variable_text (sp, "DL_ENV_SET", stale, sizeof (stale));
    test_ports (t, framework, stale);
    if (!strcmp (framework, "torchrun") || !strcmp (framework, "auto")) {
        t->facts.elastic = is_elastic (sp);
        report_static (sp, t);
    }
    n = rankenv_fill (framework, &t->facts, &t->environment);
    if (exported_way (t, stale))
        n = rankenv_fill (framework, &t->facts, &t->environment);
    report (t, framework, t->environment.why);
    advise (t, framework);
    if (option_is_given (PLUGIN_FRAMEWORK))
        check_exported (t, stale);
    if (n > 0)
        task_set (t, n);
    if (option_is_given (PLUGIN_FRAMEWORK))
        for (size_t i = 0; i < sizeof (counts) / sizeof (*counts); i++)
            report_exported (sp, t, counts[i].name, counts[i].of);
}

bool task_has_ranks (spank_t sp)
{
    char text[32];

    for (size_t i = 0; i < sizeof (counts) / sizeof (*counts); i++)
        if (variable_text (sp, counts[i].name, text, sizeof (text)) == 0)
            return true;
    return false;
}

/* The chief, or worker 0 where there is none, as in a TFJob of Kubeflow. */
static enum task_part part_of (const struct task *t, const char *framework)
{
    const struct rank_roles *roles = t->facts.roles;
    long index, first;
    enum role role;

    if (strcmp (framework, "tf") || t->environment.n <= 0 || !roles
        || roles_count (roles, ROLE_PS, NULL) + roles_count (roles, ROLE_SERVER, NULL) == 0)
        return TASK_BY_ITSELF;
    role = roles_of (roles, t->facts.rank, &index);
    if (roles_count (roles, ROLE_CHIEF, &first) == 0
        && roles_count (roles, ROLE_MASTER, &first) == 0)
        return role == ROLE_WORKER && index == 0 ? TASK_LEADS : TASK_SERVES;
    return t->facts.rank == first ? TASK_LEADS : TASK_SERVES;
}

enum task_part task_environment (spank_t sp, const char *framework, const char *roles)
{
    struct task *t = calloc (1, sizeof (*t));
    enum task_part part;

    if (!t) {
        slurm_error ("dl: --dl=%s: nothing is set: out of memory", framework);
        return TASK_BY_ITSELF;
    }
    set_all (sp, t, framework, roles);
    part = part_of (t, framework);
    if (*t->order)
        spank_unsetenv (sp, ORDER_VARIABLE);
    free (t);
    return part;
}
