/* SPDX-License-Identifier: Apache-2.0 */
/* Start the workers of an existing or a new experiment. */
#include "launcher/cmd/start.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/code/code.h"
#include "launcher/config/code_settings.h"
#include "launcher/config/edit.h"
#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/hparams.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/config/worker_settings.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "launcher/worker/worker.h"
#include "runtime/base/error.h"

/* ---- dry run ---- */

static void print_points (const struct experiment *e, struct searcher *s, const char *name)
{
    double *x = xcalloc (e->space->nparams + 1, sizeof (*x));
    struct search_op op;

    for (int i = 0; s && i < 3; i++) {
        if (searcher_ask (s, &op, x) != SEARCH_RUN || searcher_begin (s, &op, x) < 0)
            break;
        json_t *h = hparams_json (e, x);
        char *text = json_dumps (h, JSON_SORT_KEYS | JSON_REAL_PRECISION (9));
        printf ("  %s %ld: %s\n", name, op.trial, text);
        free (text);
        json_decref (h);
    }
    free (x);
}

/* Print the points that are tried first.  Without a seed they are unknown, so print
 * samples.
 */
static void print_first_points (const struct experiment *e)
{
    const struct search_config any = { .name = "random",
                                       .max_trials = 3,
                                       .max_length = 1,
                                       .constraint = e->search->config.constraint };
    struct searcher *s = searcher_create (e->search->seed >= 0 ? &e->search->config : &any,
                                          e->space->params, e->space->nparams);

    print_points (e, s, e->search->seed >= 0 ? "trial" : "sample");
    searcher_destroy (s);
}

