/* SPDX-License-Identifier: Apache-2.0 */
/* Notify the user: an experiment ended, trials failed, a log line matched. */
#include "launcher/worker/worker.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/log_policy.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/notify_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

/* ---- the URL of a webhook ---- */

enum { URL_MAX = 4096 };

/* The folder of the experiment file, even if trials run in a frozen copy of it. */
static const char *notification_folder (const struct experiment *e)
{
    return e->file_dir ? e->file_dir : e->dir;
}

/* Check owner and mode of the open file, not of the path, which may change meanwhile. */
static int read_url_file (const char *path, char url[URL_MAX], struct slurmdl_error *err)
{
    struct stat st;
    int fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n =
        fd < 0 || fstat (fd, &st) < 0 || !S_ISREG (st.st_mode) ? -1 : read (fd, url, URL_MAX - 1);

    inside_close (fd, 0);
    if (n < 0)
        return errorf (err, "'notify.webhook': %s: %s", path,
                       fd < 0 ? strerror (errno) : "cannot be read as a file");
    url[n] = '\0';
    if ((st.st_uid == geteuid () || st.st_uid == 0) && !(st.st_mode & 077))
        return 0;
    errno = EPERM;
    return errorf (err,
                   "'notify.webhook': %s: others may read or change it: "
                   "it must be your own, of mode 0600",
                   path);
}

static int find_webhook_url (const struct experiment *e, char url[URL_MAX],
                             struct slurmdl_error *err)
{
    const char *where = e->notify->webhook;
    const char *value = *where == '$' ? getenv (where + 1) : NULL;
    char path[PATH_MAX];

    if (*where == '$') {
        snprintf (url, URL_MAX, "%s", value ? value : "");
        errno = ENOENT;
        return value ? 0 : errorf (err, "'notify.webhook': the variable %s is not set", where + 1);
    }
    path_from (path, notification_folder (e), where);
    return read_url_file (path, url, err);
}

/* Accept one line that needs no quotes. */
static int check_webhook_url (char *url, struct slurmdl_error *err)
{
    url[strcspn (url, "\r\n")] = '\0';
    for (const char *c = url; *c; c++)
        if (!isgraph ((unsigned char)*c) || strchr ("\"\\", *c))
            *url = '\0';
    if (!strncmp (url, "https://", 8) || !strncmp (url, "http://", 7))
        return 0;
    errno = EINVAL;
    return errorf (
        err, "'notify.webhook': its first line must be a URL that starts with https:// or http://");
}

static void put_curl_quoted (FILE *f, const char *text)
{
    fputc ('"', f);
    for (; *text; text++) {
        if (strchr ("\"\\", *text))
            fputc ('\\', f);
        fputc (*text, f);
    }
    fputs ("\"\n", f);
}

/* curl's configuration to post 'json' to the URL that notify.webhook names.  The URL is a secret,
 * and every user of the machine can read arguments.  The caller frees the text.  NULL with 'err',
 * which never contains the URL.
 */
static char *webhook_config (const struct experiment *e, const char *json,
                             struct slurmdl_error *err)
{
    char url[URL_MAX];
    char *text = NULL;
    size_t size = 0;
    FILE *f;

    if (find_webhook_url (e, url, err) < 0 || check_webhook_url (url, err) < 0)
        return NULL;
    f = xopen_memstream (&text, &size);
    fputs ("url = ", f);
    put_curl_quoted (f, url);
    fputs ("header = \"Content-Type: application/json\"\ndata-raw = ", f);
    put_curl_quoted (f, json);
    xclose_memstream (f);
    explicit_bzero (url, sizeof (url));
    return text;
}

int webhook_check (const struct experiment *e, struct slurmdl_error *err)
{
    char url[URL_MAX];

    return e->notify->webhook
                   && (find_webhook_url (e, url, err) < 0 || check_webhook_url (url, err) < 0)
               ? -1
               : 0;
}

/* ---- sending ---- */

struct notification {
    const char *event; /* "end", "failure", "pattern" */
    const char *subject;
    const char *text; /* one line */
    char *json;       /* ASCII, one line */
};

