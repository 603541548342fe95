/* SPDX-License-Identifier: Apache-2.0 */
/* Watch an attempt with several ranks, and recover from hung or lost nodes within the allocation.
 */
#include "launcher/worker/worker_private.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/log_policy.h"
#include "launcher/config/resources.h"
#include "launcher/config/software_settings.h"
#include "launcher/config/worker_settings.h"
#include "launcher/debug/debug.h"
#include "launcher/heal/heal.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/user.h"
#include "launcher/trainer/trainer.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/rank/layout.h"

enum {
    START_SECONDS = 300, /* without progress that count as a hang before the first output */
    LEAST_SECONDS = 15,  /* and the least after it */
    STACKS_SECONDS = 10,
    DOUBT_SECONDS = 2,
    MOMENT_SECONDS = 1, /* for ranks to exit by themselves, and for their last output */
    SRUN_SECONDS = 5,   /* for srun to exit once its ranks have been killed */
    UNSEEN_SECONDS = 90,
    CHECK_SECONDS = 20,
    PAUSE_SECONDS = 5, /* between two ticks of a worker that ran */
    ALONE_TRIES = 2,
};

/* ---- report ---- */

void heal_note (struct heal *h, const struct trial_attempt *a, struct trainer *t,
                const char *format, ...)
{
    char text[512], path[PATH_MAX];
    size_t n = strlen (h->notes);
    va_list ap;

    va_start (ap, format);
    vsnprintf (text, sizeof (text), format, ap);
    va_end (ap);
    policy_text (text);
    if (a->own)
        fprintf (stderr, "dl: attempt %ld: %s\n", a->number, text);
    else
        fprintf (stderr, "dl: trial %ld, attempt %ld: %s\n", a->trial, a->number, text);
    if (t)
        trainer_note (t, text);
    if (n + strlen (text) + 32 < sizeof (h->notes))
        snprintf (h->notes + n, sizeof (h->notes) - n, "%lld %s\n", (long long)time (NULL), text);
    snprintf (path, sizeof (path), "%.4000s/" HEALING_NAME, a->dir);
    publish_replace (path, h->notes, strlen (h->notes), NULL);
}

/* ---- begin ---- */

/* Returns the exit status of dl check on a node, or something else if it could not be run there. */
static int run_check (const char *node, char *text, size_t size)
{
    char dl[PATH_MAX];

    own_program (dl);
    return slurm_run_on (node, dl, "check", CHECK_SECONDS, text, size);
}

static bool try_lost_node (struct heal *h, struct worker *w, const struct trial_attempt *a, int i)
{
    const struct lost_node *node = &w->lost_nodes[i];
    char text[4096];

    if (node->is_taken || run_check (node->name, text, sizeof (text)) != 0)
        return false;
    heal_note (h, a, NULL, "%s answers again", node->name);
    worker_find_node (w, i);
    return true;
}

/* If spare nodes do not suffice, use lost nodes that answer again. */
static void find_lost_nodes (struct heal *h, struct worker *w, const struct trial_attempt *a)
{
    for (int i = 0; i < w->nlost;)
        if (!try_lost_node (h, w, a, i))
            i++;
}

/* Use only as many of them as the attempts need, because each of the others costs a timeout. */
static void find_enough_nodes (struct heal *h, struct worker *w, const struct trial_attempt *a,
                               int n)
{
    for (int i = 0; i < n && worker_is_excluded (w);)
        if (try_lost_node (h, w, a, i))
            n--;
        else
            i++;
}

static void choose_nodes (struct heal *h, struct worker *w, struct trial_attempt *a)
{
    bool all;

    h->nodes = worker_good_nodes (w, &a->nnodes, &all);
    if (w->nlost > 0 && a->nnodes < w->sweep->exp->resources->nodes) {
        find_lost_nodes (h, w, a);
        free (h->nodes);
        h->nodes = worker_good_nodes (w, &a->nnodes, &all);
    }
    if (h->nodes && !all)
        a->nodes = h->nodes;
}

static size_t attempt_ranks (const struct experiment *e, const struct trial_attempt *a)
{
    if (e->job->nroles > 0)
        return (size_t)job_members (e->job);
    return (size_t)((a->nodes ? a->nnodes : e->resources->nodes) * e->resources->ranks);
}

