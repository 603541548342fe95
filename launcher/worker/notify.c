/* SPDX-License-Identifier: Apache-2.0 */
/* Tell somebody of the end of an experiment, of failures, of lines in a log. */
#include "launcher/worker/notify.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/log_policy.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/states.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/say.h"
#include "launcher/sys/subprocess.h"
#include "launcher/worker/webhook.h"
#include "runtime/base/clock.h"

/* ---- send ---- */

struct notice {
    const char *event; /* "end", "failure", "pattern" */
    const char *subject;
    const char *text; /* one line */
    char *json;       /* ASCII, one line */
};

/* A file without a name: a program that does not read it holds nobody up. */
static int input_of (const char *text)
{
    size_t n = strlen (text);
    int fd = memfd_create ("notice", MFD_CLOEXEC);

    if (fd >= 0 && (write (fd, text, n) != (ssize_t)n || lseek (fd, 0, SEEK_SET) < 0)) {
        close (fd);
        fd = -1;
    }
    return fd;
}

static void set_variables (const void *arg)
{
    const struct notice *n = arg;

    setenv ("DL_NOTIFY_EVENT", n->event, 1);
    setenv ("DL_NOTIFY_TEXT", n->text, 1);
}

/* sendmail(8) is often where PATH of a user does not look. */
static void add_sendmail_folders (const void *arg)
{
    const char *path = getenv ("PATH");
    char *longer = NULL;

    set_variables (arg);
    if (asprintf (&longer, "%s:/usr/sbin:/usr/lib", path ? path : "/bin:/usr/bin") > 0)
        setenv ("PATH", longer, 1);
}

/* Its wait status; -1 if it took too long: then all that it started is killed.
 */
static int wait_for_end (pid_t pid, double seconds)
{
    double end = monotonic () + seconds;
    int status = 0;

    while (waitpid (pid, &status, WNOHANG) == 0) {
        if (monotonic () > end) {
            kill (-pid, SIGKILL);
            waitpid (pid, &status, 0);
            return -1;
        }
        usleep (20000);
    }
    return status;
}

/* Returns its exit status, -1 after a line.  'why' gets errno if it could not
 * be run, else 0. */
