/* SPDX-License-Identifier: Apache-2.0 */
/* dl continue, dl retry: continue an experiment or a trial that has ended. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/start.h"
#include "launcher/config/diagnostics.h"
#include "launcher/config/experiment.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/user.h"

/* ---- never publish what the searcher cannot do ---- */

static bool sweep_has_work (const struct sweep *s)
{
    double *x = xcalloc (s->exp->space->nparams + 1, sizeof (*x));
    struct search_op op;
    bool has = searcher_ask (s->searcher, &op, x) != SEARCH_DONE;

    for (long i = 0; i < s->ntrials; i++)
        has = has || s->trials[i].state == TRIAL_OPEN;
    free (x);
    return has;
}

/* Whether replay accepted the event instead of ignoring it. */
static bool took_effect (const struct sweep *s, const struct event *e)
{
    return e->op == EVENT_RETRY ? sweep_trial (s, (long)e->trial)->state == TRIAL_OPEN
                                : s->state == SWEEP_RUNNING;
}

enum rehearsal { REHEARSED, NO_WORK, NOT_SUPPORTED };

/* Apply the events to a copy of the sweep.  NO_WORK: nothing would be left to do. */
static enum rehearsal rehearse (const struct sweep *s, const struct event *events, size_t n,
                                struct slurmdl_error *err)
{
    struct sweep *copy = NULL;
    struct problems p;
    enum rehearsal r = NOT_SUPPORTED;

    problems_open (&p);
    if ((copy = sweep_open (s->dir, &p, err)))
        r = REHEARSED;
    for (size_t i = 0; i < n && r == REHEARSED; i++)
        if (sweep_apply (&events[i], copy, err) != 0 || !took_effect (copy, &events[i]))
            r = NOT_SUPPORTED;
    if (r == REHEARSED && !sweep_has_work (copy))
        r = NO_WORK;
    sweep_close (copy);
    problems_close (&p);
    free (p.text);
    return r;
}

/* The unit that --trials counts: with repeats, a point counts once. */
static long points_of (const struct sweep *s)
{
    long repeats = s->exp->search->config.repeats;

    return (s->ntrials + repeats - 1) / repeats;
}

static int complain_no_work (const struct sweep *s, const struct continue_options *opt)
{
    const struct search_config *c = &s->exp->search->config;

    if (opt && (opt->trials || opt->length))
        complain ("%s: there is no work to continue: the searcher supports no more trials", s->dir);
    else
        complain ("%s has %s: nothing is left to do; to continue, give --trials N (now %ld) or "
                  "--length L (now %lld)",
                  s->dir, sweep_state_name (s->state), points_of (s), (long long)c->max_length);
    return EXIT_USAGE;
}

/* Publish the events as one entry if they still make sense.  Returns an exit status, or
 * -1 if another command published an entry first.  'opt' is NULL for dl retry.
 */
static int put_rehearsed (struct sweep *s, struct event *events, size_t n,
                          const struct continue_options *opt)
{
    struct slurmdl_error err = { "" };

    switch (rehearse (s, events, n, &err)) {
    case NOT_SUPPORTED:
        complain ("%s: the searcher %s does not support this%s%s", s->dir, s->exp->search->searcher,
                  *err.text ? ": " : "", err.text);
        return EXIT_USAGE;
    case NO_WORK:
        return complain_no_work (s, opt);
    case REHEARSED:
        break;
    }
    switch (sweep_publish (s, events, n, &err)) {
    case PUBLISH_FAILED:
        return fail_on (s, &err);
    case PUBLISH_LATE:
        return -1;
    case PUBLISH_DONE:
        break;
    }
    return EXIT_OK;
}

/* ---- continue ---- */

/* Return EXIT_OK if the experiment can be continued, or another status after printing why
 * not.
 */