/* Name the notice of the attempt after its trial. */
static int name_rank_notice (struct heal *h, const struct trial_attempt *a)
{
    char folder[PATH_MAX], digest[DIGEST_SIZE], token[33];

    trial_dir (a, folder, sizeof (folder));
    digest_of (digest, folder, strlen (folder));
    if (random_word (token, sizeof (token) / 2) < 0)
        return -1;
    snprintf (h->notice, sizeof (h->notice), "ranks.%.16s.%s", digest, token);
    return 0;
}

void heal_begin (struct heal *h, struct worker *w, struct trial_attempt *a)
{
    const struct experiment *e = w->sweep->exp;
    struct slurmdl_error err = { "" };

    *h = (struct heal){ .start = monotonic (),
                        .output = monotonic (),
                        .learned.longest = w->tolerated,
                        .first.rank = -1 };
    h->limits = (struct heal_limits){ .start = START_SECONDS,
                                      .least = e->worker->hang < 0 ? LEAST_SECONDS
                                                                   : (double)e->worker->hang,
                                      .fixed = e->worker->hang >= 0,
                                      .may_end = e->job->nroles > 0,
                                      .home = w->host };
    if (!experiment_has_ranks (e))
        return;
    choose_nodes (h, w, a);
    if (e->software->by_srun || e->resources->is_step)
        return; /* a single rank waits for no other, and may be silent for long */
    if (name_rank_notice (h, a) < 0)
        errorf (&err, "getrandom: %s", strerror (errno));
    else
        h->watch = rank_watch_create (h->notice, attempt_ranks (e, a), &err);
    if (h->watch) {
        a->ranks = h->notice;
        h->slow = slow_create (attempt_ranks (e, a));
    } else
        h->blind = err;
}

/* The files of an attempt whose job was preempted have come to its folder only now. */
void heal_started (struct heal *h, const struct trial_attempt *a, struct trainer *t)
{
    char path[PATH_MAX];

    if (*h->blind.text)
        heal_note (h, a, t, "cannot detect hangs and lost nodes in this attempt: %s",
                   h->blind.text);
    if (experiment_has_ranks (a->sweep->exp) && !a->own && a->number > 1
        && attempt_with_files (a, NULL, path, sizeof (path)) < 0)
        heal_note (h, a, t,
                   "starts without files: the attempts before it left none in their folders");
}

/* ---- watch ---- */

static bool has_printed (struct heal *h, const struct trial_attempt *a)
{
    char path[PATH_MAX];
    long long was = h->printed;
    struct stat st;

    snprintf (path, sizeof (path), "%.4000s/log", a->dir);
    if (stat (path, &st) == 0)
        h->printed = (long long)st.st_size;
    return h->printed != was;
}

/* libslurmdl writes rows into space that metrics.h5 already has, so look at its time, not at its
 * size.  That the file was created is not progress.
 */
static bool has_logged (struct heal *h, const struct trial_attempt *a)
{
    char path[PATH_MAX];
    struct timespec was = h->logged;
    struct stat st;

    snprintf (path, sizeof (path), "%.4000s/metrics.h5", a->dir);
    if (stat (path, &st) < 0)
        return false;
    h->logged = st.st_mtim;
    return was.tv_sec > 0 && (was.tv_sec != st.st_mtim.tv_sec || was.tv_nsec != st.st_mtim.tv_nsec);
}

static void observe_output (struct heal *h, const struct trial_attempt *a)
{
    bool printed = has_printed (h, a);

    if (!has_logged (h, a) && !printed)
        return;
    h->limits.signs++;
    h->output = monotonic ();
}

/* What the log has now came before the other ranks noticed, who then print errors of their own. */
static void observe_failure (struct heal *h)
{
    size_t n;
    const struct heal_seen *ranks = rank_watch_seen (h->watch, &n);

    if (h->first.rank < 0)
        h->first = (struct first_failure){ heal_first_to_fail (ranks, n), h->printed };
}

/* Warn if no rank can reach the worker, for example because of a firewall. */
static void warn_unseen (struct heal *h, const struct trial_attempt *a, struct trainer *t,
                         const struct heal_seen *ranks, size_t n)
{
    size_t come = 0;

    for (size_t i = 0; i < n; i++)
        come += ranks[i].came;
    if (h->warned || come > 0 || monotonic () - h->start < UNSEEN_SECONDS
        || !heal_has_begun (&h->limits))
        return;
    h->warned = true;
    heal_note (h, a, t, "no rank has reached the worker: hangs and lost nodes will not be seen");
}