static int run (const struct experiment *e, const struct notice *n, const char *const *argv,
                void (*prepare) (const void *), const char *input, int *why)
{
    int fd = input_of (input);
    pid_t pid = fd < 0 ? -1
                       : subprocess_spawn (&(struct spawn){ .argv = (char *const *)argv,
                                                            .dir = notice_folder (e),
                                                            .io = { fd, -1, -1 },
                                                            .new_group = true,
                                                            .error = why,
                                                            .prepare = prepare,
                                                            .arg = n });
    int status;

    if (fd >= 0)
        close (fd);
    if (pid < 0) {
        complain ("notify: %s: %s", argv[0], strerror (errno));
        return -1;
    }
    status = wait_for_end (pid, (double)e->notify.timeout);
    if (status == -1)
        complain ("notify: %s: killed after %lld s", argv[0], (long long)e->notify.timeout);
    else if (WIFSIGNALED (status))
        complain ("notify: %s: killed by signal %d", argv[0], WTERMSIG (status));
    return status != -1 && WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void say_status (const char *what, int status)
{
    if (status > 0)
        complain ("notify: %s: exit status %d", what, status);
}

/* What curl writes itself may have the URL. */
static void say_curl (int status)
{
    static const struct {
        int status;
        const char *why;
    } known[] = { { 6, "the host of the webhook is not known" },
                  { 7, "the host of the webhook takes no connection" },
                  { 22, "the webhook is refused by its server" },
                  { 35, "no TLS with the host of the webhook" },
                  { 47, "the webhook has moved: its server names another URL" },
                  { 60, "the host of the webhook has no valid certificate" } };

    for (size_t i = 0; i < sizeof (known) / sizeof (*known); i++)
        if (known[i].status == status) {
            complain ("notify: curl: %s", known[i].why);
            return;
        }
    say_status ("curl", status);
}

static void run_command (const struct experiment *e, const struct notice *n)
{
    const char *argv[] = { "/bin/sh", "-c", e->notify.command, NULL };

    char *line = NULL;
    int status = -1;
    int why = 0;

    if (asprintf (&line, "%s\n", n->json) >= 0)
        status = run (e, n, argv, set_variables, line, &why);
    if (why)
        complain ("notify: cannot run the command: /bin/sh: %s", strerror (why));
    else if (status == 126 || status == 127)
        complain ("notify: the command: exit status %d: a program in it was "
                  "not found, or could not be run",
                  status);
    else
        say_status ("the command", status);
    free (line);
}

static void send_mail (const struct experiment *e, const struct notice *n)
{
    const char *mail[] = { "mail", "-s", n->subject, e->notify.mail, NULL };
    const char *sendmail[] = { "sendmail", "-t", NULL };
    const char *used = "mail";
    char body[2048], whole[4096];
    int status;
    int why = 0;

    /* some mail(1) run commands of lines that begin with "~" */
    snprintf (body, sizeof (body), "dl: %s\n", n->text);
    status = run (e, n, mail, set_variables, body, &why);
    if (why) {
        used = "sendmail";
        snprintf (whole, sizeof (whole),
                  "To: %s\nSubject: %s\nContent-Type: text/plain; "
                  "charset=utf-8\n\n%s",
                  e->notify.mail, n->subject, body);
        status = run (e, n, sendmail, add_sendmail_folders, whole, &why);
    }
    if (why)
        complain ("notify: cannot send mail: neither 'mail' nor 'sendmail' "
                  "could be run (%s)",
                  strerror (why));
    else
        say_status (used, status);
}

static void call_webhook (const struct experiment *e, const struct notice *n)
{
    struct slurmdl_error err = { "" };
    char timeout[32];
    /* without --location a redirection, which tells nobody, is a success */
    const char *argv[] = { "curl",     "--silent",   "--fail", "--location", "--max-redirs",
                           "0",        "--max-time", timeout,  "--proto",    "=http,https",
                           "--config", "-",          NULL };
    char *config = webhook_config (e, n->json, &err);
    int status;
    int why = 0;

    if (!config) {
        complain ("notify: %s", err.text);
        return;
    }
    snprintf (timeout, sizeof (timeout), "%lld", (long long)e->notify.timeout);
    status = run (e, n, argv, set_variables, config, &why);
    if (why)
        complain ("notify: cannot call the webhook: 'curl' could not be run (%s)", strerror (why));
    else
        say_curl (status);
    explicit_bzero (config, strlen (config));
    free (config);
}

/* By each way that the experiment has; what fails is said on standard error. */
static void notice_send (const struct experiment *e, const struct notice *n)
{
    if (e->notify.command)
        run_command (e, n);
    if (e->notify.mail)
        send_mail (e, n);
    if (e->notify.webhook)
        call_webhook (e, n);
}

static bool is_wanted (const struct experiment *e)
{
    return e->notify.command || e->notify.mail || e->notify.webhook;
}

static bool is_on (const struct experiment *e, const char *event)
{
    for (char **on = e->notify.on; on && *on; on++)
        if (!strcmp (*on, event))
            return true;
    return !e->notify.on;
}

/* ---- once ---- */

/* Whether this process is the one that tells it. */
static bool is_first (const struct sweep *s, const char *marker)
{
    struct slurmdl_error err = { "" };
    char path[PATH_MAX];
    int rv;

    snprintf (path, sizeof (path), "%s/notified", s->dir);
    if ((rv = folder_create (path, &err)) == 0) {
        snprintf (path, sizeof (path), "%s/notified/%s", s->dir, marker);
        rv = publish_if_absent (path, "", 0, &err);
    }
    if (rv < 0)
        complain ("nobody is notified: %s", err.text);
    return rv == 0;
}

/* ---- what ---- */

static void best_text (const struct sweep *s, char *buf, size_t size)
{
    char best[256];

    sweep_best_text (s, NULL, best, sizeof (best));
    snprintf (buf, size, "%s%s", *best ? "; best " : "", best);
}

static json_t *best_json (const struct sweep *s)
{
    long trial = sweep_best (s);
    struct sweep_result r = point_result (s, trial_point (s, trial), 0);
    json_t *o = json_pack ("{s:s, s:f, s:I}", "metric", s->exp->metric, "value", r.value, "trial",
                           (json_int_t)trial);

    if (o && s->exp->search.repeats > 1) {
        json_object_set_new (o, "n", json_integer (r.n));
        json_object_set_new (o, "point", json_integer (trial_point (s, trial)));
    }
    return o;
}

static json_t *notice_json (const struct sweep *s, const char *event, const char *text)
{
    json_t *o = json_pack ("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "text", text, "content",
                           text, "event", event, "experiment", sweep_folder_name (s), "folder",
                           s->dir, "state", sweep_state_name (s->state), "trials",
                           (json_int_t)s->ntrials, "failed", (json_int_t)sweep_failed_trials (s));

    if (o && sweep_best (s))
        json_object_set_new (o, "best", best_json (s));
    return o;
}

static void tell (const struct sweep *s, const char *event, const char *marker, const char *what)
{
    char subject[200], best[300], text[1024];
    struct notice n = { .event = event, .subject = subject, .text = text };
    json_t *o;

    if (!is_wanted (s->exp) || !is_first (s, marker))
        return;
    best_text (s, best, sizeof (best));
    snprintf (subject, sizeof (subject), "dl: %s: %s", sweep_folder_name (s), event);
    snprintf (text, sizeof (text), "%s: %s; %ld trials%s", sweep_folder_name (s), what, s->ntrials,
              best);
    /* others may have named the folder: a line break begins a header */
    policy_text (subject);
    policy_text (text);
    if ((o = notice_json (s, event, text)))
        n.json = json_string_of (o, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref (o);
    if (n.json)
        notice_send (s->exp, &n);
    free (n.json);
}

/* ---- when ---- */

/* Entries of the log tell one end from the next one, after dl continue. */
void notify_end (const struct sweep *s)
{
    const char *state = sweep_state_name (s->state);
    bool failed = s->state == SWEEP_FAILED || s->state == SWEEP_PARTIAL;
    bool asked = s->state == SWEEP_STOPPED || s->state == SWEEP_KILLED;
    const char *by = asked && s->last_action.what && !strcmp (s->last_action.what, state)
                         ? s->last_action.by
                         : NULL;
    char marker[64], what[256];

    if (!is_on (s->exp, "end") && !(failed && is_on (s->exp, "failure")))
        return;
    if (asked) /* trials may still be ending */
        snprintf (marker, sizeof (marker), "%s-%.3f", state, s->asked);
    else
        snprintf (marker, sizeof (marker), "end-%ld-%ld", s->ntrials, s->nhistory);
    snprintf (what, sizeof (what), "%s%s%.100s, %ld of its trials failed", state, by ? " by " : "",
              by ? by : "", sweep_failed_trials (s));
    tell (s, failed ? "failure" : "end", marker, what);
}

void notify_fault (const struct sweep *s)
{
    char marker[64], what[600];

    if (!is_on (s->exp, "failure"))
        return;
    snprintf (marker, sizeof (marker), "paused-%ld-%ld", s->cause.trial, s->cause.attempt);
    snprintf (what, sizeof (what), "paused, as all attempts fail in the same way: %.400s",
              s->cause.why ? s->cause.why : "");
    tell (s, "failure", marker, what);
}

static void notify_failed (const struct sweep *s, long trial)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    char what[600];

    if (t->state != TRIAL_FAILED || !is_on (s->exp, "failure"))
        return;
    snprintf (what, sizeof (what), "trial %ld failed: %.400s", trial, t->why ? t->why : "");
    tell (s, "failure", "failed", what);
}

static bool is_told (const struct sweep *s, int pattern)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/notified/pattern-%d", s->dir, pattern + 1);
    return access (path, F_OK) == 0;
}

