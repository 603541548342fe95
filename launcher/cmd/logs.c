/* SPDX-License-Identifier: Apache-2.0 */
/* dl logs: print the output of a trial. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/experiment.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/terminal.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

/* in seconds; the log is polled more often than the state of the trial */
static const double log_every = 0.2;
static const double state_every = 1;

struct log_reading {
    struct sweep *s;
    long trial;
    long attempt;
    int fd; /* -1 if there is no log yet */
    double asked;
};

static void log_path (char *buf, size_t size, const struct log_reading *r)
{
    snprintf (buf, size, "%s/trials/%04ld/a.%ld/log", r->s->dir, r->trial, r->attempt);
}

static bool has_log (const struct log_reading *r)
{
    char path[PATH_MAX];

    log_path (path, sizeof (path), r);
    return access (path, F_OK) == 0;
}

/* Return where the last 'lines' lines begin.  Text at the end without a newline counts
 * as a line.
 */
static off_t start_of_last_lines (int fd, int64_t lines)
{
    off_t end = lseek (fd, 0, SEEK_END);
    char buf[65536];

    if (lines <= 0)
        return lines < 0 ? 0 : end;
    for (off_t at = end; at > 0;) {
        off_t n = at > (off_t)sizeof (buf) ? (off_t)sizeof (buf) : at;
        at -= n;
        if (pread (fd, buf, (size_t)n, at) != n)
            return 0;
        while (n-- > 0)
            if (buf[n] == '\n' && at + n + 1 != end && --lines == 0)
                return at + n + 1;
    }
    return 0;
}

static int open_attempt_log (struct log_reading *r, int64_t lines)
{
    char path[PATH_MAX];

    log_path (path, sizeof (path), r);
    if ((r->fd = inside_open (path, O_RDONLY, 0, NULL)) < 0)
        return -1;
    lseek (r->fd, start_of_last_lines (r->fd, lines), SEEK_SET);
    return 0;
}

/* Print what was appended.  Returns -1 on failure; if writing to standard output
 * failed, 'err' is empty because main() reports that.
 */
static int print_more (const struct log_reading *r, struct slurmdl_error *err)
{
    char buf[65536];
    ssize_t n = 0;

    while (!ferror (stdout) && (n = read (r->fd, buf, sizeof (buf))) > 0)
        fwrite (buf, 1, (size_t)n, stdout);
    if (n < 0)
        return errorf (err, "cannot read the log: %s", strerror (errno));
    return fflush (stdout) != 0 || ferror (stdout) ? -1 : 0;
}

/* Whether no more attempts will follow. */
static bool log_is_over (const struct log_reading *r)
{
    const struct sweep_trial *t = sweep_trial (r->s, r->trial);

    if (t->state == TRIAL_FAILED || t->state == TRIAL_REJECTED)
        return true;
    return sweep_has_ended (r->s)
           || (t->state == TRIAL_PAUSED
               && (t->stopped || t->length >= r->s->exp->search->config.max_length));
}

/* Advance to the next attempt that has a log.  Returns whether there is one. */
static bool next_attempt_log (struct log_reading *r)
{
    struct log_reading next = { .s = r->s, .trial = r->trial, .fd = -1 };
    long over = sweep_trial (r->s, r->trial)->over;

    for (next.attempt = r->attempt + 1; next.attempt <= over + 1; next.attempt++)
        if (has_log (&next) && open_attempt_log (&next, -1) == 0) {
            if (r->fd >= 0)
                close (r->fd);
            printf ("==> trial %ld, attempt %ld <==\n", next.trial, next.attempt);
            *r = next;
            return true;
        }
    return false;
}

enum follow_step { FOLLOW_ON, FOLLOW_END, FOLLOW_ERROR };

static enum follow_step follow_once (struct log_reading *r, bool one, struct slurmdl_error *err)
{
    bool ended;

    if (monotonic () - r->asked < state_every)
        return FOLLOW_ON;
    r->asked = monotonic ();
    if (sweep_sync (r->s, err) < 0)
        return FOLLOW_ERROR;
    ended = sweep_trial (r->s, r->trial)->over >= r->attempt;
    if (r->fd < 0)
        open_attempt_log (r, -1);
    /* the attempt wrote its last lines before its end was published */
    if (r->fd >= 0 && print_more (r, err) < 0)
        return FOLLOW_ERROR;
    if (ended && !one && next_attempt_log (r))
        return FOLLOW_ON;
    return log_is_over (r) || (ended && one) ? FOLLOW_END : FOLLOW_ON;
}

static int follow_log (struct log_reading *r, bool one, struct slurmdl_error *err)
{
    enum follow_step step = FOLLOW_ON;

    while (step == FOLLOW_ON) {
        if (r->fd >= 0 && print_more (r, err) < 0)
            step = FOLLOW_ERROR;
        else if ((step = follow_once (r, one, err)) == FOLLOW_ON)
            usleep ((useconds_t)(log_every * 1e6));
    }
    return step == FOLLOW_ERROR ? -1 : 0;
}

static void last_attempt (struct log_reading *r)
{
    r->attempt = sweep_trial (r->s, r->trial)->over + 1;
    while (r->attempt > 1 && !has_log (r))
        r->attempt--;
}

static int print_log_from (struct log_reading *r, const struct logs_options *opt)
{
    struct slurmdl_error err = { "" };
    char path[PATH_MAX];
    int rv;

    if ((r->attempt = (long)opt->attempt) == 0)
        last_attempt (r);
    if (open_attempt_log (r, opt->lines) == 0 || (opt->follow && errno == ENOENT)) {
        rv = opt->follow ? follow_log (r, opt->attempt > 0, &err) : print_more (r, &err);
        return rv < 0 && *err.text ? fail (&err) : EXIT_OK;
    }
    log_path (path, sizeof (path), r);
    if (errno == ENOENT && r->attempt > sweep_trial (r->s, r->trial)->over)
        complain ("%s: trial %ld has no attempt %ld yet", r->s->dir, r->trial, r->attempt);
    else
        complain ("%s: %s", path, inside_error (errno));
    return EXIT_NOT_FOUND;
}

int cmd_logs (const struct command_line *line)
{
    bool named = line->nargs == 2;
    struct log_reading r = { .fd = -1 };
    int rv;

    if (!named && experiment_is_there (line, line->args[0])) {
        complain ("logs: the number of the trial is missing: dl logs %s TRIAL", line->args[0]);
        return EXIT_USAGE;
    }
    if ((rv = open_experiment (line, named ? line->args[0] : NULL, &r.s)))
        return rv;
    terminal_allow_colours (true);
    if ((rv = parse_trial (r.s, line->args[named], &r.trial)) == 0)
        rv = print_log_from (&r, line->options);
    if (r.fd >= 0)
        close (r.fd);
    sweep_close (r.s);
    return rv;
}
