/* SPDX-License-Identifier: Apache-2.0 */
/* Run the steps of a flow as processes of this host. */
#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/config/worker_settings.h"
#include "launcher/flow/run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/subprocess.h"
#include "launcher/worker/worker.h"
#include "runtime/base/clock.h"

enum local_state { LOCAL_IDLE, LOCAL_RUNS, LOCAL_OK, LOCAL_FAILED };

struct local_task {
    struct local_step *l;
    enum local_state state;
    double began; /* 0: it was not started */
};

struct local_step {
    const struct flow_step *s;
    long width; /* -1: not known yet */
    long start; /* 0: none of its tasks has started */
    struct local_task *tasks;
};

struct local_flow {
    const struct flow_run *r;
    struct local_step *steps;
    struct local_pool *pool;
    long workers, running;
    long ran;    /* tasks started so far */
    int signals; /* signalfd */
    bool told;   /* a signal asked us to end */
    char dl[PATH_MAX];
};

/* ---- what may run ---- */

static long count_tasks (const struct local_step *l, enum local_state state)
{
    long n = 0;

    for (long i = 0; i < l->width; i++)
        n += l->tasks[i].state == state;
    return n;
}

static bool step_is_over (const struct local_step *l)
{
    return l->width >= 0 && count_tasks (l, LOCAL_OK) + count_tasks (l, LOCAL_FAILED) == l->width;
}

enum local_turn { RUN_NOW, RUN_LATER, RUN_NEVER };

static enum local_turn turn_of_task (const struct local_flow *f, const struct local_step *l, long i)
{
    enum local_turn turn = RUN_NOW;

    for (size_t k = 0; l->s->on_exit && k < f->r->flow->n; k++)
        if (!f->steps[k].s->on_exit && !step_is_over (&f->steps[k]))
            return RUN_LATER;
    for (size_t k = 0; k < l->s->nlinks; k++) {
        const struct flow_link *link = &l->s->links[k];
        const struct local_step *to = &f->steps[link->step];
        enum local_state state = LOCAL_IDLE;
        if (link->wait == AFTER_EACH)
            state = i < to->width ? to->tasks[i].state : LOCAL_IDLE;
        else if (step_is_over (to))
            state = link->wait == AFTER_ANY || count_tasks (to, LOCAL_FAILED) == 0 ? LOCAL_OK
                                                                                   : LOCAL_FAILED;
        if (state == LOCAL_FAILED)
            return RUN_NEVER;
        if (state != LOCAL_OK)
            turn = RUN_LATER;
    }
    return turn;
}

/* The list of a step is known once the step that reports it has ended.  If it never will be known,
 * the step counts as one task, which does not run.
 */
static void find_step_width (struct local_flow *f, struct local_step *l)
{
    if (l->width >= 0)
        return;
    l->width = flow_width (f->r, l->s);
    if (l->width < 0 && turn_of_task (f, l, 0) == RUN_NEVER)
        l->width = 1;
    if (l->width >= 0)
        l->tasks = xcalloc ((size_t)l->width + 1, sizeof (*l->tasks));
    for (long i = 0; i < l->width; i++)
        l->tasks[i].l = l;
}

/* ---- a task ---- */

static void print_local_task (const struct local_step *l, long i, const char *what)
{
    char name[2 * FLOW_NAME_MAX], seconds[32] = "";

    flow_task_name (name, sizeof (name), l->s, i);
    if (l->tasks[i].began > 0)
        duration_text (seconds, sizeof (seconds), monotonic () - l->tasks[i].began);
    printf ("%s: %s%s%s\n", name, what, *seconds ? " " : "", seconds);
    fflush (stdout);
}

static void print_task_state (const struct local_flow *f, const struct local_step *l, long i)
{
    print_local_task (l, i, task_states[flow_task_state (f->r, l->s, i)]);
}

/* Announce the next start; no other process has the same number. */
static int put_local_start (const struct local_flow *f, struct local_step *l)
{
    struct slurmdl_error err = { "" };
    char host[FLOW_HOST_SIZE];
    enum published rv;

    do {
        l->start = flow_starts (f->r, l->s) + 1;
        rv = flow_publish (f->r, flow_start_event (l->s, l->start, "local", host), &err);
    } while (rv == PUBLISH_LATE);
    if (rv == PUBLISH_FAILED)
        fail (&err);
    return rv == PUBLISH_DONE ? 0 : -1;
}

