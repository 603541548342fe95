/* SPDX-License-Identifier: Apache-2.0 */
/* dl top: print how busy the GPUs of the user's running jobs are. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/diagnostics.h"
#include "launcher/monitor/monitor.h"
#include "launcher/progress/progress.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/table.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/terminal.h"
#include "runtime/base/clock.h"

enum { SQUEUE_TIMEOUT = 20 /* s */ };
static const double top_every = 5, top_least = 1, top_most = 3600;
static const double squeue_every = 60; /* s between two runs of squeue */

struct gpu_row {
    char step[64];       /* "1234.0" */
    char experiment[96]; /* with the trial; "" if the step belongs to none */
    char node[64];
    struct usage_gpu gpu;
    double age; /* age of the sample in s */
    dev_t device;
    ino_t inode; /* of the step's directory, which may be found twice */
};

struct top {
    const struct command_line *line;
    const struct top_options *opt;
    struct gpu_row *list;
    size_t n;
    const struct sweep *sweep; /* being searched, or NULL for a plain directory */
    char **folders;            /* of running jobs, NULL-ended */
    double asked;              /* 0 if never */
};

/* ---- rows ---- */

static bool row_is_there (const struct top *t, const struct gpu_row *r)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].inode == r->inode && t->list[i].device == r->device
            && t->list[i].gpu.index == r->gpu.index && !strcmp (t->list[i].node, r->node))
            return true;
    return false;
}

static void add_gpu_row (struct top *t, const struct gpu_row *r)
{
    if (row_is_there (t, r))
        return;
    XGROW (t->list, t->n);
    t->list[t->n++] = *r;
}

/* "digits-0001 7" for EXPERIMENT/trials/0007/a.1/dl-monitor-... */
static void name_trial (const struct top *t, const char *step, char *buf, size_t size)
{
    const char *trials = strstr (step, "/trials/");
    const char *name = t->sweep ? strrchr (t->sweep->dir, '/') : NULL;

    *buf = '\0';
    if (t->sweep && name && trials)
        snprintf (buf, size, "%.80s %ld", name + 1, strtol (trials + 8, NULL, 10));
}

static void take_step (const char *path, const struct usage *u, void *arg)
{
    struct top *t = arg;
    const char *name = strrchr (path, '/');
    struct gpu_row r = { 0 };
    struct stat st;

    if (!name || lstat (path, &st) < 0 || st.st_uid != geteuid ())
        return;
    snprintf (r.step, sizeof (r.step), "%.60s", name + 1 + strlen (MONITOR_PREFIX));
    name_trial (t, path, r.experiment, sizeof (r.experiment));
    r.device = st.st_dev;
    r.inode = st.st_ino;
    for (size_t k = 0; k < u->nnodes; k++)
        for (int i = 0; i < u->nodes[k].ngpus; i++) {
            snprintf (r.node, sizeof (r.node), "%s", u->nodes[k].name);
            r.gpu = u->nodes[k].gpus[i];
            r.age = fmax (0, (double)time (NULL) - u->nodes[k].time);
            add_gpu_row (t, &r);
        }
}

static int by_gpu_place (const void *a, const void *b)
{
    const struct gpu_row *x = a, *y = b;
    int order = strverscmp (x->step, y->step);

    if (!order)
        order = strverscmp (x->node, y->node);
    return order ?: x->gpu.index - y->gpu.index;
}

/* ---- find the steps ---- */

static int look_at_experiment (const char *dir, void *arg)
{
    struct top *t = arg;
    struct problems p;
    struct sweep *s;

    problems_open (&p);
    if ((s = sweep_open (dir, &p, NULL)) && s->state == SWEEP_RUNNING) {
        t->sweep = s;
        monitored_trials (s, take_step, t);
        t->sweep = NULL;
    }
    sweep_close (s);
    problems_close (&p);
    free (p.text);
    return 0;
}

/* Find the working directories of the user's running jobs.  Asks Slurm once a minute.
 */
