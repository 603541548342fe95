/* SPDX-License-Identifier: Apache-2.0 */
/* The searcher "custom": a program of the user's chooses the points. */
#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/worker/worker_private.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/config/hparams.h"
#include "launcher/config/points.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

/* The program's standard input and output are one socket, over which dl, as the asking side, speaks
 * the protocol of dl-search-server(1).  A worker that starts the program sends it everything that
 * is in the log, in that order, so the program needs no memory of its own.
 */
enum { TIMEOUT = 600, ANSWER_MAX = 1 << 20, QUIT_WAIT = 1000 };

struct custom_searcher {
    pid_t pid; /* also the process group; 0: reaped */
    int fd;
    long reported; /* entries of the sweep's history */
    size_t fill;
    char answer[ANSWER_MAX];
};

/* Report an error of the user's program.  Returns -1. */
static int blame_program (struct slurmdl_error *err, const char *what, const char *more)
{
    errno = EINVAL;
    return errorf (err, "searcher.command: %s%s", what, more);
}

/* ---- messages to the program ---- */

static json_t *header_json (const struct experiment *e)
{
    return json_pack ("{s:o, s:s, s:s*, s:s, s:I, s:I, s:I, s:b}", "space", space_json (e),
                      "metric", e->metric->name, "constraint", e->search->constraint, "direction",
                      e->search->config.smaller_is_better ? "minimize" : "maximize", "seed",
                      (json_int_t)e->search->seed, "budget",
                      (json_int_t)(e->search->config.max_trials * e->search->config.repeats),
                      "workers", (json_int_t)e->resources->workers, "confirm", 1);
}

static json_t *begin_json (const struct sweep *s, long trial)
{
    const struct experiment *e = s->exp;
    const json_t *hparams = trial_hparams (s, sweep_trial (s, trial));
    json_t *params = json_object ();

    for (size_t i = 0; i < e->space->nhparams; i++) {
        const json_t *v = hparams_value (hparams, e->space->hparams[i].path);
        if (v && e->space->hparams[i].dim >= 0)
            json_object_set (params, e->space->hparams[i].path, (json_t *)v);
    }
    return json_pack ("{s:s, s:I, s:o}", "op", "begin", "id", (json_int_t)trial - 1, "params",
                      params);
}

static json_t *tell_json (const struct sweep *s, long trial)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    bool good = t->state == TRIAL_PAUSED && isfinite (t->metric);

    return json_pack ("{s:s, s:I, s:o}", "op", "tell", "id", (json_int_t)trial - 1, "value",
                      good ? json_real (t->metric) : json_null ());
}

static void write_line (FILE *f, json_t *o)
{
    json_dumpf (o, f, JSON_COMPACT);
    fputc ('\n', f);
    json_decref (o);
}

/* Return everything that the program does not know yet, followed by the request. */
static char *make_lines (struct custom_searcher *c, const struct sweep *s, bool fresh, size_t *size)
{
    char *text = NULL;
    FILE *f = xopen_memstream (&text, size);

    if (fresh)
        write_line (f, header_json (s->exp));
    for (; c->reported < s->nhistory; c->reported++) {
        long what = s->history[c->reported];
        write_line (f, what > 0 ? begin_json (s, what) : tell_json (s, -what));
    }
    write_line (f, json_pack ("{s:s}", "op", "ask"));
    xclose_memstream (f);
    return text;
}

/* ---- the process ---- */

static int start_program (struct worker *w, struct slurmdl_error *err)
{
    const struct experiment *e = w->sweep->exp;
    char *argv[] = { (char *)"sh", (char *)"-c", e->search->command, NULL };
    struct custom_searcher *c = xcalloc (1, sizeof (*c));
    int ends[2] = { -1, -1 };

    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0
        || (c->pid = subprocess_spawn (&(struct spawn){ .argv = argv,
                                                        .dir = e->dir,
                                                        .io = { ends[1], ends[1], 2 },
                                                        .new_group = true,
                                                        .death_signal = SIGKILL }))
               < 0) {
        free (c);
        close (ends[0]);
        close (ends[1]);
        return errorf (err, "cannot start searcher.command: %s", strerror (errno));
    }
    close (ends[1]);
    c->fd = ends[0];
    w->custom = c;
    return 0;
}