/* ---- act ---- */

/* Make the folder for the stacks.  Returns false if another member of a group has put something in
 * its place, or may write there: the ranks would write elsewhere, or the worker read forged stacks.
 */
static bool stacks_folder (const struct trial_attempt *a, char *path, size_t size)
{
    struct stat st;

    snprintf (path, size, "%.4000s/" STACKS_NAME, a->dir);
    return (mkdir (path, 0755) == 0 || errno == EEXIST) && lstat (path, &st) == 0
           && S_ISDIR (st.st_mode) && user_writes_alone (&st);
}

static void take_stacks (struct heal *h, const struct trial_attempt *a)
{
    char path[PATH_MAX];

    h->dumps++;
    if (!stacks_folder (a, path, sizeof (path)))
        return;
    debug_request (path, h->dumps, DEBUG_HANG, h->verdict.why);
    rank_watch_dump (h->watch, path, h->dumps);
}

static size_t read_dump (const struct trial_attempt *a, long dump, struct stack **stacks,
                         size_t **group)
{
    char path[PATH_MAX];

    *stacks = NULL;
    *group = NULL;
    return stacks_folder (a, path, sizeof (path)) ? debug_read (path, dump, stacks, group) : 0;
}

/* Find the only rank that is at another place than all others. */
static const struct stack *odd_rank (const struct stack *stacks, const size_t *group, size_t n)
{
    size_t count[2] = { 0, 0 };
    const struct stack *odd = NULL;

    for (size_t i = 0; i < n; i++) {
        if (group[i] > 1)
            return NULL;
        count[group[i]]++;
        if (group[i] == 1)
            odd = &stacks[i];
    }
    return count[1] == 1 && count[0] > 1 ? odd : NULL;
}

/* Whether only the kernel reported the place, perhaps because gdb had stopped the process. */
static bool is_vague (const struct stack *s)
{
    return s->state == 'T' || s->state == 't' || strstr (s->top.function, "the kernel's ")
           || !strcmp (s->top.function, "its own code");
}

static bool is_same_place (const struct stack *a, const struct stack *b)
{
    if (is_vague (a) || is_vague (b))
        return true;
    return !strcmp (a->top.function, b->top.function) && a->top.line == b->top.line
           && !strcmp (a->user.function, b->user.function) && a->user.line == b->user.line;
}

/* Find the rank of a process that was at another place in the previous dump. */
static long moved_rank (const struct trial_attempt *a, long dump)
{
    struct stack *now, *before;
    size_t *group, *old_group;
    size_t n = read_dump (a, dump, &now, &group);
    size_t m = read_dump (a, dump - 1, &before, &old_group);
    long rank = -1;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m && rank < 0; k++)
            if (now[i].pid == before[k].pid && !strcmp (now[i].host, before[k].host)
                && !is_same_place (&now[i], &before[k]))
                rank = now[i].rank;
    free (now);
    free (before);
    free (group);
    free (old_group);
    return rank;
}

/* If the stacks show one rank at another place than the others, report it. */
static void read_stacks (struct heal *h, const struct trial_attempt *a, struct trainer *t)
{
    struct heal_verdict *v = &h->verdict;
    const struct stack *odd;
    struct stack *stacks;
    char path[PATH_MAX], where[DEBUG_LINE / 2] = "";
    size_t *group;
    size_t n = read_dump (a, h->dumps, &stacks, &group);

    if (!stacks_folder (a, path, sizeof (path))) {
        heal_note (h, a, t, "no stacks: others own %s, or may write there", path);
        return;
    }
    if (n > 0)
        stacks_line (stacks, group, n, where, sizeof (where));
    odd = stacks && group ? odd_rank (stacks, group, n) : NULL;
    if (odd && v->rank < 0) {
        size_t used = strlen (v->why);
        v->rank = odd->rank;
        snprintf (v->host, sizeof (v->host), "%s", odd->host);
        snprintf (v->why + used, sizeof (v->why) - used,
                  "; rank %ld on %s is elsewhere than the others", v->rank, v->host);
    }
    heal_note (h, a, t, "%s; stacks: %s/dump-%ld", *where ? where : "no stacks", path, h->dumps);
    free (stacks);
    free (group);
}