/* A file rather than a pipe: a program that does not read its input must not block us. */
static int notification_input (const char *text)
{
    size_t n = strlen (text);
    int fd = memfd_create ("notification", MFD_CLOEXEC);

    if (fd >= 0 && (write (fd, text, n) != (ssize_t)n || lseek (fd, 0, SEEK_SET) < 0)) {
        close (fd);
        fd = -1;
    }
    return fd;
}

static void set_notification_variables (const void *arg)
{
    const struct notification *n = arg;

    setenv ("DL_NOTIFY_EVENT", n->event, 1);
    setenv ("DL_NOTIFY_TEXT", n->text, 1);
}

/* sendmail(8) is often in a directory that is not in a user's PATH. */
static void add_sendmail_folders (const void *arg)
{
    const char *path = getenv ("PATH");
    char *longer;

    set_notification_variables (arg);
    longer = xasprintf ("%s:/usr/sbin:/usr/lib", path ? path : "/bin:/usr/bin");
    setenv ("PATH", longer, 1);
    free (longer);
}

/* Returns the wait status, or -1 after killing the process group because it took too long. */
static int wait_for_notifier (pid_t pid, double seconds)
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

/* Returns the exit status, or -1 after reporting why there is none.  'why' gets the errno of a
 * failed exec, else 0.
 */
