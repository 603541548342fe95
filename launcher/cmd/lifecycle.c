/* SPDX-License-Identifier: Apache-2.0 */
/* dl pause, resume, stop, kill: from one state to another. */
#include <stdio.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/options.h"
#include "launcher/session/open.h"
#include "launcher/sweep/states.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/say.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"

int state_status (enum sweep_state state)
{
    switch (state) {
    case SWEEP_COMPLETED:
        return EXIT_OK;
    case SWEEP_FAILED:
        return EXIT_FAILED;
    default:
        return EXIT_STOPPED;
    }
}

/* ---- the jobs ---- */

enum { PATIENCE = 30 /* s for scancel */ };

/* A line of it that is no news that the job is over; NULL: none. */
static const char *complaint_of (char *text)
{
    char *save = NULL;

    for (char *line = strtok_r (text, "\n", &save); line;
         line = strtok_r (NULL, "\n", &save))
        if (!strstr (line, "Invalid job id") && !strstr (line, "already"))
            return line;
    return NULL;
}

/* Cancel the experiment's jobs, or those that wait in the queue.  Returns -1
 * with 'err' if Slurm did not do it.
 */
static int cancel_jobs (const struct sweep *s,
                        const char *option,
                        struct slurmdl_error *err)
{
    struct command c = { .timeout = PATIENCE };
    char text[4096];
    const char *why;
    int status;

    if (s->nsubmits == 0)
        return 0;
    command_add (&c, "scancel", NULL);
    if (option)
        command_add (&c, option, NULL);
    /* of very many the last ones: the others are over */
    for (size_t i = s->nsubmits; i > 0; i--)
        command_add (&c, s->submits[i - 1].job, NULL);
    status = command_run (&c, NULL, text, sizeof (text));
    command_free (&c);
    if (status == 127)
        return errorf (err, "there is no scancel here");
    why = complaint_of (text);
    if (status == 0 || (status > 0 && !why))
        return 0;
    return errorf (err, "%.200s", why ? why : "scancel gave no answer");
}

/* ---- pause, stop, kill ---- */

/* Until all workers know, and have done as they are told. */
static long long delay_of (const struct sweep *s)
{
    return (long long)(s->exp->heartbeat + s->exp->grace);
}

/* It ends as its workers see fit. */
static void say_soft (const struct sweep *s, const char *what, const char *how)
{
    cancel_jobs (s, "--state=PENDING", NULL);
    printf ("%s: %s and end within %lld s; '%s' goes on\n",
            s->dir,
            what,
            delay_of (s),
            how);
}

static void say_pause (const struct sweep *s)
{
    say_soft (s, "paused; its workers save what they have", "dl resume");
}

static void say_stop (const struct sweep *s)
{
    say_soft (s, "stopped; its trials save a checkpoint", "dl continue");
}

static void say_kill (const struct sweep *s)
{
    struct slurmdl_error err = { "" };

    if (cancel_jobs (s, NULL, &err) < 0)
        complain ("%s: its jobs were not cancelled: %s", s->dir, err.text);
    printf ("%s: killed; what runs ends within %lld s\n",
            s->dir,
            (long long)s->exp->heartbeat + 1);
}

static const struct wish {
    enum event_op op;
    enum sweep_state state;
    bool ends; /* so one that has ended needs it no more */
    void (*say) (const struct sweep *s);
} pause_wish = { EVENT_PAUSE, SWEEP_PAUSED, false, say_pause },
  stop_wish = { EVENT_STOP, SWEEP_STOPPED, true, say_stop },
  kill_wish = { EVENT_KILL, SWEEP_KILLED, true, say_kill };

static bool is_allowed (const struct sweep *s, const void *op)
{
    return sweep_allows (s->state, *(const enum event_op *)op);
}

/* It makes no sense now. */
static int say_why_not (const struct sweep *s, const struct wish *w)
{
    if (s->state == w->state) {
        printf ("%s is already %s\n", s->dir, sweep_state_name (s->state));
        return EXIT_OK;
    }
    if (w->ends) {
        printf (
            "%s has already ended (%s)\n", s->dir, sweep_state_name (s->state));
        return EXIT_OK;
    }
    complain ("%s has ended (%s): there is nothing to %s",
              s->dir,
              sweep_state_name (s->state),
              event_name (w->op));
    return EXIT_USAGE;
}

static int grant (struct sweep *s, const struct wish *w)
{
    struct slurmdl_error err = { "" };

    switch (sweep_insist (s,
                          (struct event){ .op = w->op, .by = user_name () },
                          is_allowed,
                          &w->op,
                          &err)) {
    case 0:
        w->say (s);
        return EXIT_OK;
    case 1:
        return say_why_not (s, w);
    }
    return fail (&err);
}

static int wish_for (const struct settings *st, const struct wish *w)
{
    struct sweep *s;
    int rv = open_experiment (st, st->args[0], &s);

    if (rv)
        return rv;
    rv = grant (s, w);
    sweep_close (s);
    return rv;
}

int cmd_pause (const struct settings *st)
{
    return wish_for (st, &pause_wish);
}

int cmd_stop (const struct settings *st)
{
    return wish_for (st, &stop_wish);
}

int cmd_kill (const struct settings *st)
{
    return wish_for (st, &kill_wish);
}

int kill_experiment (struct sweep *s)
{
    return sweep_allows (s->state, EVENT_KILL) ? grant (s, &kill_wish) : 0;
}

/* ---- resume ---- */

static int say_ended (const struct sweep *s)
{
    bool whole = s->state == SWEEP_COMPLETED || s->state == SWEEP_FAILED;

    complain ("%s %s %s; 'dl continue%s' goes on",
              s->dir,
              whole ? "has" : "was",
              sweep_state_name (s->state),
              whole ? " --trials N' or 'dl continue --length L" : "");
    return EXIT_USAGE;
}

static int resume (struct sweep *s, const struct settings *st)
{
    static const enum event_op op = EVENT_RESUME;
    struct slurmdl_error err = { "" };

    if (sweep_insist (s,
                      (struct event){ .op = op, .by = user_name () },
                      is_allowed,
                      &op,
                      &err)
        < 0)
        return fail (&err);
    return sweep_has_ended (s) ? say_ended (s) : start_workers (s, st);
}

int cmd_resume (const struct settings *st)
{
    struct sweep *s;
    int rv = open_experiment (st, st->args[0], &s);

    if (rv)
        return rv;
    rv = resume (s, st);
    sweep_close (s);
    return rv;
}
