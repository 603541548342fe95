/* SPDX-License-Identifier: Apache-2.0 */
/* dl stop, pause, resume, kill and rm: change the state of an experiment, or remove it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/start.h"
#include "launcher/code/code.h"
#include "launcher/config/diagnostics.h"
#include "launcher/config/experiment.h"
#include "launcher/config/worker_settings.h"
#include "launcher/progress/progress.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/user.h"
#include "launcher/worker/worker.h"
#include "runtime/base/error.h"

/* ---- pause, stop, kill ---- */

/* Seconds until all workers have read the request and stopped. */
static long long delay_of (const struct sweep *s)
{
    return (long long)(s->exp->worker->heartbeat + s->exp->worker->grace);
}

/* Print that the workers will end on their own. */
static void end_workers_softly (const struct sweep *s, const char *what, const char *how)
{
    struct worker_view v = workers_look (s);

    executor_cancel (s, "--state=PENDING", NULL);
    if (v.alive)
        printf ("%s: %s and end within %lld s; run '%s' to continue\n", s->dir, what, delay_of (s),
                how);
    else
        printf ("%s: %.*s: no worker was running; run '%s' to continue\n", s->dir,
                (int)strcspn (what, ";"), what, how);
    free (v.list);
}

static void finish_pause (const struct sweep *s)
{
    end_workers_softly (s, "paused; its workers save what they have", "dl resume");
}

static void finish_stop (const struct sweep *s)
{
    end_workers_softly (s, "stopped; its trials save a checkpoint", "dl continue");
}

static void finish_kill (const struct sweep *s)
{
    struct slurmdl_error err = { "" };

    if (executor_cancel (s, NULL, &err) < 0)
        complain ("%s: its jobs were not cancelled: %s", s->dir, err.text);
    printf ("%s: killed; running trials end within %lld s\n", s->dir,
            (long long)s->exp->worker->heartbeat + 1);
}

static const struct state_request {
    enum event_op op;
    enum sweep_state state;
    bool ends; /* so it has no effect on an experiment that has ended */
    void (*finish) (const struct sweep *s);
} pause_request = { EVENT_PAUSE, SWEEP_PAUSED, false, finish_pause },
  stop_request = { EVENT_STOP, SWEEP_STOPPED, true, finish_stop },
  kill_request = { EVENT_KILL, SWEEP_KILLED, true, finish_kill };

static bool request_is_allowed (const struct sweep *s, const void *op)
{
    return sweep_allows (s->state, *(const enum event_op *)op);
}

/* Print why the request does not apply to the experiment's current state. */
static int print_why_not (const struct sweep *s, const struct state_request *w)
{
    if (s->state == w->state) {
        printf ("%s is already %s\n", s->dir, sweep_state_name (s->state));
        return EXIT_OK;
    }
    if (w->ends) {
        printf ("%s has already ended (%s)\n", s->dir, sweep_state_name (s->state));
        return EXIT_OK;
    }
    complain ("%s has ended (%s): there is nothing to %s", s->dir, sweep_state_name (s->state),
              event_name (w->op));
    return EXIT_USAGE;
}

static int put_request (struct sweep *s, const struct state_request *w, struct slurmdl_error *err)
{
    return sweep_insist (s, (struct event){ .op = w->op, .by = user_name () }, request_is_allowed,
                         &w->op, err);
}

/* The disk is too full for the request.  Cancel the jobs anyway, so that they release
 * their nodes.
 */
static int cancel_on_full_disk (struct sweep *s, const struct state_request *w, const char *why)
{
    struct slurmdl_error err = { "" };
    int rv = executor_cancel (s, NULL, &err);

    complain ("%s; %s%s: make room, then 'dl %s %s' again", why,
              rv < 0            ? "its jobs were not cancelled: "
              : s->nsubmits > 0 ? "its jobs were cancelled, the request is not in the log"
                                : "the request is not in the log",
              err.text, event_name (w->op), s->word);
    return EXIT_IO;
}

static int grant (struct sweep *s, const struct state_request *w)
{
    struct slurmdl_error err = { "" };
    int rv = put_request (s, w, &err);

    if (rv < 0 && disk_is_full (errno)) {
        char why[sizeof (err.text)];
        snprintf (why, sizeof (why), "%s", err.text);
        error_clear (&err);
        if (disk_reserve_spend (s->dir) < 0
            || ((rv = put_request (s, w, &err)) < 0 && disk_is_full (errno)))
            return cancel_on_full_disk (s, w, why);
    }
    if (rv == 0)
        w->finish (s);
    return rv < 0 ? fail_on (s, &err) : rv == 0 ? EXIT_OK : print_why_not (s, w);
}

static int request_state (const struct command_line *line, const struct state_request *w)
{
    struct sweep *s;
    char why[PATH_MAX + 300];
    int rv = open_experiment (line, line->args[0], &s);

    if (rv)
        return rv;
    rv = grant (s, w);
    /* otherwise a worker sends it, because its user has agreed to run the experiment's
     * commands
     */
    if (rv == EXIT_OK && w->ends && s->state == w->state && trust_check (s, why, sizeof (why)) == 0)
        notify_end (s);
    sweep_close (s);
    return rv;
}

