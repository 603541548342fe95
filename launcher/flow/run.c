/* SPDX-License-Identifier: Apache-2.0 */
/* dl flow run, resume, stop, and what their jobs run. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/code/store.h"
#include "launcher/flow/attempt.h"
#include "launcher/flow/cache.h"
#include "launcher/flow/command.h"
#include "launcher/flow/jobs.h"
#include "launcher/flow/local.h"
#include "launcher/flow/step.h"
#include "launcher/flow/submit.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/say.h"
#include "launcher/sys/slurm_time.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"

enum { WORKERS_LOCAL = 4, EVERY_LEAST = 60 };

/* ---- a new flow ---- */

/* The flow file stays where it is, and so do files that steps write: the digest
 * of the code is that of the code.
 */
static void exclude_own (struct flow *f)
{
    const char *name = strrchr (f->file, '/');
    size_t n = strlen (f->base.dir);

    name = name ? name + 1 : f->file;
    strings_add (&f->base.code_exclude, name, strlen (name));
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->steps[i].noutputs; k++) {
            const char *path = f->steps[i].outputs[k].path;
            if (!strncmp (path, f->base.dir, n) && path[n] == '/'
                && !strpbrk (path, "{*?"))
                strings_add (
                    &f->base.code_exclude, path + n + 1, strlen (path + n + 1));
        }
}

/* All commands, to see whether one names a file of the folder. */
static void list_commands (struct flow *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[i];
        const char *one[] = { s->exp.entrypoint, s->sweep };
        for (size_t k = 0; k < 2; k++)
            if (one[k])
                strings_add (&f->base.argv, one[k], strlen (one[k]));
        for (char **a = s->exp.argv; a && *a; a++)
            strings_add (&f->base.argv, *a, strlen (*a));
    }
}

static bool is_off (const struct flow *f)
{
    const char *text = getenv ("DL_FREEZE");

    return !f->base.code_freeze
           || (text && (!strcmp (text, "false") || !strcmp (text, "0")));
}

/* Without frozen code nobody knows what an earlier task has run. */
static int
freeze (struct flow_run *r, const char *root, struct slurmdl_error *err)
{
    struct code_archive a = { .data = NULL };
    struct code_files files;
    json_t *digests = NULL;
    int rv;

    exclude_own (r->flow);
    list_commands (r->flow);
    rv = code_select (&r->flow->base, root, &files, err);
    if (rv == 0 && (rv = code_archive_pack (&files, &a, err)) == 0
        && (rv = store_put (r->dir, &a, err)) == 0) {
        json_object_set_new (r->about, "code", json_string (a.digest));
        json_object_set_new (r->about, "root", json_string (files.root));
    }
    if (*files.why)
        complain ("the code is not frozen, and nothing is cached: %s",
                  files.why);
    else if (rv >= 0 && !is_off (r->flow)
             && (digests = flow_code_digests (r->flow, &files, &a, err)))
        json_object_set_new (r->about, "code_of", digests);
    code_archive_free (&a);
    code_files_free (&files);
    return rv < 0 ? -1 : 0;
}

static int write_script (const struct flow_run *r, struct slurmdl_error *err)
{
    char path[PATH_MAX + 8];

    snprintf (path, sizeof (path), "%s/job.sh", r->dir);
    return publish_if_absent (
        path, flow_job_script, strlen (flow_job_script), err);
}

struct flow *flow_file_read (const char *path, char *const *given)
{
    struct problems p;
    struct flow *f;
    int e;

    if (problems_open (&p) < 0)
        return NULL;
    f = flow_read (path, NULL, given, NULL, &p);
    e = errno;
    problems_close (&p);
    for (char *line = p.text, *end; !f && *line; line = end + 1) {
        end = line + strcspn (line, "\n");
        complain ("%.*s", (int)(end - line), line);
        if (!*end)
            break;
    }
    free (p.text);
    errno = e;
    return f;
}