/* Print what each member runs, in one line. */
static void print_command (const struct experiment *e, const char *command)
{
    char *text = NULL;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    if (command || e->entrypoint)
        fputs (command ?: e->entrypoint, f);
    for (char **a = command || e->entrypoint ? NULL : e->argv; a && *a; a++) {
        char *word = shell_word (*a);
        fprintf (f, "%s%s", a == e->argv ? "" : " ", (*a)[strcspn (*a, " \t\n'\"")] ? word : *a);
        free (word);
    }
    xclose_memstream (f);
    for (char *c = text; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    puts (text);
    free (text);
}

/* "2 cores, 1 GPU, 16G" */
static void needs_text (char *buf, size_t size, int64_t cpus, int64_t gpus, const char *memory)
{
    int n = snprintf (buf, size, "%lld core%s", (long long)cpus, cpus == 1 ? "" : "s");

    if (gpus > 0)
        n += snprintf (buf + n, size - (size_t)n, ", %lld GPU%s", (long long)gpus,
                       gpus == 1 ? "" : "s");
    if (memory)
        snprintf (buf + n, size - (size_t)n, ", %.16s", memory);
}

static void print_role (const struct experiment *e, const struct job_role *r)
{
    char needs[64];

    needs_text (needs, sizeof (needs), r->cpus ?: e->resources->cpus, r->gpus,
                r->memory ?: e->resources->memory);
    printf ("  %-10s %3lld x %-20s %-10s  ", r->name, (long long)r->count, needs,
            r->restart_policy ?: e->job->restart_policy ?: "on_failure");
    print_command (e, r->command);
}

static void print_members (const struct experiment *e)
{
    const struct resources *r = e->resources;
    int64_t gpus = experiment_gpus (e) / r->nodes;
    char needs[64];

    for (size_t i = 0; i < e->job->nroles; i++)
        print_role (e, &e->job->roles[i]);
    if (e->job->nroles > 0)
        return;
    needs_text (needs, sizeof (needs), r->cpus, 0, NULL);
    printf ("  %lld node%s, %lld process%s a node, %s a process", (long long)r->nodes,
            r->nodes == 1 ? "" : "s", (long long)r->ranks, r->ranks == 1 ? "" : "es", needs);
    if (gpus > 0)
        printf (", %lld GPU%s a node", (long long)gpus, gpus == 1 ? "" : "s");
    if (r->memory)
        printf (", %s of memory a node", r->memory);
    printf ("; restart_policy %s\n  ", e->job->restart_policy ?: "on_failure");
    print_command (e, NULL);
}

static const char *first_role (const struct job_settings *j, bool (*is) (const char *name))
{
    for (size_t i = 0; i < j->nroles; i++)
        if (is (j->roles[i].name))
            return j->roles[i].name;
    return NULL;
}

static bool role_works (const char *name)
{
    return !role_is_chief (name) && !role_serves (name);
}

/* As launcher/job/verdict.c decides. */
static void print_success (const struct job_settings *j)
{
    const char *chief = first_role (j, role_is_chief);
    const char *worker = first_role (j, role_works);

    fputs ("succeeds: ", stdout);
    if (j->nroles == 0)
        fputs ("when all processes exit with status 0", stdout);
    else if (j->success == SUCCESS_ANY)
        printf ("when %s%sany worker does", chief ?: "", chief ? " or " : "");
    else if (chief)
        printf ("when %s does", chief);
    else if (j->success == SUCCESS_ALL_WORKERS)
        fputs ("when all workers do", stdout);
    else if (worker)
        printf ("when %s 0 does", worker);
    else
        fputs ("never: all roles serve, until job.active_deadline", stdout);
    puts (j->nroles == 0 ? ""
          : j->waits     ? "; workers that still run may end"
                         : "; all others are then killed");
}

static bool uses_exit_codes (const struct job_settings *j)
{
    bool uses = j->nroles == 0 && j->restart == RESTART_EXIT_CODE;

    for (size_t i = 0; i < j->nroles; i++)
        uses |= j->roles[i].restart == RESTART_EXIT_CODE;
    return uses;
}

static void print_policies (const struct experiment *e)
{
    const struct job_settings *j = e->job;

    if (job_may_restart (j))
        printf ("restarts: all %s together, %lld times without progress (%s)\n",
                j->nroles ? "members" : "processes", (long long)e->failures->max_restarts,
                j->backoff >= 0 ? "job.backoff_limit" : "max_restarts");
    else
        puts ("restarts: never");
    for (const struct exit_range *r = j->ranges ?: exit_ranges; uses_exit_codes (j) && r->last; r++)
        printf ("%s%d to %d %s%s", r == (j->ranges ?: exit_ranges) ? "exit codes: " : ", ",
                r->first, r->last, r->again ? "restart" : "fail", r[1].last ? "" : "\n");
    if (j->deadline_text)
        printf ("fails:    when active for longer than %s (job.active_deadline)\n",
                j->deadline_text);
    if (j->ttl >= 0)
        printf ("hidden:   from dl ls %lld seconds after its end (job.ttl_after_finished)\n",
                (long long)j->ttl);
}

static bool names_resume_dir (const struct experiment *e)
{
    static const char name[] = "{resume_dir}";
    bool names = e->entrypoint && strstr (e->entrypoint, name);

    for (char **a = e->argv; a && *a; a++)
        names |= strstr (*a, name) != NULL;
    for (size_t i = 0; i < e->job->nroles; i++)
        names |= e->job->roles[i].command && strstr (e->job->roles[i].command, name);
    return names;
}

static void print_resumption (const struct experiment *e)
{
    fputs ("resumes:  ", stdout);
    if (names_resume_dir (e))
        puts ("from {resume_dir}, the folder with the newest such file that an attempt left");
    else if (e->code->work == WORK_TRIAL)
        puts ("each attempt starts with the files that the previous one left");
    else
        puts ("each attempt begins anew, unless the program reads DL_RESUME_DIR; see "
              "working_folder and {resume_dir}");
}

static void print_job_place (const struct experiment *e, bool local)
{
    size_t n;

    free (job_components (e, &n));
    if (local)
        puts (", on this machine");
    else if (slurm_in_allocation ())
        printf (", in job %s\n", getenv ("SLURM_JOB_ID"));
    else if (n > 1)
        printf (", in a heterogeneous Slurm job of %zu components\n", n);
    else
        puts (", in a Slurm job");
}

/* Print who runs what in a job, and when it ends. */
static void print_job (const struct experiment *e, bool local)
{
    const struct job_settings *j = e->job;
    int64_t n = j->nroles ? job_members (j) : e->resources->nodes * e->resources->ranks;

    printf ("job %s: %lld %s%s", e->name, (long long)n, j->nroles ? "member" : "process",
            n == 1      ? ""
            : j->nroles ? "s"
                        : "es");
    if (e->plugin->framework)
        printf (", framework %s", e->plugin->framework);
    print_job_place (e, local);
    print_members (e);
    print_success (j);
    print_policies (e);
    print_resumption (e);
    if (e->resources->spares > 0)
        printf ("spares:   %lld node%s\n", (long long)e->resources->spares,
                e->resources->spares == 1 ? "" : "s");
    if (j->is_suspended)
        puts ("suspended: dl resume starts it");
}

static int dry_run (const struct experiment *e, const char *root, bool local)
{
    int rv;

    if (e->job->is_given)
        print_job (e, local);
    else {
        print_preview (e);
        print_first_points (e);
    }
    software_print (e->software);
    if ((rv = code_preview (e, root)))
        return rv;
    puts ("nothing was started (--dry-run)");
    return EXIT_OK;
}

/* ---- run ---- */

/* Remove an experiment that was just created.  Its end is published right after its
 * creation; if another entry comes first, someone is already using the experiment, so
 * it is kept.
 */
static bool take_back (struct sweep *s)
{
    struct event end = { .op = EVENT_KILL, .by = user_name () };
    struct slurmdl_error err = { "" };

    if (log_length (s->log) != 1 || peer_count (s->dir, 0, &err) != 0
        || sweep_publish (s, &end, 1, &err) != 0)
        return false;
    record_remove (s);
    if (sweep_remove (s->dir, &err) < 0)
        complain ("%s", err.text);
    store_clean (s->dir);
    return true;
}

static void complain_not_started (struct sweep *s, const struct executor *x, bool is_new,
                                  const char *why)
{
    if (x->refused && is_new && take_back (s))
        complain ("%s; no experiment was created; correct the file or use --set, and run again",
                  why);
    else if (x->refused)
        complain ("%s; 'dl resume %s' starts workers once this is corrected; 'dl resume --set "
                  "KEY=VALUE %s' corrects its file",
                  why, s->word, s->word);
    else if (is_new)
        complain ("%s; the experiment is %s: 'dl resume %s' starts it again; "
                  "if its file is wrong, 'dl rm --force %s' removes it",
                  why, s->dir, s->word, s->word);
    else
        complain ("%s; 'dl resume %s' starts workers of %s", why, s->word, s->dir);
}

/* Earlier arrays, and those of their tasks that Slurm knows. */
struct start_earlier {
    struct queue seen;
    size_t nsubmits;
};

static int start_or_not (struct sweep *s, const struct start_options *opt, bool is_new,
                         const struct start_earlier *earlier)
{
    struct slurmdl_error err = { "" };
    struct changes printed = { 0 };
    struct executor x;
    int rv = code_prepare (s);

    if (rv) { /* if the disk is full, the reserve has room for the entry that ends the experiment */
        if (is_new && disk_reserve_spend (s->dir) == 0)
            take_back (s);
        return rv;
    }
    executor_open (&x, s, opt->local, (long)opt->workers);
    changes_skip (&printed, s);
    if (opt->local)
        follow_signals ();
    if (x.ops->start (&x, &err) < 0) {
        complain_not_started (s, &x, is_new, err.text);
        rv = EXIT_SLURM;
    } else if (earlier && queue_retire_unseen (s, &earlier->seen, earlier->nsubmits, &err) < 0)
        rv = fail_on (s, &err);
    else if (opt->detach && !opt->local)
        puts (s->dir);
    else
        rv = follow (s, &x, &printed);
    changes_free (&printed);
    x.ops->close (&x);
    return rv;
}

/* ---- missing workers ---- */

/* Count the tasks in Slurm's queue.  If Slurm does not answer, count none:
 * queue_retire_unseen() makes tasks of earlier arrays end as soon as they start.
 */
static long tasks_in_queue (const struct sweep *s, struct queue *q, bool running)
{
    struct slurmdl_error err = { "" };
    long n = 0;

    if (queue_find (q, s, &err) < 0) {
        complain ("%s", err.text);
        q->n = 0;
    }
    for (long i = 0; i < q->n; i++)
        n += running || q->list[i].pending;
    return n;
}

static int print_queued (const struct sweep *s, const struct queue *q)
{
    long pending = 0;

    for (long i = 0; i < q->n; i++)
        pending += q->list[i].pending;
    printf ("%s: Slurm has %ld task%s for its workers, %ld of them pending: none added; 'dl scale "
            "N' changes their number, --workers N adds some\n",
            s->dir, q->n, q->n == 1 ? "" : "s", pending);
    return EXIT_OK;
}

int print_others_start (const struct sweep *s)
{
    printf ("%s: another command has just started its workers\n", s->dir);
    return EXIT_OK;
}

/* If several commands find no active worker, only one announces that it starts some;
 * the others get PUBLISH_LATE.
 */
static enum published announce_start (struct sweep *s, struct slurmdl_error *err)
{
    long starts = s->starts;
    enum published rv = PUBLISH_LATE;

    while (rv == PUBLISH_LATE && s->starts == starts && s->state == SWEEP_RUNNING) {
        struct event e = { .op = EVENT_SCALE, .by = user_name (), .workers = s->wanted };
        rv = sweep_publish (s, &e, 1, err);
    }
    return rv;
}

/* While workers are 'running', announce the start first. */
static int announce_and_start (struct sweep *s, const struct start_options *opt, bool running,
                               const struct start_earlier *before)
{
    struct slurmdl_error err = { "" };

    switch (running ? announce_start (s, &err) : PUBLISH_DONE) {
    case PUBLISH_FAILED:
        return fail_on (s, &err);
    case PUBLISH_LATE:
        return print_others_start (s);
    case PUBLISH_DONE:
        break;
    }
    return start_or_not (s, opt, false, before);
}

int start_missing_workers (struct sweep *s, const struct start_options *opt, bool running)
{
    struct start_options mine = *opt;
    struct start_earlier before = { .nsubmits = s->nsubmits };
    long tasks;
    long missing;
    int rv;

    if (opt->workers)
        return start_or_not (s, opt, false, NULL);
    if (opt->local || s->nsubmits == 0)
        return announce_and_start (s, opt, running, NULL);
    tasks = executor_tasks (s->exp, trust_workers (s));
    missing = tasks - tasks_in_queue (s, &before.seen, running);
    if (missing > 0) {
        mine.workers = missing < tasks ? missing * s->exp->resources->lanes : 0;
        rv = announce_and_start (s, &mine, running, &before);
    } else
        rv = print_queued (s, &before.seen);
    free (before.seen.list);
    return rv;
}

/* ---- change the settings of an existing experiment ---- */

static bool key_is_listed (const char *const *keys, const char *set)
{
    size_t n = strcspn (set, "=");

    while (*keys && (strlen (*keys) != n || strncmp (set, *keys, n)))
        keys++;
    return *keys;
}

static const char *const changing_texts[] = { "resources.time",        "resources.memory",
                                              "resources.max_memory",  "resources.partition",
                                              "resources.account",     "resources.qos",
                                              "resources.sbatch_args", NULL };
static const char *const changing_numbers[] = { "searcher.max_hours", "searcher.max_gpu_hours",
                                                NULL };

static bool may_change (const char *set)
{
    if (key_is_listed (changing_texts, set) || key_is_listed (changing_numbers, set))
        return true;
    complain ("--set %.*s: an existing experiment can change only resources.time, memory, "
              "max_memory, partition, account, qos and sbatch_args, and searcher.max_hours and "
              "max_gpu_hours; 'dl fork --set' creates another one",
              (int)strcspn (set, "="), set);
    return false;
}

/* Add the quotes that a text needs in the file, so that users can write
 * resources.time=8:00:00.
 */
static void add_quoted (char ***sets, const char *set)
{
    size_t n = strcspn (set, "=");
    const char *value = set[n] ? set + n + 1 : NULL;

    if (!value || key_is_listed (changing_numbers, set) || strchr ("\"[(", *value)
        || strpbrk (value, "\"\\"))
        strings_add (sets, set);
    else
        strings_addf (sets, "%.*s=\"%s\"", (int)n, set, value);
}

/* A running worker does not notice a changed file. */
static bool sweep_is_at_work (const struct sweep *s)
{
    double look = 2 * (double)s->exp->worker->heartbeat;

    if (s->state != SWEEP_RUNNING || peer_count (s->dir, 0, NULL) == 0
        || peer_count (s->dir, look, NULL) == 0)
        return false;
    complain ("%s: workers are running with the current settings; run 'dl pause %s' first", s->dir,
              s->word);
    return true;
}

/* Replace the file atomically.  read_again() records that this user trusts it. */
static int replace_experiment_file (const struct sweep *s, const char *text)
{
    struct slurmdl_error err = { "" };
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/experiment.conf", s->dir);
    return publish_replace (path, text, strlen (text), &err) < 0 ? fail_on (s, &err) : EXIT_OK;
}

static int read_again (struct sweep **s, const struct command_line *line, const char *text)
{
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX], digest[DIGEST_SIZE];
    int rv;

    snprintf (dir, sizeof (dir), "%s", (*s)->dir);
    sweep_close (*s);
    *s = NULL;
    if ((rv = open_experiment (line, dir, s)))
        return rv;
    digest_of (digest, text, strlen (text));
    if (!strcmp (digest, (*s)->digest)) {
        if (trust_record (*s, &err) < 0)
            complain ("%s; dl will ask again", err.text);
        return EXIT_OK;
    }
    complain ("%s/experiment.conf: somebody else has changed it, too", dir);
    sweep_close (*s);
    *s = NULL;
    return EXIT_DAMAGED;
}