static void notify_patterns (const struct sweep *s, long trial, long attempt)
{
    char **patterns = s->exp->notify.patterns;
    char path[PATH_MAX], marker[64], what[400];

    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/log", s->dir, trial, attempt);
    for (int i = 0; patterns && patterns[i]; i++) {
        struct log_policy policy = { .pattern = patterns[i] };
        char found[1][POLICY_LINE];
        if (is_told (s, i) || policies_search (&policy, 1, path, found) <= 0)
            continue;
        snprintf (marker, sizeof (marker), "pattern-%d", i + 1);
        snprintf (what, sizeof (what), "trial %ld: %s", trial, found[0]);
        tell (s, "pattern", marker, what);
    }
}

void notify_attempt (const struct sweep *s, long trial, long attempt)
{
    if (!is_wanted (s->exp) || sweep_settle (s, NULL) < 0)
        return;
    notify_failed (s, trial);
    notify_patterns (s, trial, attempt);
}

/* ---- while it runs ---- */

enum { EVERY = 5 /* s */, EFFORT = 20 };

static bool anything_to_tell (const struct sweep *s)
{
    for (int i = 0; s->exp->notify.patterns && s->exp->notify.patterns[i]; i++)
        if (!is_told (s, i))
            return true;
    return false;
}

bool notify_unwatch (struct notify_watch *w)
{
    if (w->child == 0 || waitpid (w->child, NULL, WNOHANG) == 0)
        return w->child != 0;
    w->child = 0;
    w->next = monotonic () + fmax (EVERY, EFFORT * (monotonic () - w->begun));
    return false;
}

/* A long log takes a while, and so may what is told: the worker cannot wait. */
void notify_watch (const struct sweep *s, long trial, long attempt, struct notify_watch *w)
{
    double now = monotonic ();

    if (!s->exp->notify.patterns || !is_wanted (s->exp) || notify_unwatch (w) || now < w->next)
        return;
    w->begun = now;
    w->next = now + EVERY;
    if (!anything_to_tell (s))
        return;
    if ((w->child = subprocess_fork (0)) < 0)
        w->child = 0;
    else if (w->child == 0) {
        notify_patterns (s, trial, attempt);
        _exit (0);
    }
}