static void print_plan (const struct flow *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[f->order[i]];
        printf ("%s:", s->name);
        if (s->items)
            printf (" %zu tasks", json_array_size (s->items));
        else if (s->foreach)
            printf (" a task for each of {%s.%s}",
                    f->steps[s->source].name,
                    s->source_value);
        for (size_t k = 0; k < s->nlinks; k++)
            printf (
                "%s %s", k ? "," : " after", f->steps[s->links[k].step].name);
        puts (s->on_exit ? " at the end" : "");
    }
    puts ("nothing was started (--dry-run)");
}

/* ---- to start what is left ---- */

static long workers_of (const struct settings *st)
{
    long cores = sysconf (_SC_NPROCESSORS_ONLN);

    if (st->workers)
        return (long)st->workers;
    return cores > WORKERS_LOCAL ? WORKERS_LOCAL : cores > 1 ? cores : 2;
}

static int
start (const struct flow_run *r, const struct settings *st, bool again)
{
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];
    long n;

    /* before many tasks would each make the copy of the code */
    if (attempt_directory (r, dir, &err) < 0)
        return fail (&err);
    if (st->local)
        return flow_local (r, workers_of (st));
    if ((n = flow_submit (r, again, &err)) < 0) {
        complain ("%s; 'dl flow resume %s' submits what is missing",
                  err.text,
                  strrchr (r->dir, '/') + 1);
        return EXIT_SLURM;
    }
    printf ("%s: %ld job%s submitted\n", r->dir, n, n == 1 ? "" : "s");
    return EXIT_OK;
}

/* ---- one that recurs ---- */

/* The job that begins the next run has the resources of a small one. */
static struct flow_step next_step (const struct flow_run *r)
{
    struct flow_step s = r->flow->steps[r->flow->order[0]];

    s.name = (char *)"next+"; /* no step has such a name */
    s.exp.nodes = s.exp.ranks = s.exp.cpus = 1;
    s.exp.slots = 0;
    s.exp.memory = s.exp.framework = s.exp.check = NULL;
    s.exp.sbatch_args = NULL;
    return s;
}

static int submit_next (const struct flow_run *r, struct slurmdl_error *err)
{
    const struct flow_step s = next_step (r);
    json_int_t every = json_integer_value (json_object_get (r->about, "every"));
    char begin[48];
    const struct flow_request q = { .mode = "next", .begin = begin };

    if (every <= 0 || flow_last (r, &s, -1, "job"))
        return 0;
    snprintf (begin, sizeof (begin), "now+%lld", (long long)every);
    /* of one whose number was lost the job ends at once: it is not the last */
    return flow_submit_once (
               r, &s, flow_last (r, &s, -1, "intent") + 1, &q, err)
                   < 0
               ? -1
               : 0;
}

