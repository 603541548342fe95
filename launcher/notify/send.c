/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to tell somebody: a command, a mail, a webhook. */
#include "launcher/notify/send.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/notify/webhook.h"
#include "launcher/sys/say.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"

/* A file without a name: a program that does not read it holds nobody up. */
static int input_of (const char *text)
{
    size_t n = strlen (text);
    int fd = memfd_create ("notice", MFD_CLOEXEC);

    if (fd >= 0
        && (write (fd, text, n) != (ssize_t)n || lseek (fd, 0, SEEK_SET) < 0)) {
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
    if (asprintf (
            &longer, "%s:/usr/sbin:/usr/lib", path ? path : "/bin:/usr/bin")
        > 0)
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
static int run (const struct experiment *e,
                const struct notice *n,
                const char *const *argv,
                void (*prepare) (const void *),
                const char *input,
                int *why)
{
    int fd = input_of (input);
    pid_t pid =
        fd < 0 ? -1
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
        complain ("notify: %s: killed after %lld s",
                  argv[0],
                  (long long)e->notify.timeout);
    else if (WIFSIGNALED (status))
        complain (
            "notify: %s: killed by signal %d", argv[0], WTERMSIG (status));
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
        complain ("notify: cannot run the command: /bin/sh: %s",
                  strerror (why));
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
        snprintf (whole,
                  sizeof (whole),
                  "To: %s\nSubject: %s\nContent-Type: text/plain; "
                  "charset=utf-8\n\n%s",
                  e->notify.mail,
                  n->subject,
                  body);
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
    const char *argv[] = { "curl",        "--silent",     "--fail",
                           "--location",  "--max-redirs", "0",
                           "--max-time",  timeout,        "--proto",
                           "=http,https", "--config",     "-",
                           NULL };
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
        complain (
            "notify: cannot call the webhook: 'curl' could not be run (%s)",
            strerror (why));
    else
        say_curl (status);
    explicit_bzero (config, strlen (config));
    free (config);
}

void notice_send (const struct experiment *e, const struct notice *n)
{
    if (e->notify.command)
        run_command (e, n);
    if (e->notify.mail)
        send_mail (e, n);
    if (e->notify.webhook)
        call_webhook (e, n);
}