/* The workers of a sweep use all cores.  A step that does not say how many it uses may use all,
 * too.
 */
static int cores_of_step (const struct flow_step *s)
{
    return !s->sweep && s->exp->resources->cpus > 1 ? (int)s->exp->resources->cpus : 0;
}

static int start_local_task (struct local_flow *f, struct local_step *l, long i)
{
    struct local_task *t = &l->tasks[i];
    char start[32], task[32];
    char *words[] = { f->dl,
                      (char *)"flow",
                      (char *)"step",
                      (char *)"--",
                      (char *)f->r->dir,
                      (char *)f->r->pin,
                      l->s->name,
                      start,
                      task,
                      NULL };
    const struct local_process what = { .words = words,
                                        .output = -1,
                                        .gpus = (int)l->s->exp->resources->node_gpus,
                                        .cores = cores_of_step (l->s),
                                        .of = t };

    if (l->start == 0 && put_local_start (f, l) < 0)
        return -1;
    snprintf (start, sizeof (start), "%ld", l->start);
    snprintf (task, sizeof (task), "%ld", i);
    if (local_pool_start (f->pool, &what) < 0) {
        complain ("cannot start a process: %s", strerror (errno));
        return -1;
    }
    t->began = monotonic ();
    t->state = LOCAL_RUNS;
    f->running++;
    f->ran++;
    return 0;
}

/* The task itself reports what is wrong with a condition or an input. */
static bool settle_task (const struct local_flow *f, const struct local_step *l, long i)
{
    const struct flow_scope c = { .r = f->r, .s = l->s, .task = i };

    if (l->s->on_exit && l->s->cache && f->ran == 0) {
        flow_put_skipped (f->r, l->s, i, NULL);
        return true;
    }
    /* an exit handler runs whenever something else ran */
    return !l->s->on_exit && flow_settle (&c, NULL) == NEED_NOTHING;
}

static void begin_task (struct local_flow *f, struct local_step *l, long i)
{
    struct local_task *t = &l->tasks[i];
    bool was_there =
        !l->s->on_exit && t->state == LOCAL_IDLE && flow_task_state (f->r, l->s, i) >= TASK_SKIPPED;

    if (!l->start && settle_task (f, l, i)) {
        t->state = LOCAL_OK;
        if (!was_there && !l->s->on_exit)
            print_task_state (f, l, i);
    } else if (start_local_task (f, l, i) < 0)
        t->state = LOCAL_FAILED;
}

static bool begin_tasks (struct local_flow *f, struct local_step *l)
{
    bool any = false;

    find_step_width (f, l);
    for (long i = 0; i < l->width && f->running < f->workers && !f->told; i++) {
        struct local_task *t = &l->tasks[i];
        enum local_turn turn = t->state == LOCAL_IDLE ? turn_of_task (f, l, i) : RUN_LATER;
        if (turn == RUN_LATER
            || (turn == RUN_NOW
                && !local_pool_has_gpus (f->pool, (int)l->s->exp->resources->node_gpus)))
            continue;
        if (turn == RUN_NOW)
            begin_task (f, l, i);
        else {
            t->state = LOCAL_FAILED;
            print_local_task (l, i, "not run: a step before it has failed");
        }
        any = true;
    }
    return any;
}

/* ---- how tasks end ---- */

/* As in the jobs of a flow, only dl itself is started again, if it was killed. */
static bool was_killed (int status)
{
    return WIFSIGNALED (status) && WTERMSIG (status) != SIGTERM;
}

static void end_local_task (void *arg, void *of, int status)
{
    struct local_flow *f = arg;
    struct local_task *t = of;
    long i = t - t->l->tasks;

    flow_sync (f->r, NULL);
    f->running--;
    t->state = WIFEXITED (status) && WEXITSTATUS (status) == 0 ? LOCAL_OK : LOCAL_FAILED;
    if (t->state == LOCAL_OK)
        print_task_state (f, t->l, i);
    else if (!f->told)
        print_local_task (t->l, i, "failed");
}

