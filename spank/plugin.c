/* SPDX-License-Identifier: Apache-2.0 */
/* dl.so: the hooks that Slurm calls, and what each does. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "runtime/rank/task.h"
#include "spank/context.h"
#include "spank/defaults.h"
#include "spank/helper.h"
#include "spank/hooks.h"

SPANK_PLUGIN (dl, 1)

/* `dl doctor` looks for this text in the file. */
#define TEXT(number)    #number
#define RELEASE(number) PLUGIN_RELEASE TEXT (number)
static const char release[] __attribute__ ((used)) = RELEASE (SLURM_VERSION_NUMBER);

/* Act only in tasks of an ordinary step: the environment of a batch script would
 * leak into everything that it starts.
 */
static int is_ordinary_step (spank_t sp)
{
    uint32_t step;

    return spank_get_item (sp, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step != SLURM_BATCH_SCRIPT
           && step != SLURM_EXTERN_CONT && step != SLURM_INTERACTIVE_STEP
           && step != SLURM_PENDING_STEP;
}

static bool is_any (bool (*is_it) (int row))
{
    for (int row = 0; row < PLUGIN_OPTIONS; row++)
        if (is_it (row))
            return true;
    return false;
}

static bool is_asked_for (int row)
{
    return option_is_on (row) && option_is_given (row);
}

static bool is_any_on (void)
{
    return is_any (option_is_on);
}

/* A default prints no table, because nobody asked for it. */
static bool wants_table (void)
{
    return option_is_on (PLUGIN_DEBUG) && option_is_given (PLUGIN_DEBUG);
}

/* Gather facts only if a site default turned an option on. */
static void decide_in_command (int ac, char **av)
{
    struct step_facts facts = { .gpus = ANSWER_UNKNOWN };
    bool by_default = false;

    options_decide (&facts, true, ac, av);
    for (int row = 0; row < PLUGIN_OPTIONS; row++)
        by_default |= option_is_on (row) && !option_is_given (row);
    if (!by_default)
        return;
    facts_of_command (&facts);
    if (facts.gpus == ANSWER_NO)
        options_decide (&facts, false, ac, av);
}

/* srun runs the program in this variable before a step.  That is our only way to
 * run if the plugin is not loaded.
 */
static const char step_prolog[] = "SLURM_PROLOG";
static const char not_loaded[] = PLUGSTACKDIR "/dl.so-is-not-loaded";

/* In sbatch and salloc: make each srun of the job that does not load the plugin
 * print a line.  Keep a program that the user has chosen.
 */
static void tell_if_absent (void)
{
    if (access (not_loaded, X_OK) == 0)
        setenv (step_prolog, not_loaded, 0);
}

/* In srun, sbatch and salloc, before they read their environment: this command has
 * loaded the plugin, so drop the warning.
 */
static void forget_absence (void)
{
    const char *own = strrchr (not_loaded, '/');
    const char *value = getenv (step_prolog);
    const char *name = value ? strrchr (value, '/') : NULL;

    if (spank_context () != S_CTX_REMOTE && name && !strcmp (name, own))
        unsetenv (step_prolog);
}

int slurm_spank_init (spank_t sp, int ac, char **av)
{
    forget_absence ();
    switch (spank_context ()) {
    case S_CTX_ALLOCATOR:
        inherited_options_clear ();
        /* fall through */
    case S_CTX_LOCAL:
    case S_CTX_REMOTE:
        options_begin (ac, av);
        if (options_register (sp) < 0)
            plugin_complain ("another plugin has one of these options; see plugstack.conf");
        break;
    case S_CTX_SLURMD:
        options_log (ac, av);
        break;
    default:
        break;
    }
    return 0; /* an error would drain the node */
}

/* Slurm ends a step only after all helpers of its tasks have ended, so they need a
 * way to notice the end of the tasks.
 */
int slurm_spank_user_init (spank_t sp, int ac, char **av)
{
    const struct step_facts nothing = { .gpus = ANSWER_UNKNOWN };

    options_decide (&nothing, false, ac, av);
    if (is_ordinary_step (sp) && (option_is_on (PLUGIN_MONITOR) || option_is_on (PLUGIN_DEBUG)))
        ending_open (sp);
    return 0;
}

int slurm_spank_task_exit (spank_t sp, int ac, char **av)
{
    (void)sp;
    (void)ac;
    (void)av;
    ending_task ();
    return 0;
}

/* Defaults do not connect ranks that the user has set up.  The default 'auto' is
 * only for programs whose ranks train together.
 */
static void apply_defaults (spank_t sp, int ac, char **av, bool *may_bind)
{
    struct defaults_word w;
    struct step_facts facts;

    defaults_hear (sp, &w, ac, av);
    facts_of_task (sp, &facts);
    options_decide (&facts, variable_number (sp, "SLURM_PROCID") == 0, w.ac, w.av);
    if (option_is_on (PLUGIN_FRAMEWORK) && !option_is_given (PLUGIN_FRAMEWORK)
        && (task_has_ranks (sp)
            || (!strcmp (option_value (PLUGIN_FRAMEWORK), "auto")
                && (w.starts || !meant_for (sp, context_own ()->policy.named)))))
        option_switch_off (PLUGIN_FRAMEWORK);
    if (w.known)
        rollcall_answer (sp, is_any_on ());
    if (w.known && !is_any_on ())
        defaults_clear (sp);
    else if (w.known && !option_is_on (PLUGIN_FRAMEWORK))
        spank_unsetenv (sp, ORDER_VARIABLE);
    *may_bind = w.may_bind || option_is_given (PLUGIN_BIND);
}

int slurm_spank_task_init (spank_t sp, int ac, char **av)
{
    enum task_part part = TASK_BY_ITSELF;
    bool may_bind;

    if (!is_ordinary_step (sp))
        return 0;
    apply_defaults (sp, ac, av, &may_bind);
    if (variable_number (sp, "SLURM_PROCID") == 0)
        defaults_report (may_bind);
    if (option_is_on (PLUGIN_FRAMEWORK))
        part = task_environment (sp, option_value (PLUGIN_FRAMEWORK), option_value (PLUGIN_ROLES));
    if (*option_value (PLUGIN_BIND) && may_bind)
        bind_task (sp);
    if (*option_value (PLUGIN_NCCL))
        nccl_task (sp);
    if (option_is_on (PLUGIN_DEBUG))
        debug_task (sp);
    gather_task (sp, option_value (PLUGIN_CHECK), wants_table ());
    if (option_is_on (PLUGIN_MONITOR))
        monitor_task (sp);
    /* from here on, another process runs the task's program */
    if (part != TASK_BY_ITSELF)
        helper_attend (sp, part == TASK_LEADS ? "leads" : "serves");
    return 0; /* never fail a job because of its environment */
}

/* In srun, sbatch and salloc, as the user.  In srun this is the last hook whose
 * environment reaches all components of a heterogeneous job.
 */
int slurm_spank_init_post_opt (spank_t sp, int ac, char **av)
{
    if (spank_context () != S_CTX_LOCAL && spank_context () != S_CTX_ALLOCATOR)
        return 0;
    inherited_clear ();
    decide_in_command (ac, av);
    if (spank_context () == S_CTX_ALLOCATOR) {
        if (is_any (is_asked_for))
            tell_if_absent ();
        return 0;
    }
    options_lost ();
    plugin_secret (is_any_on ());
    hostfile_tell (option_is_on (PLUGIN_FRAMEWORK));
    rollcall_start (is_any_on ());
    defaults_tell (is_any_on (), ac, av);
    gather_start (sp, option_value (PLUGIN_CHECK), wants_table ());
    return 0;
}

int slurm_spank_local_user_init (spank_t sp, int ac, char **av)
{
    (void)ac;
    (void)av;
    if (!is_ordinary_step (sp))
        return 0;
    rollcall_launch (sp);
    if (option_is_on (PLUGIN_MONITOR) && option_is_given (PLUGIN_MONITOR))
        monitor_begin (sp);
    return 0;
}

int slurm_spank_exit (spank_t sp, int ac, char **av)
{
    (void)ac;
    (void)av;
    if (spank_context () == S_CTX_LOCAL) {
        gather_end ();
        rollcall_end ();
        monitor_end (sp);
    }
    return 0;
}