static void enter_phase (struct heal *h, enum heal_phase phase, double seconds)
{
    h->phase = phase;
    h->until = monotonic () + seconds;
}

static void watch_again (struct heal *h)
{
    h->output = monotonic ();
    h->verdict = (struct heal_verdict){ .rank = -1 };
    enter_phase (h, HEAL_WATCHES, 0);
}

/* Whether the rank that was silent has sent something since. */
static bool is_heard_again (const struct heal *h)
{
    size_t n;
    const struct heal_seen *ranks = rank_watch_seen (h->watch, &n);

    return h->verdict.cause == HEAL_SILENT
           && !heal_is_silent (&ranks[h->verdict.rank], monotonic ());
}

static void read_first_stacks (struct heal *h, const struct trial_attempt *a, struct trainer *t)
{
    if (is_heard_again (h)) {
        heal_note (h, a, t, "rank %ld sends heartbeats again", h->verdict.rank);
        watch_again (h);
    } else if (h->verdict.cause == HEAL_HANG && !h->limits.fixed)
        enter_phase (h, HEAL_DOUBTS, DOUBT_SECONDS);
    else {
        read_stacks (h, a, t);
        enter_phase (h, HEAL_ENDS, 0);
    }
}

/* A program may compute for a long time without visible progress, but then its stacks change. */
static void read_second_stacks (struct heal *h, const struct trial_attempt *a, struct trainer *t)
{
    long rank;

    if ((rank = moved_rank (a, h->dumps)) < 0) {
        read_stacks (h, a, t);
        enter_phase (h, HEAL_ENDS, 0);
        return;
    }
    heal_note (h, a, t, "rank %ld has moved, by its stacks", rank);
    if (h->learned.longest < h->verdict.quiet)
        h->learned.longest = h->verdict.quiet;
    watch_again (h);
}

/* Ask Slurm whether this host is cut off.  If slurmctld answers, and only one other host is silent,
 * that one is lost.  If several are, they may still be good.
 */
static void doubt_own_host (struct heal *h)
{
    size_t n, used = strlen (h->verdict.why);
    const struct heal_seen *ranks = rank_watch_seen (h->watch, &n);

    if (allocation_state () == JOB_UNKNOWN)
        snprintf (h->verdict.why + used, sizeof (h->verdict.why) - used,
                  " (slurmctld does not answer either)");
    else if (h->verdict.others == 1)
        heal_blame_lost (ranks, n, &h->verdict);
}

static void begin_to_act (struct heal *h, const struct trial_attempt *a, struct trainer *t)
{
    const struct heal_row *row;
    time_t began = time (NULL) - (time_t)h->verdict.quiet;
    char since[32] = "";
    struct tm tm;

    if (h->verdict.cause == HEAL_ALONE)
        doubt_own_host (h);
    row = &heal_rows[h->verdict.cause];
    if (row->takes_stacks && localtime_r (&began, &tm)
        && strftime (since, sizeof (since), "%H:%M:%S", &tm) > 0)
        heal_note (h, a, t, "%s, since %s", h->verdict.why, since);
    else
        heal_note (h, a, t, "%s", h->verdict.why);
    if (row->takes_stacks) {
        take_stacks (h, a);
        enter_phase (h, HEAL_STACKS, STACKS_SECONDS);
    } else
        enter_phase (h, HEAL_ENDS, row->leaves ? 0 : MOMENT_SECONDS);
}

/* Kill srun, which would wait for a lost node as long as Slurm does. */
static void leave_behind (struct heal *h, struct trainer *t)
{
    char step[32];

    h->left = true;
    trainer_leave (t);
    if (rank_watch_step (h->watch) < 0)
        return;
    snprintf (step, sizeof (step), "%ld", rank_watch_step (h->watch));
    if (slurm_begin_to_cancel_step (step) < 0)
        complain ("step %s: cannot start scancel: %s", step, strerror (errno));
}

static void end_step (struct heal *h, struct trainer *t)
{
    rank_watch_end (h->watch);
    enter_phase (h, HEAL_WAITS, SRUN_SECONDS);
    if (heal_rows[h->verdict.cause].leaves)
        leave_behind (h, t);
    else
        trainer_signal (t, SIGKILL);
}