static int check_continue (const struct sweep *s, const struct continue_options *opt)
{
    const struct search_config *c = &s->exp->search->config;

    if (!sweep_has_ended (s))
        complain ("%s is %s: only an experiment that has ended can be continued; 'dl resume' "
                  "starts workers",
                  s->dir, sweep_state_name (s->state));
    else if (opt->trials && !(experiment_needs (s->exp) & (NEED_MAX_TRIALS | CAN_MAX_TRIALS)))
        complain ("%s: --trials: the searcher %s sets the number of trials itself", s->dir,
                  s->exp->search->searcher);
    else if (opt->trials && (long)opt->trials < points_of (s))
        complain ("%s: --trials %ld: there are %ld already", s->dir, (long)opt->trials,
                  points_of (s));
    else if (opt->length && opt->length < c->max_length)
        complain ("%s: --length %lld: it is %lld already, and can only grow", s->dir,
                  (long long)opt->length, (long long)c->max_length);
    else if (sweep_is_late (s))
        complain ("%s: searcher.max_hours (%g) have passed: run 'dl continue --set "
                  "searcher.max_hours=HOURS %s' to continue with more",
                  s->dir, s->exp->search->max_hours, s->word);
    else if (s->searcher && searcher_is_spent (s->searcher))
        complain ("%s: searcher.max_gpu_hours (%g) is used up: run 'dl continue --set "
                  "searcher.max_gpu_hours=HOURS %s' to continue with more",
                  s->dir, s->exp->search->max_gpu_hours, s->word);
    else
        return EXIT_OK;
    return EXIT_USAGE;
}

/* Whether another command has just continued the experiment in the same way. */
static bool others_continue (const struct sweep *s, const struct continue_options *opt)
{
    const struct search_config *c = &s->exp->search->config;

    return s->state == SWEEP_RUNNING && !opt->start.workers && s->last_action.what
           && !strcmp (s->last_action.what, "continued")
           && (!opt->trials || (long)opt->trials == c->max_trials)
           && (!opt->length || opt->length == c->max_length) && peer_count (s->dir, 0, NULL) > 0;
}

static int print_is_running (const struct sweep *s, const struct continue_options *opt)
{
    if (opt->start.detach)
        puts (s->dir);
    else
        printf ("%s is already running; 'dl wait' waits for the end\n", s->dir);
    return EXIT_OK;
}

/* A trial continues from its last accepted attempt.  If that attempt's directory is
 * missing, it starts from an older checkpoint or from scratch.
 */
static void complain_missing_attempts (const struct sweep *s)
{
    char dir[PATH_MAX], first[PATH_MAX];
    long missing = 0;

    for (long n = 1; n <= s->ntrials; n++) {
        long attempt = trial_last (sweep_trial (s, n)).attempt;
        if (attempt && attempt_is_missing (s, n, attempt, dir, sizeof (dir)) && missing++ == 0)
            snprintf (first, sizeof (first), "%s", dir);
    }
    if (missing)
        complain ("%s: missing, although the result of this attempt was accepted (%ld trial%s so): "
                  "a trial that continues starts from the newest checkpoint left, or from scratch",
                  first, missing, missing == 1 ? " is" : "s are");
}

static int continue_sweep (struct sweep *s, const struct continue_options *opt)
{
    struct event event = { .op = EVENT_CONTINUE,
                           .by = user_name (),
                           .max_trials = opt->trials,
                           .max_length = opt->length };
    int rv = -1;

    while (rv == -1) {
        if (others_continue (s, opt))
            return print_is_running (s, opt);
        if ((rv = check_continue (s, opt)) || (rv = code_prepare (s)))
            return rv;
        rv = put_rehearsed (s, &event, 1, opt);
    }
    if (rv)
        return rv;
    complain_missing_attempts (s);
    printf ("%s: continues\n", s->dir);
    fflush (stdout);
    return start_missing_workers (s, &opt->start, false);
}

int cmd_continue (const struct command_line *line)
{
    const struct continue_options *opt = line->options;
    struct sweep *s;
    int rv = open_to_run (line, opt->trust, line->args[0], &s);

    if (rv)
        return rv;
    if ((rv = change_settings (&s, line, &opt->start)) == 0)
        rv = continue_sweep (s, opt);
    sweep_close (s);
    return rv;
}

