/* SPDX-License-Identifier: Apache-2.0 */
/* The command of an attempt, and its environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/config/checkpoint_policy.h"
#include "launcher/config/experiment.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/hparams.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/software_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/trainer/trainer.h"
#include "runtime/base/array.h"

struct env {
    char **list;
    size_t n, capacity;
};

static void env_add (struct env *env, char *entry)
{
    if (array_reserve (&env->list, &env->capacity, env->n, 2, sizeof (*env->list)) < 0)
        out_of_memory ();
    env->list[env->n++] = entry;
    env->list[env->n] = NULL;
}

static void env_set (struct env *env, const char *name, const char *value)
{
    size_t len = strlen (name);
    char *entry = xasprintf ("%s=%s", name, value);

    for (size_t i = 0; i < env->n; i++)
        if (!strncmp (env->list[i], name, len) && env->list[i][len] == '=') {
            free (env->list[i]);
            env->list[i] = entry;
            return;
        }
    env_add (env, entry);
}

static void env_set_number (struct env *env, const char *name, long long value)
{
    char text[32];

    snprintf (text, sizeof (text), "%lld", value);
    env_set (env, name, text);
}

static void env_hparams (struct env *env, const struct trial_attempt *a)
{
    const struct experiment *e = a->sweep->exp;
    const json_t *hparams = trial_hparams (a->sweep, sweep_trial (a->sweep, a->trial));
    char name[256];

    for (size_t i = 0; i < e->space->nhparams; i++) {
        char *text = hparams_text (hparams, e->space->hparams[i].path);
        hparams_variable (name, sizeof (name), e->space->hparams[i].path);
        if (text)
            env_set (env, name, text);
        free (text);
    }
}

/* The folder that the trial resumes from: its own last result's, another trial's, or, in a fork,
 * that of another experiment's trial.  Returns the length.
 */
static int64_t checkpoint_dir (const struct trial_attempt *a, char *path, size_t size)
{
    const struct sweep_trial *t = sweep_trial (a->sweep, a->trial);
    struct milestone m = trial_last (t);
    long trial = a->trial;

    *path = '\0';
    if (!m.attempt && sweep_trial (a->sweep, t->from)) {
        trial = t->from;
        m.length = t->from_length;
        m.attempt = trial_milestone (sweep_trial (a->sweep, trial), m.length);
    }
    if (m.attempt)
        snprintf (path, size, "%s/trials/%04ld/a.%ld", a->sweep->dir, trial, m.attempt);
    else if ((m.length = a->sweep->exp->fork->length))
        fork_source_dir (path, size, a->sweep->dir);
    return m.length;
}

/* A single trial whose code is not frozen runs in the user's folder, so its attempts leave their
 * files there.  A file that is older than the experiment is not theirs; both times must be of one
 * file server.
 */
static bool was_left_outside (const struct trial_attempt *a, const char *file, char *path,
                              size_t size)
{
    const struct experiment *e = a->sweep->exp;
    char name[PATH_MAX];
    struct stat made, left;

    if (!file || a->sweep->code || strcmp (e->search->searcher, "single")
        || snprintf (name, sizeof (name), "%s/experiment.conf", a->sweep->dir) >= (int)sizeof (name)
        || stat (name, &made) < 0
        || snprintf (name, sizeof (name), "%s/%s", e->dir, file) >= (int)sizeof (name)
        || stat (name, &left) < 0 || left.st_dev != made.st_dev
        || left.st_mtim.tv_sec < made.st_mtim.tv_sec
        || (left.st_mtim.tv_sec == made.st_mtim.tv_sec
            && left.st_mtim.tv_nsec < made.st_mtim.tv_nsec))
        return false;
    snprintf (path, size, "%s", e->dir);
    return folder_has_files (path, file);
}

/* The folder with the files to resume from, whether or not a result was accepted. */
static int resume_dir (const struct trial_attempt *a, const char *file, char *path, size_t size)
{
    if (attempt_with_files (a, file, path, size) == 0)
        return 0;
    trial_dir (a, path, size);
    if (file && folder_has_files (path, file))
        return 0;
    if (was_left_outside (a, file, path, size))
        return 0;
    /* none of the trial's own attempts, one of which has a result, has usable files */
    if (trial_last (sweep_trial (a->sweep, a->trial)).attempt)
        return -1;
    checkpoint_dir (a, path, size);
    return *path && folder_has_files (path, file) ? 0 : -1;
}

static void env_checkpoint (struct env *env, const struct trial_attempt *a)
{
    const struct sweep_trial *t = sweep_trial (a->sweep, a->trial);
    char path[4200];

    env_set_number (env, "DL_CHECKPOINT_ATTEMPT", trial_last (t).attempt);
    env_set_number (env, "DL_CHECKPOINT_LENGTH", checkpoint_dir (a, path, sizeof (path)));
    env_set (env, "DL_CHECKPOINT_DIR", path);
    if (resume_dir (a, NULL, path, sizeof (path)) < 0)
        *path = '\0';
    env_set (env, "DL_RESUME_DIR", path);
    trial_dir (a, path, sizeof (path));
    env_set (env, "DL_TRIAL_DIR", path);
}

