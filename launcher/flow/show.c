/* SPDX-License-Identifier: Apache-2.0 */
/* dl flow ls, show and graph. */
#include "launcher/config/experiment.h"
#include "launcher/flow/flow.h"
#include "launcher/flow/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/config/hparams.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/table.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_word.h"

/* ---- the state of a run ---- */

/* STEP_LOST: the step is not done, and no job or process will continue it. */
enum step_state {
    STEP_WAITING,
    STEP_RUNNING,
    STEP_FAILED,
    STEP_NOT_RUN,
    STEP_LOST,
    STEP_SKIPPED,
    STEP_CACHED,
    STEP_OK,
};
static const struct step_look {
    const char *name;
    const char *colour; /* of graphviz */
} looks[] = {
    { "waiting", "white" },     { "running", "lightblue" }, { "failed", "salmon" },
    { "not run", "mistyrose" }, { "lost", "salmon" },       { "skipped", "lightgrey" },
    { "cached", "honeydew" },   { "ok", "palegreen" },
};

struct tasks_of_step {
    long width; /* -1: not known yet */
    long counts[TASK_OK + 1];
};

struct status {
    enum step_state *steps;
    struct tasks_of_step *tasks; /* of each step, read once */
    bool asked; /* dl has asked Slurm or found a local process, so it knows which steps are alive */
    bool local;
    struct flow_queue q;
};

/* Whether a job or a local process will continue a step. */
static bool step_is_alive (const struct status *t, const struct flow_run *r,
                           const struct flow_step *s)
{
    for (size_t i = 0; i < t->q.jobs.n; i++)
        if (flow_job_is_of (&t->q.jobs.list[i], r, s))
            return true;
    return t->local;
}

static enum step_state step_state_of (const struct status *t, const struct flow_run *r,
                                      const struct flow_step *s)
{
    const struct tasks_of_step *n = &t->tasks[flow_step_number (r->flow, s)];
    const long *counts = n->counts;
    long width = n->width;
    bool alive = !t->asked || step_is_alive (t, r, s);

    if (width > 0 && counts[TASK_SKIPPED] == width)
        return STEP_SKIPPED;
    if (width > 0 && counts[TASK_CACHED] + counts[TASK_SKIPPED] == width)
        return STEP_CACHED;
    if (flow_all_done (width, counts))
        return width ? STEP_OK : STEP_SKIPPED;
    if (counts[TASK_RUNNING])
        return alive ? STEP_RUNNING : STEP_LOST;
    if (counts[TASK_FAILED])
        return counts[TASK_WAITING] && alive && t->asked ? STEP_RUNNING : STEP_FAILED;
    for (size_t i = 0; i < s->nlinks; i++) {
        enum step_state before = t->steps[s->links[i].step];
        if (s->links[i].wait != AFTER_ANY
            && (before == STEP_FAILED || before == STEP_LOST || before == STEP_NOT_RUN))
            return STEP_NOT_RUN;
    }
    return alive || flow_starts (r, s) == 0 ? STEP_WAITING : STEP_LOST;
}

static void status_free (struct status *t)
{
    free (t->steps);
    free (t->tasks);
    slurm_jobs_free (&t->q.jobs);
    *t = (struct status){ .steps = NULL };
}

/* No process was left to record this in the log. */
static void note_lost_step (const struct flow_run *r, const struct flow_step *s)
{
    conditions_apply (flow_conditions (r, s), &(struct life_event){ .kind = LIFE_FAILED,
                                                                    .time = event_clock (),
                                                                    .reason = REASON_WORKER_LOST });
}

/* Ask Slurm at most once, and only if the flow has jobs left. */
static void status_read (const struct flow_run *r, struct status *t, bool ask)
{
    const struct flow *f = r->flow;
    bool started = false, jobs = false;

    *t = (struct status){ .steps = xcalloc (f->n, sizeof (*t->steps)),
                          .tasks = xcalloc (f->n, sizeof (*t->tasks)) };
    for (size_t i = 0; i < f->n; i++) {
        struct tasks_of_step *n = &t->tasks[i];
        n->width = flow_count (r, &f->steps[i], n->counts);
        if (!flow_all_done (n->width, n->counts)) {
            started |= flow_starts (r, &f->steps[i]) > 0;
            jobs |= flow_job (r, &f->steps[i]) > 0;
        }
    }
    t->local = started && flow_local_process (r) > 0;
    t->asked = started && (t->local || !jobs || (ask && flow_queue_read (r, &t->q, NULL) == 0));
    for (size_t i = 0; i < f->n; i++) {
        size_t k = f->order[i];
        t->steps[k] = step_state_of (t, r, &f->steps[k]);
        if (t->steps[k] == STEP_LOST)
            note_lost_step (r, &f->steps[k]);
    }
}