/* "1:00:00" as Slurm writes times, or 90, 30m, 12h, 7d. */
static double every_of (const struct settings *st)
{
    static const struct unit {
        char letter;
        int seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    char *end;
    double n = strtod (st->every, &end);

    for (size_t i = 0; end > st->every && i < sizeof (units) / sizeof (*units);
         i++)
        if (*end == units[i].letter && !end[1])
            return n * units[i].seconds;
    return strchr (st->every, ':') ? slurm_seconds (st->every) : 0;
}

static int check_every (const struct settings *st, double *every)
{
    *every = st->every ? every_of (st) : 0;
    if (st->every && !(*every >= EVERY_LEAST && *every <= 366 * 86400.0)) {
        complain ("--every: '%s' is no time from a minute to a year, as 12h or "
                  "1-00:00:00",
                  st->every);
        return EXIT_USAGE;
    }
    if (st->every && st->local) {
        complain ("--every cannot be used with --local: use cron");
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

/* ---- dl flow run ---- */

static int make (struct flow_run *r,
                 const struct settings *st,
                 double every,
                 struct slurmdl_error *err)
{
    json_t *given = json_array ();

    if (flow_create (r, st->dir, err) < 0)
        return -1;
    for (int i = 2; i < st->nargs; i++)
        json_array_append_new (given, json_string (st->args[i]));
    json_object_set_new (r->about, "given", given);
    if (every > 0)
        json_object_set_new (
            r->about, "every", json_integer ((json_int_t)every));
    if (freeze (r, st->dir, err) < 0 || write_script (r, err) < 0)
        return -1;
    return flow_commit (r, err);
}

int flow_run (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_run r = { .flow = NULL };
    struct flow_run made;
    double every;
    int rv = check_every (st, &every);

    if (rv)
        return rv;
    if (!(r.flow = flow_file_read (st->args[1], st->args + 2)))
        return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_USAGE;
    if (st->dry_run) {
        print_plan (r.flow);
        flow_close (&r);
        return EXIT_OK;
    }
    if (make (&r, st, every, &err) < 0) {
        rv = fail (&err);
        flow_close (&r);
        return rv;
    }
    flow_close (&r);
    /* as its jobs will read it */
    if ((rv = flow_open (&made, st, r.dir, true)) == 0
        && (rv = start (&made, st, false)) == 0
        && submit_next (&made, &err) < 0)
        rv = fail (&err);
    flow_close (&made);
    return rv;
}

/* ---- dl flow resume, stop ---- */

int flow_resume (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_run r;
    int rv = flow_open (&r, st, st->args[1], true);
    pid_t pid = rv ? 0 : flow_local_process (&r);

    if (pid) {
        complain (
            "%s: process %ld of this machine works at it", r.dir, (long)pid);
        rv = EXIT_BUSY;
    }
    if (!rv && flow_mark (&r, false, &err) < 0)
        rv = fail (&err);
    if (!rv)
        rv = start (&r, st, true);
    flow_close (&r);
    return rv;
}

/* Its workers are jobs of their own. */
static void kill_sweeps (const struct flow_run *r)
{
    for (size_t i = 0; i < r->flow->n; i++) {
        const struct flow_step *s = &r->flow->steps[i];
        long width = s->sweep ? flow_width (r, s) : 0;
        for (long k = 0; k < width; k++) {
            struct command c = { .no_errors = true };
            char home[PATH_MAX], option[PATH_MAX + 8], dl[PATH_MAX], said[256];
            ssize_t n = readlink ("/proc/self/exe", dl, sizeof (dl) - 1);
            dl[n > 0 ? n : 0] = '\0';
            flow_path (home, r, s, k, "sweep", 0);
            snprintf (option, sizeof (option), "--dir=%s", home);
            if (access (home, F_OK) < 0)
                continue;
            command_add (&c, dl, NULL);
            command_add (&c, "kill", NULL);
            command_add (&c, option, NULL);
            command_run (&c, NULL, said, sizeof (said));
            command_free (&c);
        }
    }
}

/* Whether a step was ever submitted to Slurm. */
static bool has_jobs (const struct flow_run *r)
{
    const struct flow_step next = next_step (r);

    for (size_t i = 0; i < r->flow->n; i++)
        if (flow_last (r, &r->flow->steps[i], -1, "job"))
            return true;
    return flow_last (r, &next, -1, "job") > 0;
}

int flow_stop (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_queue q = { 0 };
    struct flow_run r;
    int rv = flow_open (&r, st, st->args[1], true);
    pid_t pid;

    if (rv) {
        flow_close (&r);
        return rv;
    }
    if (flow_mark (&r, true, &err) < 0)
        rv = fail (&err);
    if (!rv && has_jobs (&r)
        && (flow_queue_read (&r, &q, &err) < 0 || flow_cancel (&q, &err) < 0)) {
        complain ("%s", err.text);
        rv = EXIT_SLURM;
    }
    kill_sweeps (&r);
    if ((pid = flow_local_process (&r)))
        kill (pid, SIGTERM);
    if (!rv && !q.n && !pid)
        printf ("%s: nothing of it was at work\n", r.dir);
    else if (!rv)
        printf ("%s: stopped, %zu job%s cancelled\n",
                r.dir,
                q.n,
                q.n == 1 ? "" : "s");
    free (q.list);
    flow_close (&r);
    return rv;
}

/* ---- in a job ---- */

/* The flow is the one that this job was submitted for, or nothing is run. */
static int open_pinned (const struct settings *st, struct flow_run *r)
{
    int rv = flow_open (r, st, st->args[1], true);

    if (rv)
        return rv;
    if (strcmp (r->pin, st->args[2])) {
        complain ("%s: flow.json has changed since this job was submitted",
                  r->dir);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

static long number (const char *text)
{
    char *end;
    long n = strtol (text, &end, 10);

    return end > text && !*end && n >= 0 ? n : -1;
}

int flow_step (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_run r;
    struct flow_step *s;
    int rv = open_pinned (st, &r);
    int again = 0;

    if (!rv && !(s = flow_step_find (r.flow, st->args[3]))) {
        complain ("%s has no step '%s'", r.dir, st->args[3]);
        rv = EXIT_NOT_FOUND;
    }
    if (!rv && s->on_exit && !getenv ("DL_FLOW_LOCAL")
        && (again = flow_exit_again (&r, s, number (st->args[4]), &err)) < 0)
        rv = fail (&err);
    if (!rv && !again)
        rv = flow_task_run (&r, s, number (st->args[5]), number (st->args[4]));
    flow_close (&r);
    return rv;
}

int flow_rest (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_run r;
    int rv = open_pinned (st, &r);

    if (!rv && !flow_is_stopped (&r) && flow_submit (&r, true, &err) < 0)
        rv = fail (&err);
    flow_close (&r);
    return rv;
}

/* "made" names the next run, so that this job, begun again, makes no second
 * one.
 */
static int make_next (const struct flow_run *r,
                      const struct settings *st,
                      struct flow_run *next)
{
    json_t *given = json_object_get (r->about, "given");
    size_t n = json_array_size (given);
    const char **args = calloc (n + 3, sizeof (*args));
    struct settings mine = *st;
    struct slurmdl_error err = { "" };
    const struct flow_step s = next_step (r);
    char root[PATH_MAX];
    char file[PATH_MAX];

    if (!args)
        return EXIT_IO;
    snprintf (root,
              sizeof (root),
              "%.*s",
              (int)(strrchr (r->dir, '/') - r->dir),
              r->dir);
    snprintf (file,
              sizeof (file),
              "%s/%s",
              r->flow->base.dir,
              json_string_value (json_object_get (r->about, "base")) ?: "");
    args[0] = "run";
    args[1] = file;
    for (size_t i = 0; i < n; i++)
        args[i + 2] = json_string_value (json_array_get (given, i)) ?: "";
    mine.args = (char **)args;
    mine.nargs = (int)n + 2;
    mine.dir = root;
    *next =
        (struct flow_run){ .flow = flow_file_read (file, (char **)args + 2) };
    if (next->flow
        && (make (next,
                  &mine,
                  (double)json_integer_value (
                      json_object_get (r->about, "every")),
                  &err)
                < 0
            || flow_put (r,
                         &s,
                         -1,
                         "made",
                         0,
                         json_pack ("{s:s}", "flow", next->dir),
                         &err)
                   < 0)) {
        free (args);
        return fail (&err);
    }
    free (args);
    return next->flow ? EXIT_OK : EXIT_USAGE;
}

int flow_next (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_run r, next = { .flow = NULL }, opened;
    int rv = open_pinned (st, &r);
    struct flow_step s;
    json_t *made;

    if (!rv)
        s = next_step (&r);
    if (rv || flow_is_stopped (&r)
        || flow_last (&r, &s, -1, "intent") > number (st->args[4])) {
        flow_close (&r);
        return rv ? rv : EXIT_STOPPED;
    }
    made = flow_record (&r, &s, -1, "made", 0);
    if (made)
        snprintf (next.dir,
                  sizeof (next.dir),
                  "%s",
                  json_string_value (json_object_get (made, "flow")) ?: "");
    else
        rv = make_next (&r, st, &next);
    flow_close (&next);
    if (!rv && (rv = flow_open (&opened, st, next.dir, true)) == 0) {
        if ((rv = start (&opened, st, true)) == 0
            && submit_next (&opened, &err) < 0)
            rv = fail (&err);
        flow_close (&opened);
    }
    json_decref (made);
    flow_close (&r);
    return rv;
}