static void env_variables (struct env *env, char **variables)
{
    for (; variables && *variables; variables++) {
        char *eq = strchr (*variables, '=');
        char *name = xstrndup (*variables, (size_t)(eq - *variables));
        env_set (env, name, eq + 1);
        free (name);
    }
}

static uint32_t seed_of (const struct trial_attempt *a)
{
    return searcher_trial_seed (a->sweep->exp->search->config.seed, a->trial);
}

/* Drop another run's hyperparameters: one of them may not be active here. */
static void env_inherit (struct env *env, const struct experiment *e)
{
    bool is_step = experiment_has_ranks (e);
    char **v = e->software->activated ? e->software->activated : environ;

    for (; *v; v++)
        if (strncmp (*v, "DL_HP_", 6) && !(is_step && variable_is_of_step (*v)))
            env_add (env, xstrdup (*v));
}

/* The best checkpoints of the experiment are among the best of its trials. */
static void env_retention (struct env *env, const struct experiment *e)
{
    const struct checkpoint_policy *p = e->checkpoints;

    env_set_number (env, "DL_KEEP_BEST",
                    p->trial_best > p->experiment_best ? p->trial_best : p->experiment_best);
    env_set_number (env, "DL_KEEP_LATEST", p->trial_latest);
    env_set_number (env, "DL_LARGER_IS_BETTER", !e->search->config.smaller_is_better);
}

/* ---- a container ---- */

/* Add the frozen folder and its copy: the copy may link to files of the original, and trials may
 * run in a folder below it.
 */
static void add_code_folders (char ***list, const struct sweep *s)
{
    const struct experiment *e = s->exp;
    size_t n = s->root ? strlen (s->root) : 0;
    size_t whole = strlen (e->dir);
    size_t below;

    if (!n || !e->file_dir || strncmp (e->file_dir, s->root, n))
        return;
    below = strlen (e->file_dir + n);
    strings_add_part (list, s->root, n);
    if (below < whole && !strcmp (e->dir + whole - below, e->file_dir + n))
        strings_add_part (list, e->dir, whole - below);
}

/* The folders that a trial uses besides its working folder; what it resumes from is in the
 * experiment's.
 */
static char **container_folders (const struct trial_attempt *a)
{
    char **list = NULL;

    if (a->own) {
        strings_add_all (&list, a->own->folders);
        return list;
    }
    strings_add (&list, a->sweep->dir);
    add_code_folders (&list, a->sweep);
    if (*a->work)
        strings_add_part (&list, a->work, strlen (a->work) - strlen (sweep_code_below (a->sweep)));
    return list;
}

static void env_container (struct env *env, const struct trial_attempt *a)
{
    const struct software *s = a->sweep->exp->software;
    char **folders = s->image && !s->by_srun ? container_folders (a) : NULL;
    char *text = folders ? software_text (s, folders, false) : NULL;

    if (text)
        env_set (env, "DL_SOFTWARE", text);
    free (text);
    strings_free (folders);
}

static void env_alone (struct env *env, const struct job_settings *j)
{
    char *text = job_alone (j);

    env_set (env, ALONE_VARIABLE, text ?: "");
    free (text);
}

char **attempt_environment (const struct trial_attempt *a)
{
    const struct experiment *e = a->sweep->exp;
    struct env env = { 0 };
    char path[4200];

    env_inherit (&env, e);
    if (a->ranks)
        env_set (&env, "DL_RANKS", a->ranks);
    if (a->own) {
        env_variables (&env, a->own->variables);
        env_container (&env, a);
        return env.list;
    }
    snprintf (path, sizeof (path), "%s/hparams.json", a->dir);
    env_set (&env, "DL_EXPERIMENT", e->name);
    env_set (&env, "DL_EXPERIMENT_DIR", a->sweep->dir);
    env_set (&env, "DL_ATTEMPT_DIR", a->dir);
    env_set (&env, "DL_HPARAMS", path);
    env_set (&env, "DL_METRIC", e->metric->name);
    env_retention (&env, e);
    snprintf (path, sizeof (path), "%s/" ENDS_NAME, a->dir);
    env_set (&env, "DL_JOB_ENDS", e->job->nroles ? path : "");
    env_alone (&env, e->job);
    env_set (&env, "DL_SOCKET", a->socket ? a->socket : "");
    env_set_number (&env, "DL_TRIAL", a->trial);
    env_set_number (&env, "DL_ATTEMPT", a->number);
    env_set_number (&env, "DL_LENGTH", a->length);
    env_set_number (&env, "DL_LENGTH_KNOWN", experiment_knows_length (e));
    env_set_number (&env, "DL_SEED", seed_of (a));
    env_set_number (&env, "DL_REPEAT", trial_repeat (a->sweep, a->trial));
    env_checkpoint (&env, a);
    env_hparams (&env, a);
    env_variables (&env, e->variables);
    env_container (&env, a);
    return env.list;
}

/* ---- the command ---- */

