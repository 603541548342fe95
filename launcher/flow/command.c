/* SPDX-License-Identifier: Apache-2.0 */
/* dl flow: create, start, resume and stop a run. */
#include "launcher/config/code_settings.h"
#include "launcher/config/experiment.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/resources.h"
#include "launcher/flow/flow.h"
#include "launcher/flow/run.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subcommand.h"
#include "runtime/base/nearest_word.h"

/* Do not freeze the flow file and the files that steps write, so that the digest covers code only.
 */
static void exclude_own_files (struct flow *f)
{
    const char *name = strrchr (f->file, '/');
    size_t n = strlen (f->base->dir);

    name = name ? name + 1 : f->file;
    strings_add (&f->base->code->exclude, name);
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->steps[i].noutputs; k++) {
            const char *path = f->steps[i].outputs[k].path;
            if (!strncmp (path, f->base->dir, n) && path[n] == '/' && !strpbrk (path, "{*?"))
                strings_add (&f->base->code->exclude, path + n + 1);
        }
}

/* List all commands, to find those that name a file of the folder. */
static void list_step_commands (struct flow *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[i];
        const char *one[] = { s->exp->entrypoint, s->sweep };
        for (size_t k = 0; k < 2; k++)
            if (one[k])
                strings_add (&f->base->argv, one[k]);
        strings_add_all (&f->base->argv, s->exp->argv);
    }
}

static bool flow_is_not_frozen (const struct flow *f)
{
    const char *text = getenv ("DL_FREEZE");

    return !f->base->code->freeze || (text && (!strcmp (text, "false") || !strcmp (text, "0")));
}

/* Without frozen code, dl cannot know which code an earlier task ran. */
static int freeze_flow_code (struct flow_run *r, const char *root, struct slurmdl_error *err)
{
    struct code_archive a = { .data = NULL };
    struct code_files files;
    json_t *digests = NULL;
    int rv;

    exclude_own_files (r->flow);
    list_step_commands (r->flow);
    r->flow->base->code->work = WORK_SHARED;
    for (size_t i = 0; i < r->flow->n; i++)
        if (r->flow->steps[i].work != WORK_SHARED && !r->flow->steps[i].sweep)
            r->flow->base->code->work = WORK_ATTEMPT;
    rv = code_select (r->flow->base, root, &files, err);
    if (rv == 0 && (rv = code_archive_pack (&files, &a, err)) == 0
        && (rv = store_put (r->dir, &a, err)) == 0) {
        json_object_set_new (r->about, "code", json_string (a.digest));
        json_object_set_new (r->about, "root", json_string (files.root));
    }
    if (*files.why)
        complain ("the code is not frozen, and nothing is cached: %s", files.why);
    else if (rv >= 0 && !flow_is_not_frozen (r->flow)
             && (digests = flow_code_digests (r->flow, &files, &a, err))) {
        json_object_set_new (r->about, "code_of", digests);
        flow_say_code_change (r, &files, &a);
    }
    code_archive_free (&a);
    code_files_free (&files);
    return rv < 0 ? -1 : 0;
}

static int write_job_script (const struct flow_run *r, struct slurmdl_error *err)
{
    char *text = flow_job_script ();
    char path[PATH_MAX + 8];
    int rv;

    snprintf (path, sizeof (path), "%s/job.sh", r->dir);
    rv = publish_if_absent (path, text, strlen (text), err);
    free (text);
    return rv;
}

static int flow_make (struct flow_run *r, const struct command_line *line, double every,
                      struct slurmdl_error *err)
{
    json_t *given = json_array ();
    int e;

    if (flow_create (r, line->dir, err) < 0)
        return -1;
    for (int i = 2; i < line->nargs; i++)
        json_array_append_new (given, json_string (line->args[i]));
    json_object_set_new (r->about, "given", given);
    if (every > 0)
        json_object_set_new (r->about, "every", json_integer ((json_int_t)every));
    if (freeze_flow_code (r, line->dir, err) == 0 && write_job_script (r, err) == 0
        && flow_commit (r, err) == 0)
        return 0;
    e = errno;
    remove_tree (r->dir);
    errno = e;
    return -1;
}

enum { WORKERS_LOCAL = 4 };