static void find_running_jobs (struct top *t)
{
    struct slurm_jobs jobs;

    if (t->asked > 0 && monotonic () - t->asked < squeue_every)
        return;
    t->asked = monotonic ();
    strings_free (t->folders);
    t->folders = NULL;
    slurm_jobs_ask (&(struct slurm_queue){ .seconds = SQUEUE_TIMEOUT }, &jobs, NULL);
    for (size_t i = 0; i < jobs.n; i++)
        if (!strcmp (jobs.list[i].state, "RUNNING") && *jobs.list[i].folder == '/')
            strings_add (&t->folders, jobs.list[i].folder);
    slurm_jobs_free (&jobs);
}

static void find_monitored_folders (struct top *t)
{
    const char *dir = getenv ("DL_MONITOR_DIR");

    monitored_steps (".", take_step, t);
    if (dir && *dir)
        monitored_steps (dir, take_step, t);
    find_running_jobs (t);
    for (char **f = t->folders; f && *f; f++)
        monitored_steps (*f, take_step, t);
    each_experiment (t->line->dir, look_at_experiment, t);
}

static void gather_gpus (struct top *t)
{
    free (t->list);
    t->list = NULL;
    t->n = 0;
    for (int i = 0; i < t->line->nargs; i++)
        monitored_steps (t->line->args[i], take_step, t);
    if (t->line->nargs == 0)
        find_monitored_folders (t);
    if (t->n > 0)
        qsort (t->list, t->n, sizeof (*t->list), by_gpu_place);
}

/* ---- text ---- */

static enum screen_style busy_style (double busy)
{
    return busy < 10 ? STYLE_BAD : busy < 50 ? STYLE_WARNING : STYLE_GOOD;
}

static void put_memory (struct screen *c, const struct usage_gpu *g)
{
    char text[64] = "-";

    if (!isnan (g->memory) && g->memory_size > 0)
        snprintf (text, sizeof (text), "%.1f of %.0f GiB", g->memory / (1 << 30),
                  g->memory_size / (1 << 30));
    screen_right (c, STYLE_PLAIN, c->column + 17, text);
}

static void put_gpu_row (struct screen *c, const struct gpu_row *r, const struct gpu_row *before)
{
    bool same = before && !strcmp (before->step, r->step);
    int wide = c->width >= 110 ? 20 : c->width >= 70 ? 10 : 0;
    char text[64];

    screen_cell (c, STYLE_BOLD, 13, same ? "" : r->step);
    if (c->width >= 90)
        screen_cell (c, STYLE_PLAIN, 20, same ? "" : r->experiment);
    screen_cell (c, STYLE_PLAIN, 12, same && !strcmp (before->node, r->node) ? "" : r->node);
    snprintf (text, sizeof (text), "%d", r->gpu.index);
    screen_right (c, STYLE_PLAIN, c->column + 4, text);
    snprintf (text, sizeof (text), r->gpu.rank < 0 ? "-" : "%ld", r->gpu.rank);
    screen_right (c, STYLE_PLAIN, c->column + 6, text);
    screen_put (c, STYLE_PLAIN, "  ");
    if (wide)
        screen_bar (c, busy_style (r->gpu.busy), wide, isnan (r->gpu.busy) ? 0 : r->gpu.busy / 100);
    snprintf (text, sizeof (text), isnan (r->gpu.busy) ? "-" : "%.0f %%", r->gpu.busy);
    screen_right (c, STYLE_PLAIN, c->column + 6, text);
    put_memory (c, &r->gpu);
    snprintf (text, sizeof (text), isnan (r->gpu.power) ? "-" : "%.0f W", r->gpu.power);
    screen_right (c, STYLE_PLAIN, c->column + 8, text);
    duration_text (text, sizeof (text), r->age);
    screen_right (c, STYLE_DIM, c->column + 8, text);
    screen_line (c);
}

static void put_top_head (struct screen *c)
{
    int wide = c->width >= 110 ? 20 : c->width >= 70 ? 10 : 0;

    screen_cell (c, STYLE_DIM, 13, "step");
    if (c->width >= 90)
        screen_cell (c, STYLE_DIM, 20, "trial");
    screen_cell (c, STYLE_DIM, 12, "node");
    screen_right (c, STYLE_DIM, c->column + 4, "GPU");
    screen_right (c, STYLE_DIM, c->column + 6, "rank");
    screen_right (c, STYLE_DIM, c->column + 8 + wide, "busy");
    screen_right (c, STYLE_DIM, c->column + 17, "memory");
    screen_right (c, STYLE_DIM, c->column + 8, "power");
    screen_right (c, STYLE_DIM, c->column + 8, "age");
    screen_line (c);
}