static char *find_resume_dir (void *attempt, const char *file)
{
    char path[4200];

    return resume_dir (attempt, file, path, sizeof (path)) == 0 ? xstrdup (path) : NULL;
}

static int add_argument_word (void *env, char *word)
{
    if (!word)
        out_of_memory ();
    env_add (env, word);
    return 0;
}

static json_t *builtins_of (const struct trial_attempt *a)
{
    char folder[4200];

    trial_dir (a, folder, sizeof (folder));
    return json_pack ("{s:I, s:I, s:I, s:I, s:s, s:s}", "length", (json_int_t)a->length, "trial",
                      (json_int_t)a->trial, "repeat", (json_int_t)trial_repeat (a->sweep, a->trial),
                      "seed", (json_int_t)seed_of (a), "attempt_dir", a->dir, "trial_dir", folder);
}

/* The words of the entrypoint as text for a shell. */
static char *entrypoint_text (const struct experiment *e, const struct command_values *v)
{
    struct env argv = { 0 };
    char *text = NULL;
    size_t size;
    FILE *f;

    if (e->entrypoint)
        return hparams_expand (e->entrypoint, v, true);
    for (char **s = e->argv; *s; s++)
        hparams_arguments (*s, v, add_argument_word, &argv);
    f = xopen_memstream (&text, &size);
    for (size_t i = 0; i < argv.n; i++) {
        char *word = shell_word (argv.list[i]);
        fprintf (f, "%s ", word);
        free (word);
    }
    xclose_memstream (f);
    strings_free (argv.list);
    return text;
}

/* Each rank runs the command of its role.  If only some roles have GPUs, hide them from the ranks
 * of the others, even in an allocation that dl did not request.
 */
static char *role_script (const struct experiment *e, const struct command_values *v)
{
    bool gpus = job_most_gpus (e->job) > 0;
    long long first = 0;
    char *text = NULL;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    for (size_t i = 0; i < e->job->nroles; i++) {
        const struct job_role *r = &e->job->roles[i];
        char *command = r->command ? hparams_expand (r->command, v, true) : entrypoint_text (e, v);
        long long end = first + (long long)r->count;
        fprintf (f,
                 "%s [ \"$SLURM_PROCID\" -lt %lld ]; then\n"
                 "DL_ROLE=%s DL_ROLE_COUNT=%lld DL_ROLE_INDEX=$((SLURM_PROCID - %lld))\n"
                 "export DL_ROLE DL_ROLE_COUNT DL_ROLE_INDEX\n%s%s\n",
                 i ? "elif" : "if", end, r->name, (long long)r->count, first,
                 gpus && !r->gpus ? "export CUDA_VISIBLE_DEVICES= ROCR_VISIBLE_DEVICES=\n" : "",
                 command);
        free (command);
        first = end;
    }
    fputs ("fi\n", f);
    xclose_memstream (f);
    return text;
}

char **attempt_words (const struct trial_attempt *a)
{
    const struct experiment *e = a->sweep->exp;
    const json_t *hparams = trial_hparams (a->sweep, sweep_trial (a->sweep, a->trial));
    json_t *more = builtins_of (a);
    const struct command_values v = { e, hparams, more, find_resume_dir, (void *)a };
    struct env argv = { 0 };

    if (e->entrypoint || e->job->nroles > 0) {
        env_add (&argv, xstrdup ("/bin/sh"));
        env_add (&argv, xstrdup ("-c"));
        add_argument_word (&argv, e->job->nroles > 0 ? role_script (e, &v)
                                                     : hparams_expand (e->entrypoint, &v, true));
    } else
        for (char **s = e->argv; *s; s++)
            hparams_arguments (*s, &v, add_argument_word, &argv);
    json_decref (more);
    for (size_t i = 0; i < argv.n && *a->work; i++) {
        char *word = work_folder_command (a, argv.list[i]);
        free (argv.list[i]);
        argv.list[i] = word;
    }
    return argv.list;
}

/* Either srun starts each rank in its container, or `dl within` does. */
static int add_launch_words (char ***words, const struct trial_attempt *a,
                             struct slurmdl_error *err)
{
    const struct experiment *e = a->sweep->exp;
    const struct software *s = e->software;
    char **folders;
    int rv;

    if (experiment_has_ranks (e))
        step_command (a, !s->by_srun, words);
    if (!s->image)
        return 0;
    if (!s->by_srun) {
        within_command (words);
        return 0;
    }
    folders = container_folders (a);
    rv = container_srun_words (s, *a->work ? a->work : e->dir, folders,
                               a->own ? a->own->variables : e->variables, words, err);
    strings_free (folders);
    return rv;
}

char **attempt_command (const struct trial_attempt *a, struct slurmdl_error *err)
{
    char **words = a->own ? NULL : attempt_words (a);
    char **all = NULL;
    int rv = add_launch_words (&all, a, err);

    strings_add_all (&all, a->own ? a->own->words : words);
    strings_free (words);
    if (rv == 0)
        return all;
    strings_free (all);
    return NULL;
}