/* ---- retry ---- */

static bool text_is_number (const char *text)
{
    return *text && text[strspn (text, "0123456789")] == '\0';
}

/* Append the event for one trial if the trial has failed. */
static int add_retry (const struct sweep *s, const char *arg, struct event *e, size_t *n)
{
    const struct sweep_trial *t;
    long trial;
    int rv = parse_trial (s, arg, &trial);

    if (rv)
        return rv;
    t = sweep_trial (s, trial);
    if (t->state != TRIAL_FAILED) {
        complain ("%s: trial %ld has not failed: it is %s", s->dir, trial, trial_state_name (s, t));
        return EXIT_USAGE;
    }
    e[(*n)++] = (struct event){ .op = EVENT_RETRY, .by = user_name (), .trial = trial };
    return EXIT_OK;
}

/* Fill in the events that reopen the named trials, or all failed ones. */
static int fill_retries (const struct sweep *s, char **names, struct event *e, size_t *n)
{
    int rv = EXIT_OK;
    char name[32];

    *n = 0;
    if (sweep_has_ended (s))
        e[(*n)++] = (struct event){ .op = EVENT_CONTINUE, .by = user_name () };
    for (char **arg = names; *arg && rv == EXIT_OK; arg++)
        rv = add_retry (s, *arg, e, n);
    for (long i = 1; i <= s->ntrials && !*names; i++)
        if (sweep_trial (s, i)->state == TRIAL_FAILED) {
            snprintf (name, sizeof (name), "%ld", i);
            add_retry (s, name, e, n);
        }
    return rv;
}

/* Running workers will train the reopened trials.  If there are none, start some. */
static int go_on_with (struct sweep *s, const struct start_options *opt)
{
    struct slurmdl_error err = { "" };
    long workers;

    if (s->state == SWEEP_PAUSED) {
        printf ("%s is paused; run 'dl resume' to continue\n", s->dir);
        return EXIT_OK;
    }
    if ((workers = peer_count (s->dir, 0, &err)) < 0)
        return fail_on (s, &err);
    if (workers == 0)
        return start_missing_workers (s, opt, true);
    printf ("%s: %ld workers will train them; if there are none, use 'dl resume'\n", s->dir,
            workers);
    return EXIT_OK;
}

static int retry_trials (struct sweep *s, char **names, const struct start_options *opt)
{
    struct event *events = NULL;
    long retries;
    size_t n;
    int rv = -1;

    while (rv == -1) {
        size_t capacity = (size_t)s->ntrials + 2;
        for (char **arg = names; *arg; arg++)
            capacity++;
        free (events);
        events = xcalloc (capacity, sizeof (*events));
        if ((rv = fill_retries (s, names, events, &n)))
            break;
        retries = (long)n - sweep_has_ended (s);
        if (retries == 0) {
            printf ("%s: no trial has failed\n", s->dir);
            break;
        }
        if ((rv = put_rehearsed (s, events, n, NULL)) == EXIT_OK) {
            printf ("%s: %ld trial%s retried\n", s->dir, retries, retries == 1 ? " is" : "s are");
            fflush (stdout);
            rv = go_on_with (s, opt);
            break;
        }
    }
    free (events);
    return rv;
}

/* An argument that is a number names a trial, so the experiment may be omitted. */
int cmd_retry (const struct command_line *line)
{
    const struct retry_options *opt = line->options;
    bool named = line->nargs > 0 && !text_is_number (line->args[0]);
    struct sweep *s;
    int rv = open_to_run (line, opt->trust, named ? line->args[0] : NULL, &s);

    if (rv)
        return rv;
    if ((rv = change_settings (&s, line, &opt->start)) == 0)
        rv = retry_trials (s, line->args + named, &opt->start);
    sweep_close (s);
    return rv;
}