int change_settings (struct sweep **s, const struct command_line *line,
                     const struct start_options *opt)
{
    struct edit edit = { .file = (*s)->frozen, .dir = (*s)->exp->dir };
    struct experiment *e = NULL;
    char path[PATH_MAX];
    char **sets = NULL;
    int rv = EXIT_OK;

    for (char **set = opt->sets; set && *set; set++)
        if (!may_change (*set))
            rv = EXIT_USAGE;
        else
            add_quoted (&sets, *set);
    if (!sets || rv) {
        strings_free (sets);
        return rv;
    }
    edit.sets = sets;
    snprintf (path, sizeof (path), "%s/experiment.conf", (*s)->dir);
    if (sweep_is_at_work (*s))
        rv = EXIT_BUSY;
    else if ((rv = read_experiment (path, &edit, &e)) == 0
             && (rv = replace_experiment_file (*s, e->text)) == 0
             && (rv = read_again (s, line, e->text)) == 0)
        /* pending jobs were submitted with the old settings */
        executor_cancel (*s, "--state=PENDING", NULL);
    experiment_destroy (e);
    strings_free (sets);
    return rv;
}

/* ---- create an experiment ---- */

/* Check what can be checked before the experiment is created.  A dry run must not run
 * anything.
 */
static int check_new (struct experiment *e, const struct start_options *opt)
{
    struct slurmdl_error err = { "" };
    int rv = command_check (e, opt->local, !opt->dry_run);

    if (rv)
        return rv;
    if (webhook_check (e, &err) < 0) {
        complain ("%s", err.text);
        return EXIT_USAGE;
    }
    if (opt->local && local_check (e, &err) < 0)
        return fail (&err);
    command_warn (e);
    return EXIT_OK;
}