static const char *flow_state_text (const struct flow_run *r, const struct status *t)
{
    size_t counts[STEP_OK + 1] = { 0 };

    for (size_t i = 0; i < r->flow->n; i++)
        counts[t->steps[i]]++;
    if (counts[STEP_OK] + counts[STEP_CACHED] + counts[STEP_SKIPPED] == r->flow->n)
        return "completed";
    if (flow_is_stopped (r))
        return "stopped";
    if (counts[STEP_FAILED] + counts[STEP_LOST])
        return counts[STEP_RUNNING] ? "failing" : "failed";
    return "running";
}

/* ---- ls ---- */

static const struct table_column flow_columns[] = {
    { "flow", false }, { "state", false }, { "done", true }, { "steps", true },
    { "time", false }, { "by", false },    { NULL, false },
};

struct flow_list {
    const struct command_line *line;
    struct libscols_table *tb;
};

static int list_flow (const char *dir, void *arg)
{
    const struct flow_list *l = arg;
    struct libscols_line *line;
    struct flow_run r;
    struct status t;
    struct stat st = { 0 };
    char when[32];
    size_t done = 0;

    if (flow_open (&r, l->line, dir, false)) {
        flow_close (&r);
        return 0;
    }
    status_read (&r, &t, false);
    for (size_t i = 0; i < r.flow->n; i++)
        done += t.steps[i] >= STEP_SKIPPED;
    time_text (when, sizeof (when), (double)json_integer_value (json_object_get (r.about, "time")));
    line = scols_table_new_line (l->tb, NULL);
    table_set (line, 0, "%s", strrchr (r.dir, '/') + 1);
    table_set (line, 1, "%s", flow_state_text (&r, &t));
    table_set (line, 2, "%zu", done);
    table_set (line, 3, "%zu", r.flow->n);
    table_set (line, 4, "%s", when);
    stat (dir, &st);
    table_set (line, 5, "%s", user_name_of (st.st_uid));
    status_free (&t);
    flow_close (&r);
    return 0;
}

int flow_ls (const struct command_line *line)
{
    const struct flow_options *opt = line->options;
    struct flow_list l = { line, table_create ("flows", flow_columns, opt->json) };

    if (!l.tb)
        return EXIT_IO;
    if (flow_each (line->dir, list_flow, &l) < 0) {
        complain ("%s: %s", line->dir, strerror (errno));
        scols_unref_table (l.tb);
        return error_status (errno);
    }
    table_print (l.tb);
    scols_unref_table (l.tb);
    return EXIT_OK;
}

/* ---- show ---- */

static const struct table_column step_columns[] = {
    { "step", false },  { "state", false },  { "tasks", true },  { "ok", true },
    { "cached", true }, { "skipped", true }, { "failed", true }, { "job", true },
    { "since", false }, { "after", false },  { NULL, false },
};
static const enum flow_task_state counted_states[] = { TASK_OK, TASK_CACHED, TASK_SKIPPED,
                                                       TASK_FAILED };
enum { COUNTED_STATES = sizeof (counted_states) / sizeof (*counted_states) };

static char *steps_before_text (const struct flow *f, const struct flow_step *s)
{
    char *text = NULL;
    size_t size;
    FILE *o = xopen_memstream (&text, &size);

    for (size_t i = 0; i < s->nlinks; i++)
        fprintf (o, "%s%s", i ? "," : "", f->steps[s->links[i].step].name);
    if (s->on_exit)
        fputs (s->nlinks ? " (end)" : "(end)", o);
    xclose_memstream (o);
    return text;
}