static void judge_ranks (struct heal *h, const struct trial_attempt *a, struct trainer *t)
{
    const struct heal_seen *ranks;
    double now = monotonic ();
    char slow[256];
    size_t n;

    ranks = rank_watch_seen (h->watch, &n);
    heal_learn (&h->learned, heal_quiet (ranks, n, h->output, now));
    warn_unseen (h, a, t, ranks, n);
    if (heal_has_begun (&h->limits)
        && slow_judge (h->slow, ranks, n, now, slow, sizeof (slow)) != SLOW_NOTHING)
        heal_note (h, a, t, "%s", slow);
    heal_judge (ranks, n, &h->limits, &h->learned, h->output, now, &h->verdict);
    if (h->verdict.cause != HEAL_NONE)
        begin_to_act (h, a, t);
}

/* Once all ranks have ended, do not give srun more than a moment. */
static void wait_for_srun (struct heal *h, struct trainer *t)
{
    size_t n;
    const struct heal_seen *ranks = rank_watch_seen (h->watch, &n);
    size_t live = 0;

    for (size_t i = 0; i < n; i++)
        live += heal_lives (&ranks[i]);
    if (live == 0 && h->until > monotonic () + MOMENT_SECONDS)
        h->until = monotonic () + MOMENT_SECONDS;
    if (monotonic () >= h->until && !h->left)
        leave_behind (h, t);
}

void heal_serve (struct heal *h)
{
    if (h->watch)
        rank_watch_serve (h->watch);
}

void heal_tick (struct heal *h, const struct trial_attempt *a, struct trainer *t)
{
    double now = monotonic ();

    if (!h->watch)
        return;
    rank_watch_serve (h->watch);
    observe_output (h, a);
    observe_failure (h);
    /* whoever stopped this worker, such as scontrol suspend, may have stopped the ranks, too */
    if (h->ticked > 0 && now - h->ticked > PAUSE_SECONDS)
        h->output = now;
    h->ticked = now;
    switch (h->phase) {
    case HEAL_WATCHES:
        judge_ranks (h, a, t);
        break;
    case HEAL_STACKS:
        if (rank_watch_dumping (h->watch) == 0 || monotonic () >= h->until)
            read_first_stacks (h, a, t);
        break;
    case HEAL_DOUBTS:
        if (monotonic () < h->until)
            break;
        take_stacks (h, a);
        enter_phase (h, HEAL_AGAIN, STACKS_SECONDS);
        break;
    case HEAL_AGAIN:
        if (rank_watch_dumping (h->watch) == 0 || monotonic () >= h->until)
            read_second_stacks (h, a, t);
        break;
    case HEAL_ENDS:
        if (monotonic () >= h->until)
            end_step (h, t);
        break;
    case HEAL_WAITS:
        wait_for_srun (h, t);
    }
}

/* ---- the end ---- */

int heal_status (const struct heal *h, int status)
{
    return h->verdict.cause == HEAL_DIED ? h->verdict.status : status;
}

void heal_explain (const struct heal *h, struct failure_class *v)
{
    char was[sizeof (v->why)];

    if (h->verdict.cause == HEAL_NONE || v->exclude || v->error)
        return;
    memcpy (was, v->why, sizeof (was));
    if (v->oom != OOM_NONE) {
        if (h->verdict.rank >= 0)
            snprintf (v->why, sizeof (v->why), "%.380s: rank %ld on %s", was, h->verdict.rank,
                      h->verdict.host);
        policy_text (v->why);
        return;
    }
    v->free |= heal_rows[h->verdict.cause].is_free;
    v->cause = heal_rows[h->verdict.cause].reason;
    if (h->verdict.cause != HEAL_DIED || h->verdict.signal)
        snprintf (v->why, sizeof (v->why), "%s", h->verdict.why);
    else
        snprintf (v->why, sizeof (v->why), "%s: rank %ld on %s was the first to fail%s", was,
                  h->verdict.rank, h->verdict.host, h->verdict.before);
    policy_text (v->why);
}

static const char too_few[] = "too few nodes are left: the job goes back into the queue";

/* Try the first 'n' lost nodes if too few nodes are left, and then give up the allocation. */
static void count_nodes (struct heal *h, struct worker *w, const struct trial_attempt *a, int n)
{
    find_enough_nodes (h, w, a, n);
    if (!worker_is_excluded (w))
        return;
    heal_note (h, a, NULL, "%s", too_few);
    for (int i = 0; i < w->nlost; i++)
        worker_exclude_node (w, w->lost_nodes[i].name, "it did not answer");
}