static void end_program (struct worker *w)
{
    struct custom_searcher *c = w->custom;

    if (c->pid > 0) {
        kill (-c->pid, SIGKILL);
        waitpid (c->pid, NULL, 0);
    }
    close (c->fd);
    free (c);
    w->custom = NULL;
}

void custom_close (struct worker *w)
{
    static const char quit[] = "{\"op\":\"quit\"}\n";
    struct pollfd p = { .events = POLLIN };

    if (!w->custom)
        return;
    p.fd = w->custom->fd;
    if (send (p.fd, quit, sizeof (quit) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
        shutdown (p.fd, SHUT_WR);
        poll (&p, 1, QUIT_WAIT); /* the socket closes when the program exits */
    }
    end_program (w);
}

/* ---- requests and answers ---- */

static double answer_time_limit (void)
{
    const char *text = getenv ("DL_COMMAND_TIMEOUT");
    double seconds = text ? atof (text) : 0;

    return seconds > 0 ? seconds : TIMEOUT;
}

/* The program closed its output, probably because it died. */
static int report_death (struct worker *w, struct slurmdl_error *err)
{
    struct custom_searcher *c = w->custom;
    char how[64] = "closed its output";
    int status;
    pid_t pid = 0;

    /* the socket closes a moment before the program can be reaped */
    for (int i = 0; i < 50 && pid == 0; i++) {
        usleep (20000);
        pid = waitpid (c->pid, &status, WNOHANG);
    }
    if (pid == c->pid) {
        kill (-c->pid, SIGKILL); /* its children */
        c->pid = 0;
        if (WIFSIGNALED (status))
            snprintf (how, sizeof (how), "killed by signal %d", WTERMSIG (status));
        else
            snprintf (how, sizeof (how), "exit status %d", WEXITSTATUS (status));
    }
    return blame_program (err, "it ended before it answered: ", how);
}

/* The state of the program's answer. */
enum answer_line {
    LINE_FAILED = -1,
    LINE_PARTIAL, /* more follows, unless the worker was asked to stop */
    LINE_WHOLE,
};

static enum answer_line receive_line (struct worker *w, struct slurmdl_error *err)
{
    struct custom_searcher *c = w->custom;
    ssize_t n = recv (c->fd, c->answer + c->fill, ANSWER_MAX - 1 - c->fill, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return LINE_PARTIAL;
    if (n <= 0) {
        report_death (w, err);
        return LINE_FAILED;
    }
    c->fill += (size_t)n;
    c->answer[c->fill] = '\0';
    if (strchr (c->answer, '\n'))
        return LINE_WHOLE;
    if (c->fill < ANSWER_MAX - 1)
        return LINE_PARTIAL;
    blame_program (err, "its answer is too long", "");
    return LINE_FAILED;
}

static int transmit (struct worker *w, const char *text, size_t size, size_t *sent)
{
    ssize_t n = send (w->custom->fd, text + *sent, size - *sent, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n > 0)
        *sent += (size_t)n;
    return n < 0 && errno != EAGAIN && errno != EINTR ? -1 : 0;
}

static enum answer_line exchange_lines (struct worker *w, const char *text, size_t size,
                                        struct slurmdl_error *err)
{
    double deadline = monotonic () + answer_time_limit ();
    size_t sent = 0;
    enum answer_line line = LINE_PARTIAL;

    while (line == LINE_PARTIAL && !w->stop && w->sweep->state == SWEEP_RUNNING) {
        struct pollfd p[2] = {
            { .fd = w->custom->fd, .events = sent < size ? POLLIN | POLLOUT : POLLIN },
            { .fd = w->signals, .events = POLLIN },
        };
        if (monotonic () > deadline) {
            blame_program (err, "it gave no answer in time", "");
            return LINE_FAILED;
        }
        poll (p, 2, 1000);
        while (p[1].revents && worker_signal (w))
            ;
        if (p[0].revents & POLLOUT && transmit (w, text, size, &sent) < 0) {
            report_death (w, err);
            return LINE_FAILED;
        }
        if (p[0].revents & (POLLIN | POLLHUP))
            line = receive_line (w, err);
        if (line == LINE_PARTIAL && worker_tick (w, err) < 0)
            line = LINE_FAILED;
    }
    return line;
}

/* ---- the answer ---- */

static int read_param_value (const struct experiment *e, const json_t *params,
                             const struct hparam *h, double *x, struct slurmdl_error *err)
{
    const json_t *v = json_object_get (params, h->path);

    x[h->dim] = NAN;
    if (!v || json_is_null (v) || json_value (e, h, v, &x[h->dim]) == 0)
        return 0;
    return blame_program (err, "its point is outside the space: ", h->path);
}

/* Ignore values for parameters that are not active. */
static int mask_inactive (const struct experiment *e, double *x, struct slurmdl_error *err)
{
    for (size_t i = 0; i < e->space->nparams; i++) {
        if (!point_active (e, i, x))
            x[i] = NAN;
        else if (isnan (x[i]))
            return blame_program (err, "its point has no value for ", e->space->params[i].name);
    }
    return 0;
}

static int check_param_names (const struct experiment *e, json_t *params, struct slurmdl_error *err)
{
    const char *name;
    json_t *v;

    json_object_foreach (params, name, v) {
        const struct hparam *h = hparam_find (e, name);
        if (!h || h->dim < 0)
            return blame_program (err, "its point has a value for unknown ", name);
    }
    return 0;
}

static int read_program_point (const struct experiment *e, json_t *params, double *x,
                               struct slurmdl_error *err)
{
    struct search_config config = e->search->config;
    const char *why;

    if (check_param_names (e, params, err) < 0)
        return -1;
    for (size_t i = 0; i < e->space->nhparams; i++)
        if (e->space->hparams[i].dim >= 0
            && read_param_value (e, params, &e->space->hparams[i], x, err) < 0)
            return -1;
    if (mask_inactive (e, x, err) < 0)
        return -1;
    config.points = x;
    config.npoints = 1;
    config.nknown = 0;
    if ((why = searcher_check (&config, e->space->params, e->space->nparams, NULL)))
        return blame_program (err, "its point does not fit: ", why);
    return 0;
}

static bool none_open (const struct sweep *s)
{
    for (long i = 0; i < s->ntrials; i++)
        if (s->trials[i].state == TRIAL_OPEN)
            return false;
    return true;
}

static int read_program_answer (struct worker *w, double *x, enum search_answer *answer,
                                struct slurmdl_error *err)
{
    struct custom_searcher *c = w->custom;
    char *stop = strchr (c->answer, '\n');
    json_t *o, *params;
    int rv = 0;

    *answer = SEARCH_WAIT;
    *stop = '\0';
    o = json_loads (c->answer, 0, NULL);
    params = json_object_get (o, "params");
    if (json_is_true (json_object_get (o, "done")))
        *answer = none_open (w->sweep) ? SEARCH_DONE : SEARCH_WAIT;
    else if (json_is_object (params) && !json_is_true (json_object_get (o, "wait"))) {
        *answer = SEARCH_RUN;
        rv = read_program_point (w->sweep->exp, params, x, err);
    } else if (!json_is_true (json_object_get (o, "wait")))
        rv = blame_program (err, "invalid answer: ", c->answer);
    json_decref (o);
    c->fill -= (size_t)(stop + 1 - c->answer);
    memmove (c->answer, stop + 1, c->fill + 1);
    return rv;
}

int custom_ask (struct worker *w, double *x, enum search_answer *answer, struct slurmdl_error *err)
{
    bool fresh = !w->custom;
    char *text;
    size_t size;
    enum answer_line line;
    int e;

    *answer = SEARCH_WAIT;
    if (fresh && start_program (w, err) < 0)
        return -1;
    text = make_lines (w->custom, w->sweep, fresh, &size);
    line = exchange_lines (w, text, size, err);
    free (text);
    if (line == LINE_WHOLE)
        return read_program_answer (w, x, answer, err);
    /* do not take a late answer for the answer to the next request */
    e = errno;
    end_program (w);
    errno = e;
    return line == LINE_FAILED ? -1 : 0;
}

static bool same_point (const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] && !(isnan (a[i]) && isnan (b[i])))
            return false;
    return true;
}

bool custom_is_taken (const struct worker *w, const double *x)
{
    const struct sweep *s = w->sweep;

    for (long i = w->custom->reported; i < s->nhistory; i++)
        if (s->history[i] > 0
            && same_point (sweep_trial (s, s->history[i])->x, x, s->exp->space->nparams))
            return true;
    return false;
}