static void add_step_line (struct libscols_table *tb, const struct flow_run *r,
                           const struct status *t, size_t k)
{
    struct libscols_line *line = scols_table_new_line (tb, NULL);
    const struct flow_step *s = &r->flow->steps[k];
    const struct conditions *c = flow_conditions (r, s);
    const struct tasks_of_step *n = &t->tasks[k];
    char *before = steps_before_text (r->flow, s);
    char since[32];

    time_text (since, sizeof (since), c->list[c->last].time);
    table_set (line, 0, "%s", s->name);
    table_set (line, 1, "%s", looks[t->steps[k]].name);
    if (n->width >= 0)
        table_set (line, 2, "%ld", n->width);
    else
        table_set (line, 2, "?");
    for (size_t i = 0; i < COUNTED_STATES; i++)
        table_set (line, 3 + i, "%ld", n->counts[counted_states[i]]);
    if (flow_job (r, s))
        table_set (line, 7, "%ld", flow_job (r, s));
    table_set (line, 8, "%s", since);
    table_set (line, 9, "%s", before);
    free (before);
}

static json_t *step_json (const struct flow_run *r, const struct status *t, size_t k)
{
    const struct flow_step *s = &r->flow->steps[k];
    const struct tasks_of_step *n = &t->tasks[k];
    json_t *after = json_array ();
    json_t *o = json_object ();

    for (size_t i = 0; i < s->nlinks; i++)
        json_array_append_new (after, json_string (r->flow->steps[s->links[i].step].name));
    json_object_set_new (o, "step", json_string (s->name));
    json_object_set_new (o, "state", json_string (looks[t->steps[k]].name));
    json_object_set_new (o, "tasks", n->width >= 0 ? json_integer (n->width) : json_null ());
    for (size_t i = 0; i < COUNTED_STATES; i++)
        json_object_set_new (o, task_states[counted_states[i]],
                             json_integer (n->counts[counted_states[i]]));
    json_object_set_new (o, "job", flow_job (r, s) ? json_integer (flow_job (r, s)) : json_null ());
    json_object_set_new (o, "after", after);
    json_object_set_new (o, "on_exit", json_boolean (s->on_exit));
    json_object_set_new (o, "conditions", conditions_json (flow_conditions (r, s)));
    return o;
}

static void print_run_json (const struct flow_run *r, const struct status *t)
{
    json_t *steps = json_array ();
    json_t *o = json_pack ("{s:s, s:s, s:o}", "flow", r->dir, "state", flow_state_text (r, t),
                           "steps", steps);

    for (size_t i = 0; i < r->flow->n; i++)
        json_array_append_new (steps, step_json (r, t, r->flow->order[i]));
    json_put (o, stdout, JSON_INDENT (2));
    putchar ('\n');
    json_decref (o);
}

/* Print the reason and the log of the last attempt of each failed task. */
static void print_step_failures (const struct flow_run *r, const struct flow_step *s)
{
    long width = flow_width (r, s);

    for (long i = 0; i < width; i++) {
        const struct flow_task *t = flow_task (r, s, i);
        char path[PATH_MAX];
        if (flow_task_state (r, s, i) != TASK_FAILED)
            continue;
        flow_path (path, r, s, i, "a", (long)t->n);
        printf ("%s", s->name);
        if (s->foreach)
            printf (" %ld", i);
        printf (": %s; %s/log\n", t->attempts[t->n - 1].why ?: "", path);
    }
}

static void print_run (const struct flow_run *r, const struct status *t, struct libscols_table *tb)
{
    for (size_t i = 0; i < r->flow->n; i++)
        add_step_line (tb, r, t, r->flow->order[i]);
    printf ("%s: %s\n", r->dir, flow_state_text (r, t));
    table_print (tb);
    for (size_t i = 0; i < r->flow->n; i++)
        print_step_failures (r, &r->flow->steps[r->flow->order[i]]);
}

static int show_run (const struct flow_run *r, const struct flow_options *opt)
{
    struct libscols_table *tb = table_create ("steps", step_columns, false);
    struct status t;

    if (!tb)
        return EXIT_IO;
    status_read (r, &t, true);
    if (opt->json)
        print_run_json (r, &t);
    else
        print_run (r, &t, tb);
    scols_unref_table (tb);
    status_free (&t);
    return EXIT_OK;
}

static void print_task_healing (long attempt, double when, const char *text, void *arg)
{
    char at[32];

    (void)arg;
    time_text (at, sizeof (at), when);
    printf ("  %s attempt %ld: %s\n", at, attempt, text);
}