/* 'was_tried': a check has just failed to run on the node, so do not try it again. */
static void lose_node (struct heal *h, struct worker *w, const struct trial_attempt *a,
                       const char *name, bool was_tried)
{
    if (!*name || !worker_lose_node (w, name))
        return;
    heal_note (h, a, NULL, "%s is left out", name);
    count_nodes (h, w, a, w->nlost - was_tried);
}

/* The worker reached none of the attempt's other nodes.  If a check still runs on none of the first
 * few, give up the allocation, but exclude nobody: it is not known which host is cut off.
 */
static void leave_blameless (struct heal *h, struct worker *w, const struct trial_attempt *a)
{
    char *list = h->nodes ? xstrdup (h->nodes) : NULL;
    char *save = NULL, text[4096];
    int tries = 0;

    for (char *name = list ? strtok_r (list, ",", &save) : NULL; name && tries < ALONE_TRIES;
         name = strtok_r (NULL, ",", &save)) {
        if (!strcmp (name, w->host))
            continue;
        tries++;
        if (run_check (name, text, sizeof (text)) == 0) {
            heal_note (h, a, NULL, "%s answers again, and no node is left out", name);
            free (list);
            return;
        }
    }
    free (list);
    w->is_alone = tries > 0;
    if (tries > 0)
        heal_note (
            h, a, NULL,
            "no other node answers: the job goes back into the queue, and no node is excluded");
}

/* ---- nodes that Slurm has taken from the job ---- */

struct taken_nodes {
    struct heal *h;
    struct worker *w;
    const struct trial_attempt *a;
    const char *now; /* the nodes that the job still has */
    long n;
    char first[64]; /* that the attempt ran on */
};

static int find_taken_node (void *arg, const char *name)
{
    struct taken_nodes *t = arg;

    if (slurm_lists_node (t->now, name) || !worker_take_node (t->w, name))
        return 0;
    t->n++;
    heal_note (t->h, t->a, NULL, "Slurm has removed %s from the job, and it is left out", name);
    if (!*t->first && t->h->nodes && slurm_lists_node (t->h->nodes, name))
        snprintf (t->first, sizeof (t->first), "%s", name);
    return 0;
}

/* Slurm takes a node that it sets DOWN from a job that was submitted with --no-kill, and kills the
 * steps there.  The job's environment still lists the node, and a step that asks for it never
 * starts.  Returns whether this ended the attempt.
 */
static bool leave_taken_nodes (struct heal *h, struct worker *w, const struct trial_attempt *a,
                               struct failure_class *v)
{
    struct taken_nodes t = { .h = h, .w = w, .a = a };
    char *now = experiment_has_ranks (w->sweep->exp) ? allocation_nodes () : NULL;

    t.now = now;
    for (long i = 0; now && i < slurm_components (); i++)
        if (slurm_component_nodes (i))
            layout_each_host (slurm_component_nodes (i), find_taken_node, &t);
    if (t.n > 0)
        count_nodes (h, w, a, w->nlost);
    free (now);
    if (!*t.first || h->verdict.cause == HEAL_LOST)
        return false;
    v->cause = heal_rows[HEAL_LOST].reason;
    v->free = true;
    snprintf (v->why, sizeof (v->why), "Slurm has removed %s from the job", t.first);
    return true;
}

/* ---- check nodes ---- */

/* Find what is bad, for example "n2: GPU 0: ...", in the output of dl check and srun. */
static const char *bad_line (char *text)
{
    static const char mark[] = "check: bad: ";
    char *found = strstr (text, mark);

    found = found ? found + sizeof (mark) - 1 : text;
    found[strcspn (found, "\n")] = '\0';
    return found;
}

/* The node failed its check, so the program is not at fault. */
static void blame_check (struct failure_class *v, const char *name)
{
    size_t n = strlen (v->why);

    v->cause = REASON_CHECK_FAILED;
    v->free = true;
    snprintf (v->why + n, sizeof (v->why) - n, "; %s failed its check", name);
    policy_text (v->why);
}

/* Whether a check runs on another node of the attempt.  If not, Slurm starts no steps at all, for
 * example because slurmctld does not answer, and no node is to blame.
 */