int cmd_pause (const struct command_line *line)
{
    return request_state (line, &pause_request);
}

int cmd_stop (const struct command_line *line)
{
    return request_state (line, &stop_request);
}

int cmd_kill (const struct command_line *line)
{
    return request_state (line, &kill_request);
}

/* Kill an experiment that is about to be removed, and cancel its jobs. */
static int kill_experiment (struct sweep *s)
{
    return sweep_allows (s->state, EVENT_KILL) ? grant (s, &kill_request) : 0;
}

/* ---- resume ---- */

static int print_has_ended (const struct sweep *s)
{
    bool whole =
        s->state == SWEEP_COMPLETED || s->state == SWEEP_FAILED || s->state == SWEEP_PARTIAL;

    complain ("%s %s %s; run 'dl continue%s' to continue", s->dir, whole ? "has" : "was",
              sweep_state_name (s->state), whole ? " --trials N' or 'dl continue --length L" : "");
    return EXIT_USAGE;
}

/* Fill in the events of a resume, which also retry trials that failed with the shared
 * fault.
 */
static size_t fill_resume (const struct sweep *s, const char *code, const char *slots,
                           struct event *events)
{
    char cause[FAULT_KEY];
    char key[FAULT_KEY];
    size_t n = 1;

    events[0] =
        (struct event){ .op = EVENT_RESUME, .by = user_name (), .code = *code ? code : NULL };
    /* workers that have not noticed the pause yet must not run next to the new ones */
    if (*slots)
        events[n++] = (struct event){
            .op = EVENT_SCALE, .by = user_name (), .workers = s->wanted, .slots = slots
        };
    fault_key (cause, s->cause.cause, s->cause.why);
    for (long i = 1; i <= s->ntrials && s->cause.why; i++) {
        const struct sweep_trial *t = sweep_trial (s, i);
        fault_key (key, t->cause, t->why);
        if (t->state == TRIAL_FAILED && !strcmp (key, cause))
            events[n++] = (struct event){ .op = EVENT_RETRY, .by = user_name (), .trial = i };
    }
    return n;
}

/* Return the slots of workers that may be active, as "12_1 12_2".  The caller frees it.
 */
static char *slots_at_work (const struct sweep *s)
{
    struct worker_view v = workers_look (s);
    char *text;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    for (long i = 0; i < v.n; i++)
        if (worker_is_alive (s, &v.list[i]) && !sweep_retires (s, v.list[i].slot))
            fprintf (f, "%s%s", ftell (f) ? " " : "", v.list[i].slot);
    xclose_memstream (f);
    free (v.list);
    return text;
}

/* If several commands resume at once, only one publishes it; the others get
 * PUBLISH_LATE.
 */
static enum published put_resume (struct sweep *s, const char *code, struct slurmdl_error *err)
{
    enum published rv = PUBLISH_LATE;

    while (rv == PUBLISH_LATE && sweep_allows (s->state, EVENT_RESUME)) {
        struct event *events = xcalloc ((size_t)s->ntrials + 2, sizeof (*events));
        char *slots = slots_at_work (s);
        rv = sweep_publish (s, events, fill_resume (s, code, slots, events), err);
        free (events);
        free (slots);
    }
    return rv;
}

/* Checking workers on other hosts takes two heartbeats, so skip it if no worker is seen
 * at all.
 */
static long workers_at_work (const struct sweep *s)
{
    double look = 2 * (double)s->exp->worker->heartbeat;

    return peer_count (s->dir, 0, NULL) <= 0 ? 0 : peer_count (s->dir, look, NULL);
}

/* Start the missing workers.  Prints errors and returns an exit status. */
static int resume_sweep (struct sweep *s, const struct command_line *line)
{
    const struct resume_options *opt = line->options;
    bool was_running = s->state == SWEEP_RUNNING;
    struct slurmdl_error err = { "" };
    char code[DIGEST_SIZE] = "";
    enum published put;
    long workers;
    int rv;

    if (was_running && !opt->start.workers && (workers = workers_at_work (s)) > 0) {
        printf ("%s is running, with %ld worker%s: nothing to resume; 'dl "
                "scale N' changes their number, 'dl wait' waits for the end\n",
                s->dir, workers, workers == 1 ? "" : "s");
        return EXIT_OK;
    }
    if (s->state == SWEEP_PAUSED && (rv = code_mend (s, code)))
        return rv;
    put = was_running ? PUBLISH_DONE : put_resume (s, code, &err);
    if (put == PUBLISH_FAILED)
        return fail_on (s, &err);
    if (put == PUBLISH_LATE && s->state == SWEEP_RUNNING)
        return print_others_start (s);
    if (*code && s->code && !strcmp (s->code, code)) {
        puts ("the code has changed, and there is no result yet: the trials run the current code");
        trust_record (s, NULL);
    }
    /* after a pause, tasks that still run are about to end: see fill_resume() */
    return sweep_has_ended (s) ? print_has_ended (s)
                               : start_missing_workers (s, &opt->start, was_running);
}