static int make_new (struct experiment *e, const char *root, char dir[PATH_MAX],
                     char id[SWEEP_ID_SIZE])
{
    struct slurmdl_error err = { "" };
    struct code_of_run code;
    enum name_writers others = user_names_check (root, &err);
    int rv;

    if (others != NAMES_OF_NOBODY)
        complain ("%s", err.text);
    if (others == NAMES_OF_EVERYBODY)
        return EXIT_USAGE;
    error_clear (&err);
    share_umask (root);
    if ((rv = code_freeze (e, root, &code)) == 0
        && sweep_create (e, root, dir, PATH_MAX, id, &err) < 0)
        rv = fail (&err);
    code_of_run_free (&code);
    return rv;
}

/* Create and open an experiment.  Returns 0 if '*s' is open, or an exit status. */
static int open_new (struct experiment *e, const struct command_line *line, struct sweep **s)
{
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];
    char id[SWEEP_ID_SIZE];
    int rv = make_new (e, line->dir, dir, id);

    experiment_destroy (e);
    if (rv || (rv = open_experiment (line, dir, s)))
        return rv;
    if (!trust_is_made (*s, id)) {
        complain ("%s: others changed it after it was created; nothing was started", dir);
        sweep_close (*s);
        return EXIT_DAMAGED;
    }
    if (trust_record (*s, &err) < 0 && !trust_is_private (*s))
        complain ("%s; 'dl resume' will ask whether you want to run it", err.text);
    return EXIT_OK;
}