static bool another_answers (struct heal *h, struct worker *w, const char *name)
{
    char *list = h->nodes ? xstrdup (h->nodes) : NULL;
    char *save = NULL, *other = NULL;
    char text[4096];
    int status;

    for (char *node = list ? strtok_r (list, ",", &save) : NULL; node;
         node = strtok_r (NULL, ",", &save))
        if (strcmp (node, name) && (!other || !strcmp (node, w->host)))
            other = node;
    if (h->steps == STEPS_UNKNOWN && other) {
        status = run_check (other, text, sizeof (text));
        h->steps = status == 0 || status == EXIT_BAD_NODE ? STEPS_START : STEPS_FAIL;
    }
    free (list);
    return h->steps != STEPS_FAIL;
}

static void blame_silent (struct heal *h, struct worker *w, const struct trial_attempt *a,
                          const char *name)
{
    if (another_answers (h, w, name)) {
        heal_note (h, a, NULL, "dl check on %s: no answer", name);
        lose_node (h, w, a, name, true);
    } else
        heal_note (h, a, NULL, "dl check on %s: Slurm starts no step, on no other node either",
                   name);
}

/* A bad node can be the reason why a rank dies, hangs or does not even start. */
static void check_node (struct heal *h, struct worker *w, const struct trial_attempt *a,
                        const char *name, const char *after, struct failure_class *v)
{
    char text[4096], why[256];
    int status = run_check (name, text, sizeof (text));

    if (status == 0)
        heal_note (h, a, NULL, "dl check on %s: good", name);
    else if (status == EXIT_BAD_NODE) {
        heal_note (h, a, NULL, "dl check on %s: bad, and it is left out: %.200s", name,
                   bad_line (text));
        snprintf (why, sizeof (why), "it failed its check after %s", after);
        worker_exclude_node (w, name, why);
        if (v)
            blame_check (v, name);
        if (worker_is_excluded (w))
            heal_note (h, a, NULL, "%s", too_few);
    } else
        blame_silent (h, w, a, name);
}

static bool had_rank (const struct heal *h, const char *node)
{
    size_t n;
    const struct heal_seen *ranks = rank_watch_seen (h->watch, &n);

    for (size_t i = 0; i < n; i++)
        if (ranks[i].came && !strcmp (ranks[i].host, node))
            return true;
    return false;
}

/* On nodes without a rank, slurmd is dead, or the allocation has lost the node. */
static void check_missing (struct heal *h, struct worker *w, const struct trial_attempt *a,
                           struct failure_class *verdict)
{
    char *list = h->nodes ? xstrdup (h->nodes) : NULL;
    char *save = NULL;

    for (char *name = list ? strtok_r (list, ",", &save) : NULL; name;
         name = strtok_r (NULL, ",", &save))
        if (!had_rank (h, name))
            check_node (h, w, a, name, "no rank had started there", verdict);
    free (list);
}

void heal_end (struct heal *h, struct worker *w, const struct trial_attempt *a,
               struct failure_class *verdict)
{
    const struct heal_verdict *v = &h->verdict;
    bool taken;

    /* an attempt that seemed to hang at the same place again may just be slower than learned */
    if (v->cause == HEAL_HANG && verdict && !verdict->progress && !verdict->free)
        w->tolerated = v->quiet;
    else if (!verdict || verdict->progress)
        w->tolerated = 0;
    taken = verdict && leave_taken_nodes (h, w, a, verdict);
    if (v->cause == HEAL_LOST)
        lose_node (h, w, a, v->host, false);
    else if (taken)
        ;                                       /* whatever else was seen followed from that */
    else if (v->cause == HEAL_ALONE && verdict) /* without one, the job has ended */
        leave_blameless (h, w, a);
    else if (heal_rows[v->cause].checks && *v->host)
        check_node (h, w, a, v->host, v->cause == HEAL_CUT ? "a rank had died" : "a rank had hung",
                    verdict);
    else if (verdict && h->watch && *v->host == '\0' && v->cause <= HEAL_CUT
             && (w->sweep->exp->resources->nodes > 1 || w->sweep->exp->job->nroles > 0))
        check_missing (h, w, a, verdict);
    rank_watch_destroy (h->watch);
    h->watch = NULL;
    slow_destroy (h->slow);
    h->slow = NULL;
    free (h->nodes);
    h->nodes = NULL;
}