/* With --wait, follow workers that other commands started as well, and start new ones when
 * they are gone, until the experiment ends.
 */
static int resume_and_wait (struct sweep *s, const struct command_line *line)
{
    int rv;

    do {
        rv = resume_sweep (s, line);
        if (rv == EXIT_OK && s->state == SWEEP_RUNNING)
            rv = wait_while_at_work (s);
        else if (rv == EXIT_NO_WORKERS)
            break; /* the workers that it started itself have ended without finishing */
    } while (rv == EXIT_NO_WORKERS);
    return rv;
}

int cmd_resume (const struct command_line *line)
{
    const struct resume_options *opt = line->options;
    struct sweep *s;
    int rv = open_to_run (line, opt->trust, line->args[0], &s);

    if (rv)
        return rv;
    if ((rv = change_settings (&s, line, &opt->start)) == 0)
        rv = opt->wait ? resume_and_wait (s, line) : resume_sweep (s, line);
    sweep_close (s);
    return rv;
}

/* ---- removal ---- */

/* It takes two heartbeats to know whether workers on other hosts are alive. */
static int check_workers (const char *dir, double seconds, bool force)
{
    struct slurmdl_error err = { "" };
    long n = force ? 0 : peer_count (dir, seconds, &err);

    if (n == 0 || (n < 0 && errno == ENOENT))
        return EXIT_OK;
    if (n < 0)
        return fail (&err);
    complain ("%s: %ld worker%s running on it; --force removes it anyway", dir, n,
              n == 1 ? " is" : "s are");
    return EXIT_BUSY;
}

static int check_sweep (struct sweep *s, bool force)
{
    if (force) {
        kill_experiment (s);
        return EXIT_OK;
    }
    if (sweep_has_lost_log (s)) {
        complain ("%s/log: missing, although there are trials; --force removes them anyway",
                  s->dir);
        return EXIT_DAMAGED;
    }
    if (!sweep_has_ended (s) && s->state != SWEEP_NEW) {
        complain ("%s is %s: 'dl stop' ends it; --force removes it anyway", s->dir,
                  sweep_state_name (s->state));
        return EXIT_BUSY;
    }
    return check_workers (s->dir, 2 * (double)s->exp->worker->heartbeat, force);
}

static int check_removable (const char *dir, bool force)
{
    struct slurmdl_error err = { "" };
    struct problems p;
    struct sweep *s;
    int rv = EXIT_OK;

    problems_open (&p);
    if ((s = sweep_open (dir, &p, &err))) {
        if ((rv = check_sweep (s, force)) == EXIT_OK)
            record_remove (s);
    } else if (!force) {
        complain ("%s: cannot be read (%s); --force removes it anyway", dir, err.text);
        rv = EXIT_DAMAGED;
    }
    sweep_close (s);
    problems_close (&p);
    free (p.text);
    return rv;
}

/* Require the full name: the newest experiment of a name is too easily the wrong one.
 */
static int find_removed (const struct command_line *line, const char *name, char *dir)
{
    char path[PATH_MAX];
    char found[PATH_MAX + 32];
    struct stat s;
    size_t n;

    if (snprintf (path, sizeof (path), "%s", name) >= (int)sizeof (path)) {
        complain ("rm: %s: the path is too long", name);
        return EXIT_NOT_FOUND;
    }
    for (n = strlen (path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    if (lstat (path, &s) < 0 && !strchr (path, '/'))
        snprintf (path, sizeof (path), "%s/%s", line->dir, name);
    if (lstat (path, &s) < 0) {
        bool meant = experiment_find (line, name, found, PATH_MAX) == 0;
        complain ("rm: no experiment '%s' in %s (its full name is needed%s%s)", name, line->dir,
                  meant ? ": the newest is " : "", meant ? found : "");
        return EXIT_NOT_FOUND;
    }
    if (S_ISLNK (s.st_mode)) {
        complain ("rm: %s is a link; name the experiment's own folder", path);
        return EXIT_USAGE;
    }
    snprintf (found, sizeof (found), "%s/experiment.conf", path);
    if (S_ISDIR (s.st_mode) && access (found, F_OK) == 0 && realpath (path, dir))
        return EXIT_OK;
    complain ("rm: %s is not an experiment", path);
    return EXIT_NOT_FOUND;
}

static int remove_experiment (const struct command_line *line, const char *name)
{
    const struct rm_options *opt = line->options;
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];
    int rv = find_removed (line, name, dir);

    if (rv == EXIT_OK)
        rv = check_removable (dir, opt->force);
    if (rv)
        return rv;
    if (sweep_remove (dir, &err) < 0) {
        complain ("%s", err.text);
        return EXIT_IO;
    }
    store_clean (dir);
    printf ("%s: removed\n", dir);
    return EXIT_OK;
}

/* Remove the others even if one cannot be removed. */
int cmd_rm (const struct command_line *line)
{
    int status = EXIT_OK;

    for (int i = 0; i < line->nargs; i++) {
        int rv = remove_experiment (line, line->args[i]);
        if (status == EXIT_OK)
            status = rv;
    }
    return status;
}