/* Pass what the worker noted about the ranks of all attempts to 'f'. */
static void each_task_healing (const struct flow_run *r, const struct flow_step *s, long task,
                               healing_f f, void *arg)
{
    long n = (long)flow_task (r, s, task)->n;
    char path[PATH_MAX];

    for (long k = 1; k <= n; k++) {
        flow_path (path, r, s, task, "a", k);
        healing_each (attempt_healing (path), k, f, arg);
    }
}

static void print_task (const struct flow_run *r, const struct flow_step *s, long i)
{
    json_t *v, *item = flow_item (r, s, i);
    enum flow_task_state state = flow_task_state (r, s, i);
    const json_t *done = flow_done (r, s, i);
    long k = (long)flow_task (r, s, i)->n;
    char path[PATH_MAX];
    const char *name;
    char *text;

    printf ("%s", s->name);
    if ((text = item ? json_text (item) : NULL))
        printf (" %ld (%s)", i, text);
    free (text);
    printf (": %s", task_states[state]);
    if ((name = json_string_value (json_object_get (done, "why"))))
        printf (": %s", name);
    if (state == TASK_CACHED)
        printf (" of %s", json_string_value (json_object_get (done, "flow")) ?: "");
    putchar ('\n');
    if (k) {
        flow_path (path, r, s, i, "a", k);
        printf ("  log %s/log\n", path);
    }
    each_task_healing (r, s, i, print_task_healing, NULL);
    json_object_foreach (json_object_get (done, "values"), name, v) {
        text = json_is_array (v) ? json_string_of (v, 0) : json_text (v);
        printf ("  %s = %s\n", name, text ? text : "");
        free (text);
    }
    json_object_foreach (json_object_get (done, "outputs"), name, v)
        printf ("  %s = %s\n    sha256 %s\n", name,
                json_string_value (json_object_get (v, "path")) ?: "",
                json_string_value (json_object_get (v, "sha256")) ?: "");
    json_decref (item);
}

/* Print a step with its tasks. */
static void print_step_json (const struct flow_run *r, const struct status *t,
                             const struct flow_step *s)
{
    json_t *o = step_json (r, t, flow_step_number (r->flow, s));
    json_t *results = json_array ();
    long width = flow_width (r, s);

    for (long i = 0; i < width; i++) {
        const struct flow_task *task = flow_task (r, s, i);
        json_t *item = flow_item (r, s, i);
        json_t *one = json_pack ("{s:s, s:I}", "state", task_states[flow_task_state (r, s, i)],
                                 "attempts", (json_int_t)task->n);
        const json_t *done = flow_done (r, s, i);
        json_t *healing = json_array ();
        json_object_set_new (one, "item", item ? item : json_null ());
        if (task->n && task->attempts[task->n - 1].why)
            json_object_set_new (one, "why", json_string (task->attempts[task->n - 1].why));
        json_object_update (one, (json_t *)done);
        json_object_del (one, "status");
        json_object_set_new (one, "healing", healing);
        each_task_healing (r, s, i, healing_add_json, healing);
        json_array_append_new (results, one);
    }
    json_object_set_new (o, "results", results);
    json_put (o, stdout, JSON_INDENT (2));
    putchar ('\n');
    json_decref (o);
}

static int show_step (const struct flow_run *r, const char *name, bool json)
{
    const struct flow_step *s = flow_step_find (r->flow, name);
    long width = s ? flow_width (r, s) : 0;
    struct status t;

    if (!s) {
        complain ("%s has no step '%s' (dl flow show lists them)", r->dir, name);
        return EXIT_NOT_FOUND;
    }
    status_read (r, &t, true);
    if (json) {
        print_step_json (r, &t, s);
        status_free (&t);
        return EXIT_OK;
    }
    status_free (&t);
    conditions_print (flow_conditions (r, s), stdout);
    if (width < 0)
        printf ("%s: its list is not known yet\n", s->name);
    for (long i = 0; i < width; i++)
        print_task (r, s, i);
    print_step_failures (r, s);
    return EXIT_OK;
}

int flow_show (const struct command_line *line)
{
    struct flow_run r;
    int rv = flow_open (&r, line, line->args[1], false);

    if (!rv)
        rv = line->nargs > 2
                 ? show_step (&r, line->args[2], ((const struct flow_options *)line->options)->json)
                 : show_run (&r, line->options);
    flow_close (&r);
    return rv;
}