static void await_signal (struct local_flow *f)
{
    struct pollfd p = { .fd = f->signals, .events = POLLIN };
    struct signalfd_siginfo info;

    if (poll (&p, 1, -1) == 1)
        while (read (f->signals, &info, sizeof (info)) == sizeof (info))
            f->told |= info.ssi_signo != SIGCHLD && info.ssi_signo != SIGUSR2;
}

static void end_tasks (struct local_flow *f)
{
    int64_t grace = 0;

    for (size_t k = 0; k < f->r->flow->n; k++)
        if (f->r->flow->steps[k].exp->worker->grace > grace)
            grace = f->r->flow->steps[k].exp->worker->grace;
    local_pool_end (f->pool, (double)grace + LOCAL_END_MORE);
}

/* ---- the whole flow ---- */

static void run_steps (struct local_flow *f)
{
    const struct flow *flow = f->r->flow;
    bool any = true;

    while (!f->told && (any || f->running > 0)) {
        any = false;
        flow_sync (f->r, NULL);
        for (size_t k = 0; k < flow->n; k++)
            any |= begin_tasks (f, &f->steps[flow->order[k]]);
        if (!any && f->running > 0) {
            await_signal (f);
            any = true;
            if (!f->told)
                local_pool_reap (f->pool);
        }
    }
    if (f->told)
        end_tasks (f);
}

static int print_flow_end (const struct local_flow *f)
{
    const char *name = strrchr (f->r->dir, '/') + 1;
    struct slurmdl_error err = { "" };
    bool good = true;

    for (size_t k = 0; k < f->r->flow->n; k++)
        good &= count_tasks (&f->steps[k], LOCAL_OK) == f->steps[k].width;
    if (f->told) {
        if (flow_mark (f->r, true, &err) < 0)
            complain ("%s", err.text);
        complain ("%s: stopped; run 'dl flow resume --local %s' to continue", name, name);
        return EXIT_STOPPED;
    }
    printf ("%s: %s, %ld task%s run\n", f->r->dir, good ? "completed" : "failed", f->ran,
            f->ran == 1 ? "" : "s");
    if (!good)
        complain (
            "'dl flow show %s' shows where; 'dl flow resume --local %s' retries what is not done, "
            "with the same code; after an edit, 'dl flow run' takes finished steps from the cache",
            name, name);
    return good ? EXIT_OK : EXIT_FAILED;
}

int flow_local (const struct flow_run *r, long workers)
{
    static const struct local_pool_ops ops = { was_killed, end_local_task };
    struct local_flow f = { .r = r, .workers = workers };
    struct slurmdl_error err = { "" };
    int rv;

    own_program (f.dl);
    for (size_t i = 0; i < r->flow->n; i++)
        if (local_check (r->flow->steps[i].exp, &err) < 0) {
            complain ("step '%s': %s", r->flow->steps[i].name, err.text);
            return EXIT_USAGE;
        }
    if ((f.signals = worker_watch_signals ()) < 0) {
        complain ("signalfd: %s", strerror (errno));
        return EXIT_IO;
    }
    f.steps = xcalloc (r->flow->n, sizeof (*f.steps));
    for (size_t i = 0; i < r->flow->n; i++)
        f.steps[i] = (struct local_step){ .s = &r->flow->steps[i], .width = -1 };
    f.pool = local_pool_create (&ops, &f, workers);
    setenv ("DL_FLOW_LOCAL", "1", 1);
    run_steps (&f);
    rv = print_flow_end (&f);
    for (size_t i = 0; i < r->flow->n; i++)
        free (f.steps[i].tasks);
    free (f.steps);
    local_pool_destroy (f.pool);
    close (f.signals);
    return rv;
}

pid_t flow_local_process (const struct flow_run *r)
{
    pid_t found = 0;

    for (size_t i = 0; !found && i < r->flow->n; i++) {
        const struct flow_step *s = &r->flow->steps[i];
        const struct flow_start *start = flow_start_of (r, s, flow_starts (r, s));
        if (start && start->mode && !strcmp (start->mode, "local")
            && flow_process (start->host, start->pid, start->began) == PROCESS_RUNS)
            found = (pid_t)start->pid;
    }
    return found;
}