static long local_workers (const struct flow_options *opt)
{
    long cores = sysconf (_SC_NPROCESSORS_ONLN);

    if (opt->workers)
        return (long)opt->workers;
    return cores > WORKERS_LOCAL ? WORKERS_LOCAL : cores > 1 ? cores : 2;
}

static int start_flow_run (const struct flow_run *r, const struct flow_options *opt, bool again)
{
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];
    long n;

    /* create the copy of the code once, before many tasks do it at once */
    if (attempt_directory (r, dir, &err) < 0)
        return fail (&err);
    if (opt->local)
        return flow_local (r, local_workers (opt));
    if ((n = flow_submit (r, again, &err)) < 0) {
        complain ("%s; 'dl flow resume %s' submits what is missing", err.text,
                  strrchr (r->dir, '/') + 1);
        return EXIT_SLURM;
    }
    printf ("%s: %ld job%s submitted\n", r->dir, n, n == 1 ? "" : "s");
    return EXIT_OK;
}

/* Run nothing unless the flow is still the one that this job was submitted for. */
static int flow_open_pinned (const struct command_line *line, struct flow_run *r)
{
    int rv = flow_open (r, line, line->args[1], true);

    if (rv)
        return rv;
    if (strcmp (r->pin, line->args[2])) {
        complain ("%s: flow.json has changed since this job was submitted", r->dir);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

static long flow_number (const char *text)
{
    char *end;
    long n = strtol (text, &end, 10);

    return end > text && !*end && n >= 0 ? n : -1;
}

static int run_step_of_job (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct flow_run r;
    struct flow_step *s = NULL;
    int rv = flow_open_pinned (line, &r);
    bool again = false;

    if (!rv && !(s = flow_step_find (r.flow, line->args[3]))) {
        complain ("%s has no step '%s'", r.dir, line->args[3]);
        rv = EXIT_NOT_FOUND;
    }
    if (!rv && s->on_exit && !getenv ("DL_FLOW_LOCAL")
        && flow_exit_again (&r, s, flow_number (line->args[4]), &again, &err) < 0)
        rv = fail (&err);
    if (!rv && !again)
        rv = flow_task_run (&r, s, flow_number (line->args[5]), flow_number (line->args[4]));
    flow_close (&r);
    return rv;
}

static int flow_rest (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct flow_run r;
    int rv = flow_open_pinned (line, &r);

    if (!rv && !flow_is_stopped (&r) && flow_submit (&r, true, &err) < 0)
        rv = fail (&err);
    flow_close (&r);
    return rv;
}

enum { EVERY_LEAST = 60 };

/* The job that starts the next run, as a step. */
static struct flow_step flow_next_step (const struct flow_run *r)
{
    struct flow_step s = r->flow->steps[r->flow->order[0]];

    s.name = (char *)FLOW_NEXT;
    return s;
}

static int flow_submit_next (const struct flow_run *r, struct slurmdl_error *err)
{
    struct flow_step s = flow_next_step (r);
    struct resources small = *s.exp->resources;
    struct plugin_settings plugin = { .framework = NULL };
    struct experiment exp = *s.exp;
    json_int_t every = json_integer_value (json_object_get (r->about, "every"));
    char begin[48];
    const struct flow_request q = { .mode = "next", .begin = begin };

    if (every <= 0 || flow_job (r, &s))
        return 0;
    s.exp = &exp;
    exp.plugin = &plugin;
    exp.resources = &small;
    small.nodes = small.ranks = small.cpus = 1;
    small.node_gpus = 0;
    small.memory = NULL;
    small.sbatch_args = NULL;
    snprintf (begin, sizeof (begin), "now+%lld", (long long)every);
    /* a job that was submitted but not recorded is not the newest start, and exits at once */
    return flow_submit_once (r, &s, flow_starts (r, &s) + 1, &q, err) < 0 ? -1 : 0;
}

/* "1:00:00" as Slurm writes times, or 90, 30m, 12h, 7d. */
static double seconds_of_every (const struct flow_options *opt)
{
    static const struct unit {
        char letter;
        int seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    char *end;
    double n = strtod (opt->every, &end);

    for (size_t i = 0; end > opt->every && i < sizeof (units) / sizeof (*units); i++)
        if (*end == units[i].letter && !end[1])
            return n * units[i].seconds;
    return strchr (opt->every, ':') ? slurm_seconds (opt->every) : 0;
}

static int flow_check_every (const struct flow_options *opt, double *every)
{
    *every = opt->every ? seconds_of_every (opt) : 0;
    if (opt->every && !(*every >= EVERY_LEAST && *every <= 366 * 86400.0)) {
        complain ("--every: '%s' is not a time from a minute to a year, as 12h or 1-00:00:00",
                  opt->every);
        return EXIT_USAGE;
    }
    if (opt->every && opt->local) {
        complain ("--every cannot be used with --local: use cron");
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

/* The '*n' arguments of 'dl flow run FILE NAME=VALUE...'. */
static char **run_arguments (const struct flow_run *r, const char *file, int *n)
{
    json_t *given = json_object_get (r->about, "given");
    size_t ngiven = json_array_size (given);
    const char **args = xcalloc (ngiven + 3, sizeof (*args));

    args[0] = "run";
    args[1] = file;
    for (size_t i = 0; i < ngiven; i++)
        args[i + 2] = json_string_value (json_array_get (given, i)) ?: "";
    *n = (int)ngiven + 2;
    return (char **)args;
}

/* The result of this job names the next run, so that a requeued job does not create a second one.
 */
static int put_next_made (const struct flow_run *r, const struct flow_run *next,
                          struct slurmdl_error *err)
{
    const struct event e = {
        .op = EVENT_DONE,
        .step = FLOW_NEXT,
        .state = task_states[TASK_OK],
        .json = json_pack ("{s:s}", "flow", next->dir),
    };
    int rv = flow_insist (r, &e, err);

    json_decref (e.json);
    return rv;
}

static int make_next_run (const struct flow_run *r, const struct command_line *line,
                          struct flow_run *next)
{
    json_int_t every = json_integer_value (json_object_get (r->about, "every"));
    const char *base = json_string_value (json_object_get (r->about, "base"));
    struct command_line mine = *line;
    struct slurmdl_error err = { "" };
    char root[PATH_MAX], file[PATH_MAX];
    int rv = EXIT_OK;

    snprintf (root, sizeof (root), "%.*s", (int)(strrchr (r->dir, '/') - r->dir), r->dir);
    snprintf (file, sizeof (file), "%s/%s", r->flow->base->dir, base ?: "");
    mine.args = run_arguments (r, file, &mine.nargs);
    mine.dir = root;
    *next = (struct flow_run){ .flow = flow_file_read (file, mine.args + 2, line->options) };
    if (!next->flow)
        rv = EXIT_USAGE;
    else if (flow_make (next, &mine, (double)every, &err) < 0 || put_next_made (r, next, &err) < 0)
        rv = fail (&err);
    free (mine.args);
    return rv;
}

static int flow_next (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct flow_run r, next = { .flow = NULL }, opened;
    int rv = flow_open_pinned (line, &r);
    const json_t *made;
    struct flow_step s;

    if (!rv)
        s = flow_next_step (&r);
    if (rv || flow_is_stopped (&r) || flow_starts (&r, &s) > flow_number (line->args[4])) {
        flow_close (&r);
        return rv ? rv : EXIT_STOPPED;
    }
    if ((made = flow_task (&r, &s, 0)->done))
        snprintf (next.dir, sizeof (next.dir), "%s",
                  json_string_value (json_object_get (made, "flow")) ?: "");
    else
        rv = make_next_run (&r, line, &next);
    flow_close (&next);
    if (!rv && (rv = flow_open (&opened, line, next.dir, true)) == 0) {
        if ((rv = start_flow_run (&opened, line->options, true)) == 0
            && flow_submit_next (&opened, &err) < 0)
            rv = fail (&err);
        flow_close (&opened);
    }
    flow_close (&r);
    return rv;
}

static void print_plan (const struct flow *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[f->order[i]];
        printf ("%s:", s->name);
        if (s->items)
            printf (" %zu tasks", json_array_size (s->items));
        else if (s->foreach)
            printf (" a task for each of {%s.%s}", f->steps[s->source].name, s->source_value);
        for (size_t k = 0; k < s->nlinks; k++)
            printf ("%s %s", k ? "," : " after", f->steps[s->links[k].step].name);
        puts (s->on_exit ? " at the end" : "");
    }
    puts ("nothing was started (--dry-run)");
}

static int flow_run (const struct command_line *line)
{
    const struct flow_options *opt = line->options;
    struct slurmdl_error err = { "" };
    struct flow_run r = { .flow = NULL };
    struct flow_run made;
    double every;
    int rv = flow_check_every (opt, &every);

    if (rv)
        return rv;
    if (!(r.flow = flow_file_read (line->args[1], line->args + 2, line->options)))
        return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_USAGE;
    if (opt->dry_run) {
        print_plan (r.flow);
        flow_close (&r);
        return EXIT_OK;
    }
    if (flow_make (&r, line, every, &err) < 0) {
        rv = fail (&err);
        flow_close (&r);
        return rv;
    }
    flow_close (&r);
    /* read it as its jobs will */
    if ((rv = flow_open (&made, line, r.dir, true)) == 0
        && (rv = start_flow_run (&made, opt, false)) == 0 && flow_submit_next (&made, &err) < 0)
        rv = fail (&err);
    flow_close (&made);
    return rv;
}

static int flow_resume (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct flow_run r;
    int rv = flow_open (&r, line, line->args[1], true);
    pid_t pid = rv ? 0 : flow_local_process (&r);

    if (pid) {
        complain ("%s: process %ld on this machine is working on it", r.dir, (long)pid);
        rv = EXIT_BUSY;
    }
    if (!rv && flow_mark (&r, false, &err) < 0)
        rv = fail (&err);
    if (!rv)
        rv = start_flow_run (&r, line->options, true);
    flow_close (&r);
    return rv;
}

/* Whether any step was ever submitted to Slurm. */
static bool run_has_jobs (const struct flow_run *r)
{
    const struct flow_step next = flow_next_step (r);

    for (size_t i = 0; i < r->flow->n; i++)
        if (flow_job (r, &r->flow->steps[i]))
            return true;
    return flow_job (r, &next) > 0;
}

static int flow_stop (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct flow_queue q = { .highest = 0 };
    struct flow_run r;
    int rv = flow_open (&r, line, line->args[1], true);
    pid_t pid;

    if (rv) {
        flow_close (&r);
        return rv;
    }
    if (flow_mark (&r, true, &err) < 0)
        rv = fail (&err);
    if (!rv && run_has_jobs (&r)
        && (flow_queue_read (&r, &q, &err) < 0 || flow_cancel (&q, &err) < 0)) {
        complain ("%s", err.text);
        rv = EXIT_SLURM;
    }
    flow_kill_sweeps (&r);
    if ((pid = flow_local_process (&r)))
        kill (pid, SIGTERM);
    if (!rv && !q.jobs.n && !pid)
        printf ("%s: nothing was running\n", r.dir);
    else if (!rv)
        printf ("%s: stopped, %zu job%s cancelled\n", r.dir, q.jobs.n, q.jobs.n == 1 ? "" : "s");
    slurm_jobs_free (&q.jobs);
    flow_close (&r);
    return rv;
}

static const struct subcommand flow_subcommands[] = {
    { "run", "FILE [NAME=VALUE...]", 1, -1, flow_run },
    { "ls", "", 0, 0, flow_ls },
    { "show", "[FLOW [STEP]]", 0, 2, flow_show },
    { "graph", "[FLOW|FILE]", 0, 1, flow_graph },
    { "resume", "[FLOW]", 0, 1, flow_resume },
    { "stop", "[FLOW]", 0, 1, flow_stop },
    { "step", "FLOW PIN STEP START TASK", 5, 5, run_step_of_job, true },
    { "submit", "FLOW PIN STEP START TASK", 5, 5, flow_rest, true },
    { "next", "FLOW PIN STEP START TASK", 5, 5, flow_next, true },
    { 0 },
};

void flow_words (void)
{
    subcommand_words (flow_subcommands);
}

int cmd_flow (const struct command_line *line)
{
    const char *words[sizeof (flow_subcommands) / sizeof (*flow_subcommands)] = { 0 };
    const char *meant;
    size_t n = 0;
    int rv = subcommand_run ("flow", flow_subcommands, line);

    if (rv >= 0)
        return rv;
    for (const struct subcommand *w = flow_subcommands; w->name; w++)
        if (!w->hidden)
            words[n++] = w->name;
    meant = nearest_word (line->args[0], words);
    complain ("no command 'dl flow %s'%s%s%s", line->args[0],
              DID_YOU_MEAN (meant, "'", "'", "; there are run, ls, show, graph, resume and stop"));
    return EXIT_USAGE;
}