/* Pause the experiment before anything starts it. */
static int suspend_new (struct sweep *s)
{
    struct event event = { .op = EVENT_PAUSE, .by = user_name () };
    struct slurmdl_error err = { "" };

    if (sweep_publish (s, &event, 1, &err) < 0)
        return fail_on (s, &err);
    printf ("%s: suspended; 'dl resume %s' starts it\n", s->dir, s->word);
    return EXIT_OK;
}

int run_new (struct experiment *e, const struct command_line *line, const struct start_options *opt)
{
    struct sweep *s;
    int rv = check_new (e, opt);

    if (rv || opt->dry_run) {
        rv = rv ?: dry_run (e, line->dir, opt->local);
        experiment_destroy (e);
        return rv;
    }
    if ((rv = open_new (e, line, &s)))
        return rv;
    if (s->exp->job->is_suspended)
        rv = suspend_new (s);
    else if (opt->no_workers)
        puts (s->dir);
    else
        rv = start_or_not (s, opt, true, NULL);
    sweep_close (s);
    return rv;
}

int make_new_and (struct experiment *e, const struct command_line *line,
                  const struct start_options *opt, int (*f) (struct sweep *s))
{
    struct sweep *s;
    int rv = check_new (e, opt);

    if (rv) {
        experiment_destroy (e);
        return rv;
    }
    if ((rv = open_new (e, line, &s)) == 0) {
        rv = code_prepare (s) ?: f (s);
        sweep_close (s);
    }
    return rv;
}