static int run_notifier (const struct experiment *e, const struct notification *n,
                         const char *const *argv, void (*prepare) (const void *), const char *input,
                         int *why)
{
    int fd = notification_input (input);
    pid_t pid = fd < 0 ? -1
                       : subprocess_spawn (&(struct spawn){ .argv = (char *const *)argv,
                                                            .dir = notification_folder (e),
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
    status = wait_for_notifier (pid, (double)e->notify->timeout);
    if (status == -1)
        complain ("notify: %s: killed after %lld s", argv[0], (long long)e->notify->timeout);
    else if (WIFSIGNALED (status))
        complain ("notify: %s: killed by signal %d", argv[0], WTERMSIG (status));
    return status != -1 && WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void complain_of_status (const char *what, int status)
{
    if (status > 0)
        complain ("notify: %s: exit status %d", what, status);
}

/* curl's own messages may contain the URL. */
static void complain_of_curl (int status)
{
    static const struct {
        int status;
        const char *why;
    } known[] = { { 6, "the webhook's host is unknown" },
                  { 7, "the webhook's host refuses the connection" },
                  { 22, "the server rejects the webhook" },
                  { 35, "TLS with the webhook's host failed" },
                  { 47, "the webhook has moved to another URL" },
                  { 60, "the webhook's host has no valid certificate" } };

    for (size_t i = 0; i < sizeof (known) / sizeof (*known); i++)
        if (known[i].status == status) {
            complain ("notify: curl: %s", known[i].why);
            return;
        }
    complain_of_status ("curl", status);
}

static void run_notify_command (const struct experiment *e, const struct notification *n)
{
    const char *argv[] = { "/bin/sh", "-c", e->notify->command, NULL };

    char *line = xasprintf ("%s\n", n->json);
    int why = 0;
    int status = run_notifier (e, n, argv, set_notification_variables, line, &why);
    if (why)
        complain ("notify: cannot run the command: /bin/sh: %s", strerror (why));
    else if (status == 126 || status == 127)
        complain ("notify: the command: exit status %d: a program in it was "
                  "not found, or could not be run",
                  status);
    else
        complain_of_status ("the command", status);
    free (line);
}

static void send_mail (const struct experiment *e, const struct notification *n)
{
    const char *mail[] = { "mail", "-s", n->subject, e->notify->mail, NULL };
    const char *sendmail[] = { "sendmail", "-t", NULL };
    const char *used = "mail";
    char body[2048], whole[4096];
    int status;
    int why = 0;

    /* some versions of mail(1) run commands in lines that begin with "~" */
    snprintf (body, sizeof (body), "dl: %s\n", n->text);
    status = run_notifier (e, n, mail, set_notification_variables, body, &why);
    if (why) {
        used = "sendmail";
        snprintf (whole, sizeof (whole),
                  "To: %s\nSubject: %s\nContent-Type: text/plain; charset=utf-8\n\n%s",
                  e->notify->mail, n->subject, body);
        status = run_notifier (e, n, sendmail, add_sendmail_folders, whole, &why);
    }
    if (why)
        complain ("notify: cannot send mail: neither 'mail' nor 'sendmail' could be run (%s)",
                  strerror (why));
    else
        complain_of_status (used, status);
}

static void call_webhook (const struct experiment *e, const struct notification *n)
{
    struct slurmdl_error err = { "" };
    char timeout[32];
    /* without --location, curl reports success for a redirection although nobody got the
     * notification */
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
    snprintf (timeout, sizeof (timeout), "%lld", (long long)e->notify->timeout);
    status = run_notifier (e, n, argv, set_notification_variables, config, &why);
    if (why)
        complain ("notify: cannot call the webhook: 'curl' could not be run (%s)", strerror (why));
    else
        complain_of_curl (status);
    explicit_bzero (config, strlen (config));
    free (config);
}

/* Send it in each configured way.  Failures are reported on standard error only. */
static void send_notification (const struct experiment *e, const struct notification *n)
{
    if (e->notify->command)
        run_notify_command (e, n);
    if (e->notify->mail)
        send_mail (e, n);
    if (e->notify->webhook)
        call_webhook (e, n);
}

static bool notify_is_wanted (const struct experiment *e)
{
    return e->notify->command || e->notify->mail || e->notify->webhook;
}

static bool event_is_on (const struct experiment *e, const char *event)
{
    for (char **on = e->notify->on; on && *on; on++)
        if (!strcmp (*on, event))
            return true;
    return !e->notify->on;
}

/* ---- each notification once ---- */

/* Whether this process created the marker first, and so sends the notification. */
static bool claim_notification (const struct sweep *s, const char *marker)
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

/* ---- the text ---- */

static void notification_best_text (const struct sweep *s, char *buf, size_t size)
{
    char best[256];

    sweep_best_text (s, NULL, best, sizeof (best));
    snprintf (buf, size, "%s%s", *best ? "; best " : "", best);
}

static json_t *notification_best_json (const struct sweep *s)
{
    long trial = sweep_best (s);
    struct sweep_result r = point_result (s, trial_point (s, trial), 0);
    json_t *o = json_pack ("{s:s, s:f, s:I}", "metric", s->exp->metric->name, "value", r.value,
                           "trial", (json_int_t)trial);

    if (o && s->exp->search->config.repeats > 1) {
        json_object_set_new (o, "n", json_integer (r.n));
        json_object_set_new (o, "point", json_integer (trial_point (s, trial)));
    }
    return o;
}

static json_t *notification_json (const struct sweep *s, const char *event, const char *text)
{
    json_t *o = json_pack ("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "text", text, "content",
                           text, "event", event, "experiment", sweep_folder_name (s), "folder",
                           s->dir, "state", sweep_state_name (s->state), "trials",
                           (json_int_t)s->ntrials, "failed", (json_int_t)sweep_failed_trials (s));

    if (o && sweep_best (s))
        json_object_set_new (o, "best", notification_best_json (s));
    return o;
}

static void send_once (const struct sweep *s, const char *event, const char *marker,
                       const char *what)
{
    char subject[200], best[300], text[1024];
    struct notification n = { .event = event, .subject = subject, .text = text };
    json_t *o;

    if (!notify_is_wanted (s->exp) || !claim_notification (s, marker))
        return;
    notification_best_text (s, best, sizeof (best));
    snprintf (subject, sizeof (subject), "dl: %s: %s", sweep_folder_name (s), event);
    snprintf (text, sizeof (text), "%s: %s; %ld trial%s%s", sweep_folder_name (s), what, s->ntrials,
              s->ntrials == 1 ? "" : "s", best);
    /* another user may have named the folder, and a line break would begin a mail header */
    policy_text (subject);
    policy_text (text);
    if ((o = notification_json (s, event, text)))
        n.json = json_string_of (o, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref (o);
    if (n.json)
        send_notification (s->exp, &n);
    free (n.json);
}

/* ---- the events ---- */

/* The marker counts trials and log entries, because an experiment can end again after dl continue.
 */
void notify_end (const struct sweep *s)
{
    const char *state = sweep_state_name (s->state);
    bool failed = s->state == SWEEP_FAILED || s->state == SWEEP_PARTIAL;
    bool asked = s->state == SWEEP_STOPPED || s->state == SWEEP_KILLED;
    const char *by = asked && s->last_action.what && !strcmp (s->last_action.what, state)
                         ? s->last_action.by
                         : NULL;
    char marker[64], what[256];

    if (!event_is_on (s->exp, "end") && !(failed && event_is_on (s->exp, "failure")))
        return;
    if (asked) /* trials may still be ending */
        snprintf (marker, sizeof (marker), "%s-%.3f", state, s->asked);
    else
        snprintf (marker, sizeof (marker), "end-%ld-%ld", s->ntrials, s->nhistory);
    snprintf (what, sizeof (what), "%s%s%.100s, %ld of its trials failed", state, by ? " by " : "",
              by ? by : "", sweep_failed_trials (s));
    send_once (s, failed ? "failure" : "end", marker, what);
}

void notify_fault (const struct sweep *s)
{
    char marker[64], what[600];

    if (!event_is_on (s->exp, "failure"))
        return;
    snprintf (marker, sizeof (marker), "paused-%ld-%ld", s->cause.trial, s->cause.attempt);
    snprintf (what, sizeof (what), "paused because all attempts fail in the same way: %.400s",
              s->cause.why ? s->cause.why : "");
    send_once (s, "failure", marker, what);
}

static void notify_failed (const struct sweep *s, long trial)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    char what[600];

    if (t->state != TRIAL_FAILED || !event_is_on (s->exp, "failure"))
        return;
    snprintf (what, sizeof (what), "trial %ld failed: %.400s", trial, t->why ? t->why : "");
    send_once (s, "failure", "failed", what);
}

static bool pattern_is_sent (const struct sweep *s, int pattern)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/notified/pattern-%d", s->dir, pattern + 1);
    return access (path, F_OK) == 0;
}

static void notify_patterns (const struct sweep *s, long trial, long attempt)
{
    char **patterns = s->exp->notify->patterns;
    char path[PATH_MAX], marker[64], what[400];

    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/log", s->dir, trial, attempt);
    for (int i = 0; patterns && patterns[i]; i++) {
        struct log_policy policy = { .pattern = patterns[i] };
        char found[1][POLICY_LINE];
        if (pattern_is_sent (s, i) || policies_search (&policy, 1, path, found) <= 0)
            continue;
        snprintf (marker, sizeof (marker), "pattern-%d", i + 1);
        snprintf (what, sizeof (what), "trial %ld: %s", trial, found[0]);
        send_once (s, "pattern", marker, what);
    }
}

void notify_attempt (const struct sweep *s, long trial, long attempt)
{
    if (!notify_is_wanted (s->exp) || sweep_fsync (s, NULL) < 0)
        return;
    notify_failed (s, trial);
    notify_patterns (s, trial, attempt);
}

/* ---- patterns, while an attempt runs ---- */

enum { EVERY = 5 /* s */, EFFORT = 20 };

static bool has_unsent_pattern (const struct sweep *s)
{
    for (int i = 0; s->exp->notify->patterns && s->exp->notify->patterns[i]; i++)
        if (!pattern_is_sent (s, i))
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

/* Search in a child process, because searching a long log and sending the notification may take
 * longer than the worker can wait.
 */
void notify_watch (const struct sweep *s, long trial, long attempt, struct notify_watch *w)
{
    double now = monotonic ();

    if (!s->exp->notify->patterns || !notify_is_wanted (s->exp) || notify_unwatch (w)
        || now < w->next)
        return;
    w->begun = now;
    w->next = now + EVERY;
    if (!has_unsent_pattern (s))
        return;
    if ((w->child = subprocess_fork (0)) < 0)
        w->child = 0;
    else if (w->child == 0) {
        notify_patterns (s, trial, attempt);
        _exit (0);
    }
}