/* ---- graph ---- */

/* The names of steps are words and need no escaping. */
static void write_dot (FILE *o, const struct flow *f, const struct status *t)
{
    static const char *const styles[] = { "solid", "dashed", "bold" };

    fprintf (o,
             "digraph \"%s\" {\n  rankdir = LR;\n  node [shape = box, style = "
             "\"rounded,filled\", fillcolor = white];\n",
             f->base->name);
    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[f->order[i]];
        fprintf (o, "  \"%s\" [label = \"%s", s->name, s->name);
        if (s->items)
            fprintf (o, "\\n%zu tasks", json_array_size (s->items));
        else if (s->foreach)
            fputs ("\\nfor each", o);
        if (s->when)
            fputs ("\\nwhen ...", o);
        fprintf (o, "\", fillcolor = %s%s];\n", t ? looks[t->steps[f->order[i]]].colour : "white",
                 s->on_exit ? ", shape = octagon" : "");
        for (size_t k = 0; k < s->nlinks; k++)
            fprintf (o, "  \"%s\" -> \"%s\" [style = %s];\n", f->steps[s->links[k].step].name,
                     s->name, styles[s->links[k].wait]);
    }
    fputs ("}\n", o);
}

static int publish_picture (FILE *f, const char *path)
{
    struct slurmdl_error err = { "" };
    off_t n = lseek (fileno (f), 0, SEEK_END);
    char *picture = xmalloc ((size_t)n);
    int rv = pread (fileno (f), picture, (size_t)n, 0) == n
                 ? publish_output (path, picture, (size_t)n, &err)
                 : errorf (&err, "cannot read a temporary file: %s", strerror (errno));

    fclose (f);
    free (picture);
    return rv < 0 ? fail (&err) : EXIT_OK;
}

/* Pipe the graph to dot of graphviz. */
static int write_picture (const char *path, const struct flow *f, const struct status *t)
{
    const char *dot = strrchr (path, '.');
    char format[16];
    char *argv[] = { (char *)"dot", format, NULL };
    int ends[2];
    int missing = 0;
    FILE *o, *picture;
    pid_t pid;

    if (!dot || !word_listed ("svg,png,pdf", dot + 1)) {
        complain ("--output: '%s' must end in .svg, .png or .pdf", path);
        return EXIT_USAGE;
    }
    snprintf (format, sizeof (format), "-T%.10s", dot + 1);
    if (!(picture = tmpfile ()) || pipe (ends) < 0) {
        complain ("cannot create a temporary file: %s", strerror (errno));
        return EXIT_IO;
    }
    pid = subprocess_spawn (&(struct spawn){
        .argv = argv, .io = { ends[0], fileno (picture), -1 }, .error = &missing });
    close (ends[0]);
    signal (SIGPIPE, SIG_IGN);
    if ((o = fdopen (ends[1], "w"))) {
        write_dot (o, f, t);
        fclose (o);
    }
    if (subprocess_wait (pid) == 0)
        return publish_picture (picture, path);
    fclose (picture);
    complain ("%s was not written: dot, of graphviz, %s%s; without -o its text is printed", path,
              missing ? "cannot be run: " : "wrote no picture", missing ? strerror (missing) : "");
    return EXIT_FAILED;
}

static int draw_flow (const struct flow *f, const struct status *t, const char *path)
{
    if (path)
        return write_picture (path, f, t);
    write_dot (stdout, f, t);
    return EXIT_OK;
}

/* Draw a flow file, or a run with its states. */
int flow_graph (const struct command_line *line)
{
    const struct flow_options *opt = line->options;
    struct flow_run r;
    struct status t;
    struct flow *f;
    struct stat file;
    int rv;

    if (line->args[1] && stat (line->args[1], &file) == 0 && !S_ISDIR (file.st_mode)) {
        if (!(f = flow_file_read (line->args[1], NULL, NULL)))
            return EXIT_USAGE;
        rv = draw_flow (f, NULL, opt->output);
        flow_free (f);
        return rv;
    }
    if ((rv = flow_open (&r, line, line->args[1], false)) == 0) {
        status_read (&r, &t, true);
        rv = draw_flow (r.flow, &t, opt->output);
        status_free (&t);
    }
    flow_close (&r);
    return rv;
}
