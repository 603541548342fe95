/* SPDX-License-Identifier: Apache-2.0 */
/* Run checks, each in a process of its own that may hang and reports lines of JSON. */
#include "launcher/node/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"

const struct gather_times gather_times[3] = {
    [LEVEL_NONE] = { 4, 6, 1, 8 },
    [LEVEL_QUICK] = { 8, 10, 3, 15 },
    [LEVEL_FULL] = { 80, 95, 15, 120 },
};

int gather_level (const char *word)
{
    static const char *const words[] = { "none", "quick", "full" };

    for (int i = 0; i < 3; i++)
        if (!strcmp (word, words[i]))
            return i;
    return -1;
}

/* ---- what a check reports from its process ---- */

static void print_line (const struct check_place *p, json_t *line)
{
    char *text = line ? json_dumps (line, JSON_COMPACT) : NULL;

    if (text)
        dprintf (p->out, "%s\n", text);
    free (text);
    json_decref (line);
}

json_t *finding_json (enum severity severity, const char *why)
{
    char clean[WHY_TEXT];

    gather_clean (clean, sizeof (clean), why);
    return json_pack ("{s:i, s:s}", "severity", severity, "why", clean);
}

void check_finding (const struct check_place *p, enum severity severity, const char *fmt, ...)
{
    char why[WHY_TEXT];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (why, sizeof (why), fmt, ap);
    va_end (ap);
    print_line (p, finding_json (severity, why));
}

void check_stage (const struct check_place *p, const char *fmt, ...)
{
    char at[NAME_TEXT], clean[NAME_TEXT];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (at, sizeof (at), fmt, ap);
    va_end (ap);
    gather_clean (clean, sizeof (clean), at);
    print_line (p, json_pack ("{s:s}", "at", clean));
}

void check_fact (const struct check_place *p, const char *group, const char *name, json_t *value)
{
    print_line (p, json_pack ("{s:s, s:s, s:o}", "group", group, "name", name, "value",
                              value ?: json_null ()));
}

/* ---- running checks ---- */

enum { CHECKS = 16 };

struct probe {
    const struct check_row *row;
    pid_t pid;
    int fd; /* -1: closed */
    struct gather_line line;
    char at[NAME_TEXT];
};

/* A hanging check must not hold descriptors open that others wait for at the end of the
 * task.
 */
static void close_others (int keep)
{
    int null = open ("/dev/null", O_RDWR);

    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2 (null, fd);
    for (int fd = 3; fd < 256; fd++)
        if (fd != keep)
            close (fd);
}

static void start_probe (struct probe *p, const struct check_place *place)
{
    struct check_place inside = *place;
    int pipe[2];

    p->fd = -1;
    if (pipe2 (pipe, O_CLOEXEC) < 0)
        return;
    if ((p->pid = subprocess_fork (SIGKILL)) == 0) {
        signal (SIGPIPE, SIG_DFL);
        signal (SIGALRM, SIG_DFL);
        close_others (pipe[1]);
        inside.out = pipe[1];
        p->row->run (&inside);
        _exit (0);
    }
    close (pipe[1]);
    if (p->pid > 0) {
        fcntl (pipe[0], F_SETFL, O_NONBLOCK);
        p->fd = pipe[0];
    } else
        close (pipe[0]);
}

static void add_fact (json_t *facts, const json_t *line)
{
    const char *group = json_string_value (json_object_get (line, "group"));
    const char *name = json_string_value (json_object_get (line, "name"));
    json_t *in;

    if (!group || !name)
        return;
    if (!json_is_object (in = json_object_get (facts, group)))
        json_object_set_new (facts, group, in = json_object ());
    json_object_set (in, name, json_object_get (line, "value"));
}

static void read_probe (struct probe *p, json_t *facts, json_t *findings)
{
    json_t *line;
    const char *at;

    while ((line = gather_read (p->fd, &p->line))) {
        if ((at = json_string_value (json_object_get (line, "at"))))
            gather_clean (p->at, sizeof (p->at), at);
        else if (json_object_get (line, "why"))
            json_array_append (findings, line);
        else
            add_fact (facts, line);
        json_decref (line);
    }
    if (errno == EAGAIN)
        return;
    close (p->fd);
    p->fd = -1;
}

static void add_probe_finding (struct probe *p, const char *how, json_t *findings)
{
    char why[WHY_TEXT];

    snprintf (why, sizeof (why), "%s: %s%s%s", p->row->name, how, *p->at ? " at " : "", p->at);
    json_array_append_new (findings, finding_json (p->row->hangs, why));
}

/* Kill a check that has not answered, but do not wait for it: SIGKILL cannot end a process that is
 * stuck in the kernel.
 */
static void finish_probe (struct probe *p, double seconds, json_t *findings)
{
    char how[NAME_TEXT];
    int status = 0;

    if (p->fd >= 0) {
        snprintf (how, sizeof (how), "no answer for %.0f s", seconds);
        add_probe_finding (p, how, findings);
        kill (p->pid, SIGKILL);
        close (p->fd);
    } else if (p->pid > 0 && waitpid (p->pid, &status, 0) == p->pid && WIFSIGNALED (status)) {
        snprintf (how, sizeof (how), "killed by signal %d", WTERMSIG (status));
        add_probe_finding (p, how, findings);
    }
    gather_line_free (&p->line);
}

static bool is_for (const struct check_row *row, const struct check_place *p)
{
    return p->level >= row->level && (row->scope == EVERY_RANK || p->local_rank == 0);
}

/* Wait until a check has reported something.  Returns false if all have ended, or after the
 * deadline.
 */
static bool poll_all (struct probe *probes, int n, double deadline)
{
    struct pollfd fds[CHECKS];
    double left = deadline - monotonic ();
    int open = 0;

    for (int i = 0; i < n; i++) {
        fds[i] = (struct pollfd){ .fd = probes[i].fd, .events = POLLIN };
        open += probes[i].fd >= 0;
    }
    if (open == 0 || left <= 0)
        return false;
    poll (fds, (nfds_t)n, (int)(left * 1000) + 1);
    return true;
}

void health_run (const struct check_row *table, const struct check_place *place, double seconds,
                 json_t *facts, json_t *findings)
{
    struct probe probes[CHECKS] = { { 0 } };
    double deadline = monotonic () + seconds;
    int n = 0;

    for (const struct check_row *row = table; row->name; row++)
        if (is_for (row, place) && n < CHECKS) {
            probes[n].row = row;
            start_probe (&probes[n++], place);
        }
    while (poll_all (probes, n, deadline))
        for (int i = 0; i < n; i++)
            if (probes[i].fd >= 0)
                read_probe (&probes[i], facts, findings);
    for (int i = 0; i < n; i++)
        finish_probe (&probes[i], seconds, findings);
}