static void put_sum (const struct top *t, struct screen *c)
{
    double busy = 0;
    int known = 0, idle = 0;

    for (size_t i = 0; i < t->n; i++)
        if (!isnan (t->list[i].gpu.busy)) {
            busy += t->list[i].gpu.busy;
            idle += t->list[i].gpu.busy < 10;
            known++;
        }
    screen_put (c, STYLE_BOLD, "%zu GPU%s", t->n, t->n == 1 ? "" : "s");
    if (known)
        screen_put (c, STYLE_PLAIN, ", busy %.0f %%", busy / known);
    if (idle)
        screen_put (c, STYLE_WARNING, ", %d below 10 %%", idle);
    screen_put (c, STYLE_DIM, " (means of %d s)", GPU_WINDOW);
    screen_line (c);
}

static const char nothing[] = "none of your running jobs has monitored GPUs: use srun --dl-monitor";

static void put_top (const struct top *t, struct screen *c)
{
    char more[AND_MORE_SIZE];

    if (t->n == 0) {
        screen_put (c, STYLE_WARNING, "%s", nothing);
        screen_line (c);
        return;
    }
    put_sum (t, c);
    put_top_head (c);
    for (size_t i = 0; i < t->n; i++) {
        if (i + 1 < t->n && screen_room (c) == 1) {
            screen_put (c, STYLE_DIM, "%s", and_more (more, (long)(t->n - i)) + 1);
            screen_line (c);
            return;
        }
        put_gpu_row (c, &t->list[i], i ? &t->list[i - 1] : NULL);
    }
}

/* ---- JSON ---- */

static json_t *row_json (const struct gpu_row *r)
{
    return json_pack ("{s:s, s:s*, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "step", r->step,
                      "trial", *r->experiment ? r->experiment : NULL, "node", r->node, "gpu",
                      r->gpu.index, "rank",
                      r->gpu.rank < 0 ? json_null () : json_integer (r->gpu.rank), "busy",
                      finite_to_json (r->gpu.busy), "memory", finite_to_json (r->gpu.memory),
                      "memory_size", finite_to_json (r->gpu.memory_size), "power",
                      finite_to_json (r->gpu.power), "age", finite_to_json (r->age));
}

static void print_top_json (const struct top *t)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < t->n; i++)
        json_array_append_new (list, row_json (&t->list[i]));
    json_dumpf (list, stdout, JSON_INDENT (2));
    putchar ('\n');
    json_decref (list);
}

/* ---- the command ---- */

static int print_once (struct top *t)
{
    struct screen c;

    gather_gpus (t);
    if (t->opt->json) {
        print_top_json (t);
        return EXIT_OK;
    }
    if (t->n == 0) {
        complain ("%s", nothing);
        return EXIT_NOT_FOUND;
    }
    screen_begin (&c, table_width () ?: 132, 500);
    put_top (t, &c);
    terminal_allow_colours (true);
    screen_end (&c, stdout);
    terminal_allow_colours (false);
    return EXIT_OK;
}

static void top_in_window (struct top *t)
{
    double seconds =
        t->opt->seconds > 0 ? fmin (fmax (t->opt->seconds, top_least), top_most) : top_every;
    struct screen c;
    enum screen_event event = SCREEN_TIME;

    screen_take (true);
    while (event != SCREEN_QUIT) {
        if (event == SCREEN_TIME)
            gather_gpus (t);
        screen_begin (&c, 0, 0);
        put_top (t, &c);
        screen_end (&c, NULL);
        event = screen_wait (seconds);
    }
    screen_give_back ();
}

int cmd_top (const struct command_line *line)
{
    const struct top_options *opt = line->options;
    struct top t = { .line = line, .opt = opt };
    int rv = EXIT_OK;

    if (opt->watch && (opt->json || !screen_is_there ())) {
        complain ("top: --watch needs a terminal");
        return EXIT_USAGE;
    }
    if (opt->watch)
        top_in_window (&t);
    else
        rv = print_once (&t);
    free (t.list);
    strings_free (t.folders);
    return rv;
}
